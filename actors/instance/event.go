package instance

import (
	"errors"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/incident"
	"troupe/actors/internal/retry"
	"troupe/actors/message"
	"troupe/actors/trace"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Create is the request of Router.Create. Its actor is new and nobody else has its id. Done is called when it is known what
// happened to it.
type Create struct {
	*message.Create
	Key   string         // the business key; "" for none
	Event *message.Event // asked for the instance by its key, and is its first; nil: a create was asked for
	Done  func()
}

func (req Create) run(i *Actor, c *Call) error {
	result, err := i.of.Create(statemachine.Creation{
		ID: i.name, Key: req.Key, Caller: catalog.CallerOf(req.Caller), Public: req.Public, Private: req.Private, Now: i.env.Clock(),
	})
	if err != nil {
		return i.undone(err, "", string(req.Caller.ID))
	}
	of := cause{caller: string(req.Caller.ID), retry: req.Retry, byKey: req.Event != nil}
	ch := &change{outcome: outcomeOf(&result), cause: of, created: true, form: req.Form}
	var first statemachine.Result
	if req.Event != nil {
		if first, err = i.firstEvent(req.Event, &result.Instance); err != nil {
			return err
		}
		ch.then = &change{outcome: outcomeOf(&first), cause: cause{caller: of.caller, decided: first.Decided}}
		i.env.Counts.Events.Add(1)
	}
	i.log(result.Logs)
	i.log(first.Logs)
	i.env.Counts.Creates.Add(1)
	i.hasHistory = req.WithHistory // NB: it is empty, and known to be
	return i.commit(c, ch, req.WithHistory)
}

// firstEvent gives the state machine the event that creates its instance, which is as created then. An error leaves
// nothing of it.
func (i *Actor) firstEvent(req *message.Event, created *statemachine.Instance) (result statemachine.Result, err error) {
	if req.IfMatch != nil { // NB: there was no instance
		return result, failure.ErrPrecondition
	}
	i.state, i.loaded = *created, true
	defer func() { i.state, i.loaded = statemachine.Instance{}, false }()
	rules, as := req.Seen()
	a, err := i.access(req.Caller, rules, as)
	if err == nil {
		err = a.maySend(nil)
	}
	if err == nil {
		result, err = i.take(req, &a)
	}
	return result, err
}

// ErrReleased: the instance has ended, and its business key is free. It never leaves the router.
var ErrReleased = errors.New("the key of the instance is free again")

// Send is the request of Send.
type Send struct{ *message.Event }

func (req Create) span() *trace.Span {
	return below(req.Span, "create", req.WorkflowID, "")
}

func (req Send) span() *trace.Span {
	return below(req.Span, "event", req.WorkflowID, req.InstanceID)
}

func below(of *trace.Span, name, workflow, instance string) *trace.Span {
	if of == nil {
		return nil
	}
	s := of.Below(name)
	s.Set("troupe.workflow", workflow)
	if instance != "" {
		s.Set("troupe.instance", instance)
	}
	return s
}

func (req Send) run(i *Actor, c *Call) error { return i.step(c, req.Event, nil) }

// step gives the state machine an event; submits is nil without a form.
func (i *Actor) step(c *Call, req *message.Event, submits submission) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	first, err := i.firstReply(req)
	if err != nil {
		return err
	}
	rules, as := req.Seen()
	a, err := i.access(req.Caller, rules, as)
	c.byPrivilege = err == nil && a.needsPrivilege()
	if first != nil && submits == nil {
		i.deliver(c, first)
		return nil
	}
	if req.Key != "" && i.of.IsOver(&i.state) {
		return ErrReleased
	}
	switch {
	case err != nil:
	case first != nil:
		if err = submits.mayRepeat(a); err == nil {
			i.deliver(c, first)
			return nil
		}
	case submits != nil:
		err = submits.may(a)
	}
	if err == nil {
		err = a.maySend(req.IfMatch)
	}
	if err != nil {
		return err
	}
	result, err := i.take(req, &a)
	if err != nil {
		return err
	}
	if submits != nil && result.Outcome != statemachine.Moved {
		return failure.ErrNotAllowed
	}
	if result.Outcome != statemachine.Ignored && submits == nil {
		if err := i.env.CountRefusal(i.env.Quotas.MayAdd(i.state.Sequence)); err != nil {
			return err
		}
	}
	if i.hasOwnSteps {
		i.env.Steps.Calm(i.id)
		i.hasOwnSteps = false
	}
	i.log(result.Logs)
	i.env.Counts.Events.Add(1)
	ch := &change{outcome: outcomeOf(&result), cause: cause{caller: string(req.Caller.ID), retry: req.Retry, byKey: req.Key != "", decided: result.Decided}}
	if submits != nil {
		ch.gone = append(ch.gone, submits.draft(i))
	}
	if !ch.hasEntry && req.Retry.Key == "" {
		reply, err := i.reply(req.WithHistory)
		if err != nil {
			return err
		}
		i.deliver(c, reply)
		return nil
	}
	return i.commit(c, ch, req.WithHistory)
}

// take gives the state machine the event of a caller who may send some.
func (i *Actor) take(req *message.Event, a *access) (statemachine.Result, error) {
	name, ok := statemachine.ParseEventName(req.Name)
	if !ok {
		return statemachine.Result{}, failure.Refuse(failure.ErrInvalid, "%w: %s", statemachine.ErrUnknownEvent, data.Quote(req.Name))
	}
	result, err := i.of.Step(&i.state, statemachine.Event{
		Name: name, ID: req.ID, Data: req.Data, Caller: a.as, Now: a.now,
	})
	if errors.Is(err, statemachine.ErrForbidden) {
		err = a.mayNotSend(req.Name, failure.ErrForbidden)
	} else if err != nil {
		err = i.undone(err, req.Name, string(req.Caller.ID))
	}
	return result, err
}

// firstReply returns the answer that the event's idempotency key got before, or nil when it is new.
func (i *Actor) firstReply(req *message.Event) (*message.Reply, error) {
	if req.Retry.Key == "" {
		return nil, nil
	}
	store, err := i.rows()
	if err != nil {
		return nil, err
	}
	i.scratch = key.Reply(i.scratch[:0], i.shard, i.id, retry.DigestOf(string(req.Caller.ID), req.Retry.Key))
	first, err := retry.Load(store, i.scratch, req.Retry.Fingerprint)
	if first == nil || err != nil {
		return nil, err
	}
	return i.repeated(first, req.WithHistory)
}

// undone is the error of a step that failed for anyone who asked for it. event is "" for a create.
func (i *Actor) undone(err error, event, user string) error {
	f := i.of.FaultOf(err)
	if f == nil {
		return failure.OfStep(err)
	}
	i.env.Counts.Incidents.Add(1)
	return i.env.Incidents.Undone(f, &incident.Row{Workflow: i.workflowID, Version: i.of.Version, Instance: i.name, Event: event, User: user, Last: i.env.Clock()})
}

type submission interface {
	// mayRepeat asks who repeats one that has its answer.
	mayRepeat(access) error
	// may asks about a new one.
	may(access) error
	// draft is the key of the draft that goes with it.
	draft(*Actor) []byte
}

func (req Create) traits() traits { return traits{done: req.Done, creates: true} }

func (req Send) eventName() string { return req.Name }
