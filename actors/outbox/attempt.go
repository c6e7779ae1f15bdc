package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/wait"
	"troupe/actors/trace"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// mailRules are those of a mail that is not taken, and of a webhook whose definition cannot be read.
var mailRules = statemachine.Webhook{Retry: statemachine.Retry{RetryLimit: 8, Delay: 5 * time.Second, MaxDelay: time.Hour, Backoff: 2, Jitter: true}}

func (s *Service) try(ctx context.Context, sh key.Shard, epoch uint64, key key.Delivery, row *Delivery) error {
	if isInside(key.Queue) {
		return s.tryInside(ctx, sh, epoch, key, row)
	}
	span, sent := s.follow(key, row)
	hook, err := s.rulesOf(key, row)
	answer := Answer{Err: err, Final: hook == nil}
	if err == nil {
		// What has left must not be undone by a crash, nor its id stand for something else.
		if err := s.o.Store.AwaitDurable(); err != nil {
			return err
		}
		// NB: an attempt that panics is one that failed, so that it ends among the dead letters.
		if err := guard.Try(s.o.Log, "attempt of a delivery", func() { answer = s.o.Sender.Send(ctx, attemptOf(key, sent, hook)) }); err != nil {
			answer = Answer{Err: err}
		}
	}
	span.End(answer.Err)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if hook == nil {
		hook = &statemachine.Webhook{}
	}
	now := s.o.Clock()
	after, event := row.Settle(hook, answer, now)
	switch {
	case after == nil:
		s.metrics.ended(&s.metrics.delivered)
	case after.State == Dead:
		s.metrics.ended(&s.metrics.dead)
	default:
		s.metrics.fail(now)
	}
	return s.write(&written{sh, epoch, key, row, after}, &Outcome{Event: event, Data: answer.Data(row.Attempts + 1), Span: span})
}

// Settle says what an attempt makes of a pending delivery: the delivery as it stays, nil for none, and the event that its instance is
// told, "" for none.
func (d *Delivery) Settle(hook *statemachine.Webhook, answer Answer, now time.Time) (after *Delivery, event statemachine.EventName) {
	if answer.Err == nil {
		return nil, hook.OnDone
	}
	next := *d
	next.Attempts++
	next.LastStatus, next.LastError = uint32(max(answer.Status, 0)), answer.Err.Error()
	if answer.Final || int(next.Attempts) > hook.RetryLimit {
		next.State = Dead
		return &next, hook.OnError
	}
	next.Next = now.Add(max(pauseBefore(hook, next.Attempts), answer.After))
	return &next, ""
}

// follow begins the span of an attempt, and returns the row as it is sent, which names the span to its receiver.
func (s *Service) follow(key key.Delivery, row *Delivery) (*trace.Span, *Delivery) {
	span := s.o.Tracer.Continue(row.Trace, "deliver "+QueueKind(key.Queue), trace.Client)
	if span == nil {
		return nil, row
	}
	span.Set("troupe.workflow", row.Workflow, "troupe.instance", instanceid.Text(key.ID), "troupe.queue", key.Queue)
	sent := *row
	sent.Trace = span.Parent()
	return span, &sent
}

// insidePause is between two attempts to reach another instance: ten a minute.
const insidePause = 6 * time.Second

// A message that can never be carried out is removed: the instance that had wanted a child is told.
func (s *Service) tryInside(ctx context.Context, sh key.Shard, epoch uint64, key key.Delivery, row *Delivery) error {
	leave, err := s.enterInside(ctx, row.Workflow)
	if err != nil {
		return err
	}
	var answer Answer
	span, sent := s.follow(key, row)
	if err := guard.Try(s.o.Log, "message to another instance", func() { answer = s.o.Inside(ctx, key, sent) }); err != nil {
		answer = Answer{Err: err}
	}
	span.End(answer.Err)
	leave()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c := &written{sh, epoch, key, row, nil}
	switch {
	case answer.Err == nil:
		s.metrics.ended(&s.metrics.delivered)
	case answer.Final:
		s.metrics.ended(&s.metrics.dead)
		return s.tell(c, &Outcome{Refused: answer.Err.Error(), Span: span})
	default:
		s.metrics.fail(s.o.Clock())
		next := *row
		next.Attempts++
		next.LastError, next.Next = answer.Err.Error(), s.o.Clock().Add(insidePause)
		c.after = &next
	}
	return s.write(c, &Outcome{})
}

const (
	insidePlaces = 4 // The work of hundreds would stand in the line of the processors before that of people
	insideHold   = 50 * time.Millisecond
)

func (s *Service) enterInside(ctx context.Context, workflow string) (leave func(), err error) {
	slot := s.inside.Slot(workflow)
	if err := slot.Acquire(ctx); err != nil {
		return nil, err
	}
	release := sync.OnceFunc(slot.Release)
	timer := time.AfterFunc(insideHold, release)
	return func() {
		timer.Stop()
		release()
	}, nil
}

func attemptOf(key key.Delivery, row *Delivery, hook *statemachine.Webhook) Attempt {
	return Attempt{ID: IDOf(key), Instance: key.ID, Queue: key.Queue, Webhook: hook, Delivery: row}
}

