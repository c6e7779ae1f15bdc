package instance

import (
	"errors"
	"slices"
	"time"

	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/invoke"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pace"
	"troupe/actors/pending"
	"troupe/actors/trace"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// FireTimer is the request of a timer that is due.
type FireTimer struct {
	ID   statemachine.ElementID
	Span *trace.Span // nil: nobody follows it
}

func (req FireTimer) span() *trace.Span { return req.Span }

func (req FireTimer) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	result, err := i.of.Fire(&i.state, req.ID, i.env.Clock())
	if errors.Is(err, statemachine.ErrNoTimer) { // it was cancelled, or has come already
		i.deliver(c, nil)
		return nil
	}
	return i.commitInternal(c, result, err, nil, func() (statemachine.Instance, error) { return i.of.Fail(&i.state, req.ID) })
}

// commitInternal commits the event that nobody sent, with writes. One that has failed becomes an incident: failed
// returns the instance with it.
func (i *Actor) commitInternal(c *Call, result statemachine.Result, err error, writes func(*persistence.Batch), failed func() (statemachine.Instance, error)) error {
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
		return i.commit(c, &change{outcome: outcome{next: i.state}, cause: internal, writes: writes}, false)
	}
	i.env.Counts.Incidents.Add(1)
	next, restored := failed()
	if restored != nil {
		return failure.Errorf(failure.ErrInternal, "%w", restored)
	}
	return i.commit(c, &change{outcome: outcome{next: next, fault: err}, cause: internal, writes: writes}, false)
}

// paced counts a step that the instance has caused itself. After too many of them it has what this one causes come
// later, and returns by how much.
func (i *Actor) paced(result *statemachine.Result) time.Duration {
	i.hasOwnSteps = true
	now := i.env.Clock()
	delay := i.env.Steps.Step(i.id, result.Cost, now)
	if delay > 0 && (result.Instance.Postpone(&i.state, now.Add(delay)) || len(result.Deliveries) > 0) {
		i.env.Incidents.Note(&incident.Row{
			Kind: incident.Loop, Workflow: i.workflowID, Version: i.of.Version, Place: i.name, Instance: i.name, Event: string(result.Entry.Event),
			Error: pace.Endless, First: now, Last: now, Count: 1,
		})
	}
	return delay
}

func (i *Actor) mayAdd(result *statemachine.Result) error {
	if result.Outcome == statemachine.Ignored {
		return nil
	}
	return i.env.CountRefusal(i.env.Quotas.MayAdd(i.state.Sequence))
}

// commitResult commits the step of an event that nobody sent. What it sends out leaves after a delay.
func (i *Actor) commitResult(c *Call, result *statemachine.Result, writes func(*persistence.Batch), delay time.Duration) error {
	ch := &change{outcome: outcomeOf(result), cause: internal, writes: writes}
	ch.delay = delay
	i.log(result.Logs)
	i.env.Counts.Events.Add(1)
	return i.commit(c, ch, false)
}

// ChangeIncident is the request to retry an event that failed, or to drop it.
type ChangeIncident struct {
	Caller *identity.Principal
	ID     statemachine.ElementID
	Drop   bool
}

func (req ChangeIncident) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	if !slices.ContainsFunc(i.state.Timers(), func(t statemachine.Timer) bool { return t.ID == req.ID && t.Failed }) {
		return failure.ErrNotFound
	}
	if req.Drop {
		next, err := i.of.Drop(&i.state, req.ID)
		if err != nil {
			return failure.Errorf(failure.ErrInternal, "%w", err)
		}
		return i.commit(c, &change{outcome: outcome{next: next}, cause: internal}, false)
	}
	if failed, ok := i.state.FailedJob(req.ID); ok {
		return i.retryJob(c, failed)
	}
	result, err := i.of.Fire(&i.state, req.ID, i.env.Clock())
	if err != nil {
		again := failure.Of(failure.OfStep(err)) // it stays an incident
		_, hidden := i.visible(&message.Load{Caller: req.Caller})
		reason := pending.Reason(err.Error(), hidden == nil)
		return &failure.Error{Kind: again.Kind, Reason: "the event failed again: " + reason, Cause: again}
	}
	if err := i.mayAdd(&result); err != nil {
		return err
	}
	return i.commitResult(c, &result, nil, 0)
}

func (i *Actor) retryJob(c *Call, id statemachine.ElementID) error {
	next, ok := i.state.RetryJob(id)
	if !ok {
		return failure.ErrNotFound
	}
	return i.commit(c, &change{outcome: outcome{next: next}, cause: internal}, false)
}

// TellOutcome is the request to tell an instance what happened to what it sent out.
type TellOutcome struct{ *outbox.Outcome }

func (req TellOutcome) span() *trace.Span { return below(req.Span, "callback", req.Workflow, "") }

