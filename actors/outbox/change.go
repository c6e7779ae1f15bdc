package outbox

import (
	"context"
	"errors"

	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Action is what a person can do with a delivery.
type Action string

const (
	// Retry has a delivery tried now. A dead one gets all its attempts again, and may come out of order.
	Retry Action = "retry"
	// Drop removes a delivery. Dropping a pending one tells its instance as when it dies.
	Drop Action = "drop"
)

// IDOf is how a delivery is called outside: also the id that a webhook gets.
func IDOf(key key.Delivery) string {
	return instanceid.PartText(key.ID, key.Sequence, key.Number)
}

// ask is a person's wish.
type ask struct {
	key      key.Delivery
	workflow string
	action   Action
	done     chan error // has room for one
}

func (a *ask) stream() streamName { return streamName{a.workflow, a.key.Queue} }

func (x *shard) takeAsked() []*ask {
	x.mu.Lock()
	defer x.mu.Unlock()
	asked := x.asked
	x.asked = nil
	return asked
}

// Change carries out what a person wants with a delivery, behind an attempt that is under way, which may have reached
// its end. It returns when that is durable: failure.ErrNotFound, failure.ErrElsewhere where another node leads the shard,
// failure.ErrUnavailable.
func (s *Service) Change(ctx context.Context, id string, action Action) error {
	key, row, err := s.find(id)
	if err != nil {
		return err
	}
	x, a := s.shards[s.o.Store.ShardOf(key.ID)], &ask{key: key, workflow: row.Workflow, action: action, done: make(chan error, 1)}
	x.mu.Lock()
	x.asked = append(x.asked, a)
	x.mu.Unlock()
	x.rouse()
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return failure.ErrOutcomeUnknown
}

// find looks for a delivery where its shard is led.
func (s *Service) find(id string) (k key.Delivery, row *Delivery, err error) {
	instance, sequence, number, ok := instanceid.ParsePart(id)
	if !ok {
		return k, nil, failure.ErrNotFound
	}
	sh := s.o.Store.ShardOf(instance)
	epoch := s.o.Store.Epoch(sh)
	if epoch == 0 {
		return k, nil, failure.Elsewhere(uint16(sh))
	}
	err = s.o.Store.ScanRanges(func(stored, value []byte) error {
		d, ok := key.ParseDelivery(stored)
		if !ok {
			return persistence.ErrCorrupt
		}
		if d.Sequence != sequence || d.Number != number {
			return nil
		}
		if row, err = Parse(value); err != nil {
			return err
		}
		k = d
		return errEnough
	}, key.Range{Prefix: key.DeliveryPrefix(nil, sh, instance)})
	switch {
	case errors.Is(err, errEnough):
		return k, row, nil
	case errors.Is(err, ErrDamaged):
		return k, nil, failure.Errorf(failure.ErrExecution, "%w", err)
	case err != nil:
		return k, nil, failure.OfStore(err)
	}
	if err := s.o.Store.AwaitLed(s.ctx, sh, epoch); err != nil { // NB: another node may have it by now
		return k, nil, failure.OfStore(err)
	}
	return k, nil, failure.ErrNotFound
}

// change carries out what a person wants; nothing else is under way for the instance and queue.
func (s *Service) change(sh key.Shard, epoch uint64, a *ask) error {
	stored, err := s.o.Store.Load(a.key.Key(nil, sh))
	if errors.Is(err, persistence.ErrNotFound) {
		return failure.ErrNotFound
	}
	if err != nil {
		return failure.OfStore(err)
	}
	row, err := Parse(stored)
	if err != nil {
		return failure.Errorf(failure.ErrExecution, "%w", err)
	}
	c, event := &written{sh, epoch, a.key, row, nil}, statemachine.EventName("")
	if a.action == Retry {
		again := *row
		again.State, again.Next = Pending, s.o.Clock()
		if row.State == Dead {
			again.Attempts = 0
		}
		c.after = &again
	} else if isInside(a.key.Queue) {
		return failure.OfStore(s.tell(c, &Outcome{Refused: "it was dropped"}))
	} else if row.State == Pending {
		if hook, err := s.rulesOf(a.key, row); err == nil {
			event = hook.OnError
		}
	}
	return failure.OfStore(s.write(c, event, outcomeData(Answer{Status: int(row.LastStatus)}, row.Attempts)))
}