// URL is where a delivery goes; "" for a mail, and where it is unknown.
func (s *Service) URL(key key.Delivery, row *Delivery) string {
	hook, err := s.rulesOf(key, row)
	if err != nil || isInside(key.Queue) {
		return ""
	}
	return s.o.Sender.URL(attemptOf(key, row, hook))
}

// An error without rules is final.
func (s *Service) rulesOf(key key.Delivery, row *Delivery) (*statemachine.Webhook, error) {
	if key.Queue == MailQueue {
		return &mailRules, nil
	}
	d, err := s.o.Definition(row.Workflow, row.Version)
	if err != nil {
		return &mailRules, err
	}
	hook := d.Webhook(key.Queue)
	if hook == nil {
		return nil, errors.New("the definition has no such webhook")
	}
	return hook, nil
}

// Remove removes the rows of a delivery as they were written.
func Remove(w *persistence.Batch, sh key.Shard, k key.Delivery, d *Delivery) {
	if d.State == Pending {
		w.Delete(key.Attempt(nil, sh, d.Workflow, d.Next.UnixMilli(), k))
	}
	w.Delete(k.Key(nil, sh))
}

// PutAttempt writes the row of the next attempt of a delivery that is there.
func PutAttempt(w *persistence.Batch, sh key.Shard, k key.Delivery, d *Delivery) {
	if d.State == Pending {
		w.Set(key.Attempt(nil, sh, d.Workflow, d.Next.UnixMilli(), k), nil)
	}
}

type written struct {
	shard  key.Shard
	epoch  uint64
	key    key.Delivery
	before *Delivery
	after  *Delivery // nil: it is gone
}

func (c *written) put(w *persistence.Batch) {
	Remove(w, c.shard, c.key, c.before)
	if c.after == nil {
		return
	}
	w.Set(c.key.Key(nil, c.shard), c.after.Append(nil))
	PutAttempt(w, c.shard, c.key, c.after)
}

// NB: a row that stays is written by its instance as well, which may be deleted meanwhile.
func (s *Service) write(c *written, o *Outcome) error {
	if o.Event == "" && c.after == nil {
		return s.remove(c)
	}
	return s.tell(c, o)
}

func (s *Service) remove(c *written) error {
	w := s.o.Store.NewBatchIn(c.shard, c.epoch)
	Remove(w, c.shard, c.key, c.before)
	return s.o.Store.Commit(w)
}

// Of an instance that was deleted nothing stays.
func (s *Service) tell(c *written, o *Outcome) error {
	o.Workflow, o.Key, o.Writes = c.before.Workflow, c.key, c.put
	told := make(chan error, 1)
	s.o.Tell(o, func(err error) { told <- err })
	err := <-told
	if errors.Is(err, failure.ErrNotFound) {
		return s.remove(c)
	}
	return err
}

func pauseBefore(hook *statemachine.Webhook, attempts uint32) time.Duration {
	pause := hook.Pause(int(attempts))
	if hook.Jitter {
		pause -= time.Duration(float64(pause/2) * rand.Float64()) //nolint:gosec // no secret
	}
	return pause
}

// Data is event.data of what the instance is told of the attempt with this number.
func (a Answer) Data(attempts uint32) data.Value {
	out := fmt.Appendf(nil, `{"status":%d,"body":`, a.Status)
	if len(a.Body) > 0 {
		out = append(out, a.Body...)
	} else {
		out = append(out, "null"...)
	}
	return data.Value(fmt.Appendf(out, `,"attempts":%d}`, attempts))
}

// Action is what a person can do with a delivery.
type Action string

const (
	// Retry has a delivery tried now. A dead one gets all its attempts again, and may come out of order.
	Retry Action = "retry"
	// Drop removes a delivery. Dropping a pending one tells its instance as when it dies.
	Drop Action = "drop"
)

// IDOf is how a delivery is called outside: also the id that a webhook gets.
func IDOf(key key.Delivery) string { return instanceid.PartText(key.ID, key.Sequence, key.Number) }

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

// Change carries out what a person wants with a delivery, after an attempt that is under way. It returns when that is
// durable: failure.ErrNotFound, failure.ErrNotLeader where another node leads the shard, failure.ErrUnavailable.
func (s *Service) Change(ctx context.Context, id string, action Action) error {
	key, row, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	sh := s.o.Store.ShardOf(key.ID)
	x, a := s.led[sh].Load(), &ask{key: key, workflow: row.Workflow, action: action, done: make(chan error, 1)}
	if x == nil {
		return failure.Elsewhere(uint16(sh))
	}
	x.mu.Lock()
	if x.over {
		x.mu.Unlock()
		return s.ended(x)
	}
	x.asked = append(x.asked, a)
	x.mu.Unlock()
	wait.Notify(x.wake)
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
		return failure.ErrOutcomeUnknown
	}
}

func (s *Service) find(ctx context.Context, id string) (k key.Delivery, row *Delivery, err error) {
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
	if err := s.o.Store.AwaitLed(ctx, sh, epoch); err != nil { // NB: another node may have it by now
		return k, nil, failure.OfStore(err)
	}
	return k, nil, failure.ErrNotFound
}

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
	return failure.OfStore(s.write(c, &Outcome{Event: event, Data: Answer{Status: int(row.LastStatus)}.Data(row.Attempts)}))
}
