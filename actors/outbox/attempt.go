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
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// mailRules are those of a mail that is not taken, and of a webhook whose definition cannot be read.
var mailRules = statemachine.Webhook{RetryLimit: 8, Delay: 5 * time.Second, MaxDelay: time.Hour, Backoff: 2, Jitter: true}

// try makes one attempt, and writes what became of it.
func (s *Service) try(ctx context.Context, sh key.Shard, epoch uint64, key key.Delivery, row *Delivery) error {
	if isInside(key.Queue) {
		return s.tryInside(ctx, sh, epoch, key, row)
	}
	hook, err := s.rulesOf(key, row)
	answer := Answer{Err: err, Final: hook == nil}
	if err == nil {
		// NB: a row can be seen before it is durable. What has left must not be undone by a crash, nor its id stand for something else.
		if err := s.o.Store.AwaitDurable(); err != nil {
			return err
		}
		// NB: an attempt that panics is one that failed, so that it ends among the dead letters.
		if err := guard.Try(s.o.Log, "attempt of a delivery", func() { answer = s.o.Sender.Send(ctx, attemptOf(key, row, hook)) }); err != nil {
			answer = Answer{Err: err}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if hook == nil {
		hook = &statemachine.Webhook{}
	}
	next := *row
	next.Attempts++
	next.LastStatus, next.LastError = uint32(max(answer.Status, 0)), ""
	event := hook.OnDone
	switch {
	case answer.Err == nil:
		s.metrics.delivered.Add(1)
	case answer.Final || int(next.Attempts) > hook.RetryLimit:
		s.metrics.dead.Add(1)
		next.State, next.LastError, event = Dead, answer.Err.Error(), hook.OnError
	default:
		s.metrics.failed.Add(1)
		next.LastError, event = answer.Err.Error(), ""
		next.Next = s.o.Clock().Add(max(pauseBefore(hook, next.Attempts), answer.After))
	}
	var after *Delivery
	if answer.Err != nil {
		after = &next
	}
	return s.write(&written{sh, epoch, key, row, after}, event, outcomeData(answer, next.Attempts))
}

// insidePause is between two attempts to reach another instance: ten a minute.
const insidePause = 6 * time.Second

// tryInside makes one attempt to tell another instance, and writes what became of it. A message that can never be carried out
// is removed: the instance that had wanted a child is told.
func (s *Service) tryInside(ctx context.Context, sh key.Shard, epoch uint64, key key.Delivery, row *Delivery) error {
	leave, err := s.enterInside(ctx, row.Workflow)
	if err != nil {
		return err
	}
	var answer Answer
	if err := guard.Try(s.o.Log, "message to another instance", func() { answer = s.o.Inside(ctx, key, row) }); err != nil {
		answer = Answer{Err: err}
	}
	leave()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c := &written{sh, epoch, key, row, nil}
	switch {
	case answer.Err == nil:
		s.metrics.delivered.Add(1)
	case answer.Final:
		s.metrics.dead.Add(1)
		return s.tell(c, &Outcome{Refused: answer.Err.Error()})
	default:
		s.metrics.failed.Add(1)
		next := *row
		next.Attempts++
		next.LastError, next.Next = answer.Err.Error(), s.o.Clock().Add(insidePause)
		c.after = &next
	}
	return s.write(c, "", nil)
}

const (
	// insidePlaces is how many messages to other instances are carried out at a time. The work of
	// hundreds would stand in the line of the processors before that of people.
	insidePlaces = 4
	// insideHold is how long one keeps its place: who waits for a disk or another node is in nobody's way.
	insideHold = 50 * time.Millisecond
)

// enterInside waits for a place, which workflows share fairly. leave gives it back, once.
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

// URL is where a delivery goes; "" for a mail, and where nobody knows.
func (s *Service) URL(key key.Delivery, row *Delivery) string {
	hook, err := s.rulesOf(key, row)
	if err != nil || isInside(key.Queue) {
		return ""
	}
	return s.o.Sender.URL(attemptOf(key, row, hook))
}

// rulesOf returns how a delivery is tried. An error without rules is final.
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
func Remove(w *persistence.Writes, sh key.Shard, k key.Delivery, d *Delivery) {
	if d.State == Pending {
		w.Delete(key.Attempt(nil, sh, d.Workflow, d.Next.UnixMilli(), k))
	}
	w.Delete(k.Key(nil, sh))
}

// written is a change of a delivery.
type written struct {
	shard  key.Shard
	epoch  uint64
	key    key.Delivery
	before *Delivery
	after  *Delivery // nil: it is gone
}

func (c *written) put(w *persistence.Writes) {
	Remove(w, c.shard, c.key, c.before)
	if c.after == nil {
		return
	}
	w.Set(c.key.Key(nil, c.shard), c.after.Append(nil))
	if c.after.State == Pending {
		w.Set(key.Attempt(nil, c.shard, c.before.Workflow, c.after.Next.UnixMilli(), c.key), nil)
	}
}

// write commits a change, and tells the instance with it when there is an event. It returns when that is visible.
// NB: a row that stays is written by its instance as well, which may be deleted meanwhile.
func (s *Service) write(c *written, event statemachine.EventName, brought data.Value) error {
	if event == "" && c.after == nil {
		return s.remove(c)
	}
	return s.tell(c, &Outcome{Event: event, Data: brought})
}

// remove commits that a delivery is gone.
func (s *Service) remove(c *written) error {
	w := s.o.Store.NewWritesIn(c.shard, c.epoch)
	Remove(w, c.shard, c.key, c.before)
	return s.o.Store.Commit(w)
}

// tell returns when an instance has been told an outcome, in one commit with a change. Of an instance that was deleted
// nothing stays.
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

// pauseBefore is how long the attempt behind so many waits.
func pauseBefore(hook *statemachine.Webhook, attempts uint32) time.Duration {
	pause := float64(hook.Delay)
	for range attempts - 1 {
		if pause *= hook.Backoff; pause >= float64(hook.MaxDelay) {
			break
		}
	}
	pause = min(pause, float64(hook.MaxDelay))
	if hook.Jitter {
		pause -= pause / 2 * rand.Float64() //nolint:gosec // no secret
	}
	return time.Duration(pause)
}

// outcomeData is event.data of an outcome.
func outcomeData(a Answer, attempts uint32) data.Value {
	out := fmt.Appendf(nil, `{"status":%d,"body":`, a.Status)
	if len(a.Body) > 0 {
		out = append(out, a.Body...)
	} else {
		out = append(out, "null"...)
	}
	return data.Value(fmt.Appendf(out, `,"attempts":%d}`, attempts))
}
