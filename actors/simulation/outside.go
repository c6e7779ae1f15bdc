package simulation

import (
	"errors"
	"slices"
	"time"

	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/outbox"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// send has something leave the instance: the number-th of its newest step.
func (in *Instance) send(out *statemachine.Delivery, number uint32, delay time.Duration) {
	w := in.world
	d := &Delivery{
		Delivery: outbox.Delivery{
			Workflow: in.Workflow(), Version: in.of.Version, Created: in.state.UpdatedAt, Next: w.now.Add(delay), State: outbox.Pending, Body: out.Body,
		},
		key: key.Delivery{ID: in.id, Queue: outbox.QueueOf(out), Sequence: in.state.Sequence, Number: number},
	}
	if message := child.Of(in.id, out); message != nil {
		d.Body = message
		w.bytes += len(message)
		w.waiting = append(w.waiting, d)
		return
	}
	w.sent = append(w.sent, Sent{in, w.now, *out})
	w.bytes += len(out.Body) + len(out.Text)
	if out.Webhook != "" {
		in.deliveries = append(in.deliveries, d)
	}
}

// errNoAnswer is what an attempt comes to when nobody answers.
var errNoAnswer = errors.New("there was no answer")

// Answer has a webhook answer the first delivery of the instance that waits for it; status 0: nobody answers. The delivery ends, or it is
// tried again later, as the definition says. failure.ErrNotFound: none waits; failure.ErrNotAllowed: its next attempt comes later.
func (w *World) Answer(in *Instance, webhook string, status int, body data.Value) error {
	i := slices.IndexFunc(in.deliveries, func(d *Delivery) bool { return d.Webhook() == webhook && d.State == outbox.Pending })
	if i < 0 {
		return failure.Refuse(failure.ErrNotFound, "nothing waits for an answer of webhook %s", webhook)
	}
	d := in.deliveries[i]
	if d.Next.After(w.now) {
		return failure.Refuse(failure.ErrNotAllowed, "the next attempt at webhook %s comes at %s", webhook, d.Next.Format(statemachine.TimeLayout))
	}
	answer := outbox.AnswerOf(status, body)
	if status == 0 {
		answer.Err = errNoAnswer
	}
	rules := *in.of.Webhook(webhook)
	rules.Jitter = false // NB: the world has no chance: it waits as long as the real one waits at most
	after, event := d.Settle(&rules, answer, w.now)
	attempts := d.Attempts + 1
	if after == nil {
		in.deliveries = slices.Delete(slices.Clone(in.deliveries), i, i+1)
	} else {
		d.Delivery = *after
	}
	if event != "" {
		in.receive(event, answer.Data(attempts))
	}
	return w.settle()
}
