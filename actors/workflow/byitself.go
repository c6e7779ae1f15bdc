package workflow

import (
	"context"
	"errors"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/invoke"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/schedule"
	"troupe/actors/timer"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// makeByItself makes what comes by itself. NB: before anything runs that commits, since each commit tells it.
func (r *Router) makeByItself() {
	if r.o.Sender != nil {
		r.outbox = outbox.New(outbox.Options{
			Store: r.store, Clock: r.o.Clock, Definition: r.catalog.Version, Sender: r.o.Sender, Tell: r.tell, Inside: r.deliverInside, Log: r.log,
		})
	}
	r.invokes = invoke.New(invoke.Options{
		Store: r.store, Catalog: r.catalog, Clock: r.o.Clock, Log: r.log, Principal: r.principal, Note: r.incidents.Note, TreeMax: r.o.TreeInstancesMax,
		Current:   func(ctx context.Context) error { return r.queries.AwaitCurrent(ctx, key.EveryShard) },
		Elsewhere: r.o.Elsewhere,
	})
	r.Lists = pending.New(r.store, r.queries, r.catalog, r.outbox, r.o.Clock)
	r.timers = timer.New(timer.Options{Store: r.store, Clock: r.o.Clock, Fire: r.fire, Log: r.log})
	r.schedules = schedule.New(schedule.Options{Store: r.store, Clock: r.o.Clock, Schedules: r.catalog.Schedules, Create: r.createScheduled, Log: r.log})
}

// startByItself starts it.
func (r *Router) startByItself() {
	r.timers.Start()
	if r.outbox != nil {
		r.outbox.Start()
	}
	r.schedules.Start()
}

// stopByItself returns when nothing comes by itself any more.
func (r *Router) stopByItself() {
	r.schedules.Stop()
	r.timers.Stop()
	if r.outbox != nil {
		r.outbox.Stop()
	}
}

// fireTimer is the request of a timer that is due.
type fireTimer struct{ id statemachine.PartID }

func (req fireTimer) run(i *instance, c *call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	result, err := i.of.Fire(&i.state, req.id, i.router.o.Clock())
	if errors.Is(err, statemachine.ErrNoTimer) { // it was cancelled, or has come already
		i.deliver(c, nil)
		return nil
	}
	return i.commitByItself(c, result, err, nil, func() (statemachine.Instance, error) { return i.of.Fail(&i.state, req.id) })
}

// commitByItself commits the event that nobody sent, with writes. One that has failed becomes an incident: failed
// returns the instance with it.
func (i *instance) commitByItself(c *call, result statemachine.Result, err error, writes func(*persistence.Writes), failed func() (statemachine.Instance, error)) error {
	if err == nil {
		if err = i.mayAdd(&result); err == nil {
			return i.commitResult(c, &result, writes, i.paced(&result))
		}
	}
	if errors.Is(err, statemachine.ErrEnded) || errors.Is(err, statemachine.ErrNoChild) { // nobody waits for it any more
		if writes == nil {
			i.deliver(c, nil)
			return nil
		}
		return i.commit(c, &change{next: i.state, caller: statemachine.System, writes: writes}, false)
	}
	i.router.metrics.incidents.Add(1)
	next, restored := failed()
	if restored != nil {
		return failure.Errorf(failure.ErrInternal, "%w", restored)
	}
	return i.commit(c, &change{next: next, caller: statemachine.System, fault: err, writes: writes}, false)
}

// paced counts a step that the instance has caused itself. After too many of them it has what this one causes come later, and returns by
// how much.
func (i *instance) paced(result *statemachine.Result) time.Duration {
	i.hasOwnSteps = true
	now := i.router.o.Clock()
	delay := i.router.paces.Step(i.id, result.Cost, now)
	if delay > 0 && (result.Instance.Postpone(&i.state, now.Add(delay)) || len(result.Out) > 0) {
		i.router.incidents.Note(&incident.Row{
			Kind: incident.Loop, Workflow: i.workflowID, Version: i.of.Version, Place: i.name, Instance: i.name, Event: string(result.Entry.Event),
			Error: "the instance causes its own steps without end; each waits longer, up to a minute", First: now, Last: now, Count: 1,
		})
	}
	return delay
}

// mayAdd asks the quota of the history.
func (i *instance) mayAdd(result *statemachine.Result) error {
	if result.Outcome == statemachine.Ignored {
		return nil
	}
	return i.router.countRefusal(i.router.o.Quotas.MayAdd(i.state.Sequence))
}

// commitResult commits the step of an event that nobody sent.
// What it sends out leaves after a delay.
func (i *instance) commitResult(c *call, result *statemachine.Result, writes func(*persistence.Writes), delay time.Duration) error {
	ch := &change{next: result.Instance, caller: statemachine.System, out: result.Out, delay: delay, writes: writes}
	if result.Outcome != statemachine.Ignored {
		ch.entry, ch.hasEntry = result.Entry, true
	}
	i.log(result.Logs)
	i.router.metrics.events.Add(1)
	return i.commit(c, ch, false)
}

// changeIncident is the request to retry an event that failed, or to drop it.
type changeIncident struct {
	caller *identity.Principal
	id     statemachine.PartID
	drop   bool
}

func (req changeIncident) run(i *instance, c *call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	if !slices.ContainsFunc(i.state.Timers(), func(t statemachine.Timer) bool { return t.ID == req.id && t.Failed }) {
		return failure.ErrNotFound
	}
	if req.drop {
		next, err := i.of.Drop(&i.state, req.id)
		if err != nil {
			return failure.Errorf(failure.ErrInternal, "%w", err)
		}
		return i.commit(c, &change{next: next, caller: statemachine.System}, false)
	}
	result, err := i.of.Fire(&i.state, req.id, i.router.o.Clock())
	if err != nil {
		again := failure.Of(failure.OfStep(err)) // it stays an incident
		reason := pending.Reason(err.Error(), i.mayRead(req.caller) == nil)
		return &failure.Error{Kind: again.Kind, Reason: "the event failed again: " + reason, Cause: again}
	}
	if err := i.mayAdd(&result); err != nil {
		return err
	}
	return i.commitResult(c, &result, nil, 0)
}

// tellOutcome is the request to tell an instance what became of what it sent out.
type tellOutcome struct{ *outbox.Outcome }

func (req tellOutcome) run(i *instance, c *call) error {
	store, err := i.rows()
	if err != nil {
		return err
	}
	stored, err := store.Load(req.Key.Key(i.scratch[:0], i.shard))
	if errors.Is(err, persistence.ErrNotFound) { // it was told already, or dropped
		i.deliver(c, nil)
		return nil
	}
	if err != nil {
		return failure.OfStore(err)
	}
	if req.Event == "" && req.Refused == "" {
		w := i.writes()
		req.Writes(w)
		i.handOver(w, c, nil)
		return nil
	}
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	if req.Refused != "" {
		begun := time.Now()
		defer func() { i.router.work.Took(req.Workflow, time.Since(begun)) }() // its message had a turn
		return i.takeRefusal(c, req.Outcome, stored)
	}
	now := i.router.o.Clock()
	result, err := i.of.Receive(&i.state, req.Event, req.Data, now)
	return i.commitByItself(c, result, err, req.Writes, func() (statemachine.Instance, error) {
		return i.of.FailEvent(&i.state, req.Event, req.Data, now), nil
	})
}

// tell gives an instance the event of an outcome.
func (r *Router) tell(o *outbox.Outcome, done func(error)) {
	r.postByItself(o.Workflow, o.Key.ID, tellOutcome{o}, done)
}

// putOut writes what a step sends out.
func (i *instance) putOut(w *persistence.Writes, c *call, outs []statemachine.Out, delay time.Duration) {
	n := c.withNews()
	n.sentAt = i.router.o.Clock().Add(delay) // NB: the time of the entry may be ahead of a clock that was set back
	outbox.Put(w, outbox.Origin{
		Shard: i.shard, Workflow: i.workflowID, Version: i.of.Version, Instance: i.id, Sequence: i.state.Sequence, At: i.state.UpdatedAt, Due: n.sentAt,
	}, outs)
	for k := range outs {
		if queue := outbox.QueueOf(&outs[k]); !slices.Contains(n.sent, queue) {
			n.sent = append(n.sent, queue)
		}
	}
}

// tellServices tells the timers and the outbox of what a commit has added.
func (r *Router) tellServices(c *call) {
	i := c.activation.instance
	if !c.news.began.IsZero() {
		r.timers.Began(i.shard, c.news.began)
	}
	if r.outbox == nil {
		return
	}
	for _, queue := range c.news.sent {
		r.outbox.Began(i.shard, i.workflowID, queue, c.news.sentAt)
	}
}

// putTimers writes what a step changes in the timers of the instance.
func (i *instance) putTimers(w *persistence.Writes, c *call, ch *change, ended, begun []statemachine.Timer) {
	i.router.incidents.LogFailed(i.of, i.workflowID, i.id, ch.fault, begun)
	c.withNews().began = timer.Put(w, &timer.Origin{
		Shard: i.shard, Workflow: i.workflowID, Instance: i.id, At: i.router.o.Clock(), Fault: ch.fault, Of: i.of,
	}, ended, begun)
}

// fire gives an instance the event of a timer. One that was deleted has none any more.
func (r *Router) fire(row timer.Row, done func(error)) {
	r.postByItself(row.Workflow, row.Instance, fireTimer{row.Timer}, func(err error) {
		if errors.Is(err, failure.ErrNotFound) {
			err = nil
		}
		done(err)
	})
}

// postByItself gives an instance what nobody sent. It is not refused because many others ask: what comes by itself
// bounds its own number.
func (r *Router) postByItself(workflowID string, id key.ID, m request, done func(error)) {
	err := r.Accepting()
	if err == nil && r.stopping.Load() {
		err = failure.ErrUnavailable
	}
	if err == nil {
		r.inFlight.Add(1)
		_, err = r.dispatch(workflowID, id, m, told{done})
	}
	if err != nil {
		done(err)
	}
}

// told is the recipient of the answer to an event that nobody sent.
type told struct{ done func(error) }

// Begin implements Recipient.
func (told) Begin(message.Turn) error { return nil }

// Refused implements Recipient.
func (told) Refused(error) {}

// Answered implements Recipient.
func (f told) Answered(_ *message.Reply, err error) { f.done(err) }