func (req TellOutcome) run(i *Actor, c *Call) error {
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
		i.enqueue(w, c, nil)
		return nil
	}
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	if req.Refused != "" {
		begun := time.Now()
		defer func() { i.env.Work.Took(req.Workflow, time.Since(begun)) }() // its message had a turn
		return i.hearRefusal(c, req.Outcome, stored)
	}
	now := i.env.Clock()
	result, err := i.of.Receive(&i.state, req.Event, req.Data, now)
	return i.commitInternal(c, result, err, req.Writes, func() (statemachine.Instance, error) {
		return i.of.FailEvent(&i.state, req.Event, req.Data, now), nil
	})
}

// hearRefusal takes that a message will never be carried out.
func (i *Actor) hearRefusal(c *Call, o *outbox.Outcome, stored []byte) error {
	row, err := outbox.Parse(stored)
	if err != nil {
		return failure.Errorf(failure.ErrExecution, "%w", err)
	}
	m, err := child.Parse(row.Body)
	if err != nil || m.Start == nil {
		i.env.Log.Error().Err(err).Str("workflow", i.workflowID).Str("instance", i.name).Str("reason", o.Refused).Msg("a message to another instance is dropped")
		return i.commit(c, &change{outcome: outcome{next: i.state}, cause: internal, writes: o.Writes}, false)
	}
	brought := child.Brought(child.Ref{Workflow: m.Start.To, Instance: m.Start.Child}, "message", data.AppendString(nil, o.Refused))
	return i.hearNotice(c, m.ElementID(), true, brought, o.Writes)
}

// hearNotice takes what happened to a child, in one commit with writes.
func (i *Actor) hearNotice(c *Call, part statemachine.ElementID, failed bool, brought data.Value, writes func(*persistence.Batch)) error {
	now := i.env.Clock()
	result, err := i.of.Callback(&i.state, part, failed, brought, now)
	return i.commitInternal(c, result, err, writes, func() (statemachine.Instance, error) {
		return i.of.FailCallback(&i.state, part, failed, brought, now)
	})
}

// CreateUnasked is the request of Router.createUnasked. Its actor is new. Done is called when it is known what happened to it.
type CreateUnasked struct {
	Piece  *pace.Piece              // nil: nobody is asked to rest behind it
	Of     statemachine.Creation    // without ID and Now
	Writes func(*persistence.Batch) // what else is in the commit; nil: nothing
	May    func() error             // asked before it is created; nil: nobody is
	Done   func()
	Span   *trace.Span // of the message or schedule that asks for it; nil: nobody follows that
}

func (req CreateUnasked) span() *trace.Span { return req.Span }

func (req CreateUnasked) run(i *Actor, c *Call) error {
	defer req.Piece.Done(time.Now())
	of := req.Of
	of.ID, of.Now, of.Internal = i.name, i.env.Clock(), true
	result, err := i.of.Create(of)
	if err != nil {
		return i.undone(err, "", of.Caller.Name())
	}
	i.log(result.Logs)
	i.env.Counts.Creates.Add(1)
	return i.commit(c, &change{outcome: outcomeOf(&result), cause: cause{caller: result.Entry.User}, created: true, writes: req.Writes}, false)
}

// SenderOf is the question what the sender of a message knows, and, where that is a parent, of a child. It is written before the answer.
type SenderOf struct {
	Part statemachine.ElementID
	*invoke.Sender
}

func (req SenderOf) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	req.Version, req.Parent = i.of.Version, i.state.Parent()
	req.Wants = slices.ContainsFunc(i.state.Children(), func(k statemachine.Child) bool { return k.ID == req.Part && k.Status == statemachine.ChildRuns })
	i.deliver(c, nil)
	return nil
}

// Inside is the request to take a message of a parent or child.
type Inside struct {
	*child.Message
	Piece *pace.Piece
	Span  *trace.Span // nil: nobody follows it
}

func (req Inside) span() *trace.Span { return req.Span }

func (req Inside) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	defer req.Piece.Done(time.Now())
	if req.News != nil {
		output, err := child.Value(req.News.Output)
		if err != nil {
			return failure.Refuse(failure.ErrInvalid, "%w", err)
		}
		return i.hearNotice(c, req.ElementID(), req.News.Failed, child.Brought(req.From, "output", output), nil)
	}
	if !req.IsFor(&i.state) {
		i.deliver(c, nil) // it is nobody's, or another one's
		return nil
	}
	if req.Event != nil {
		return i.hear(c, req.Message)
	}
	result, err := i.of.Cancel(&i.state, req.End.By, i.env.Clock())
	if errors.Is(err, statemachine.ErrEnded) || err == nil && result.Outcome == statemachine.Ignored {
		i.deliver(c, nil)
		return nil
	}
	if err != nil {
		return failure.OfStep(err)
	}
	return i.commitResult(c, &result, nil, 0)
}

// hear takes an event of a child or of the parent.
func (i *Actor) hear(c *Call, m *child.Message) error {
	h, now := m.Heard(), i.env.Clock()
	result, err := i.of.Hear(&i.state, h, now)
	return i.commitInternal(c, result, err, nil, func() (statemachine.Instance, error) {
		return i.of.FailHear(&i.state, h, now)
	})
}

func (req CreateUnasked) traits() traits { return traits{done: req.Done, creates: true} }
