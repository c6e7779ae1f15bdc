package simulation

import (
	"errors"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Create has a user create an instance. public and private are the two parts of the data in the request; absent when it has none.
func (w *World) Create(as, workflow string, public, private data.Value) (*Instance, error) {
	in, result, err := w.create(as, workflow, public, private)
	if err != nil {
		return nil, err
	}
	w.instances = append(w.instances, in)
	in.adopt(&result, 0)
	return in, w.settle()
}

// create makes an instance that is not in the world yet.
func (w *World) create(as, workflow string, public, private data.Value) (*Instance, statemachine.Result, error) {
	var none statemachine.Result
	who, err := w.o.User(as)
	if err != nil {
		return nil, none, err
	}
	d, err := w.Definition(workflow, 0)
	if err != nil {
		return nil, none, err
	}
	req := &message.Create{Caller: who, WorkflowID: workflow}
	if err := req.May(d, w.now); err != nil {
		return nil, none, err
	}
	business, err := d.KeyOf(public)
	if err != nil {
		return nil, none, failure.OfStep(err)
	}
	if w.ByKey(workflow, business) != nil {
		return nil, none, failure.Refuse(failure.ErrKeyTaken, "another instance of %s has the key %s", workflow, data.Quote(business))
	}
	in := w.newInstance(w.draw(), d, as)
	result, err := d.Create(statemachine.Creation{
		ID: in.name, Key: business, Caller: catalog.CallerOf(who), Public: public, Private: private, Now: w.now,
	})
	if err != nil {
		return nil, none, failure.OfStep(err)
	}
	return in, result, nil
}

// ByKey returns the instance of a workflow that has a business key and has not ended; nil when there is none.
func (w *World) ByKey(workflow, business string) *Instance {
	for _, in := range w.instances {
		if business != "" && in.Workflow() == workflow && in.state.Key() == business && !in.of.IsOver(&in.state) {
			return in
		}
	}
	return nil
}

// Send has a user send an event to an instance. given is its data; absent when it has none.
func (w *World) Send(as string, in *Instance, event string, given data.Value) error {
	result, err := in.step(as, event, given)
	if err != nil {
		return err
	}
	w.steps.Calm(in.id)
	in.loop = nil
	if result.Outcome != statemachine.Ignored {
		in.adopt(&result, 0)
	}
	return w.settle()
}

// SendByKey is Send to the instance that has a business key. Where none has, one is created with the event as its first, of which public
// must make that key.
func (w *World) SendByKey(as, workflow, business, event string, given, public, private data.Value) (*Instance, error) {
	if in := w.ByKey(workflow, business); in != nil {
		return in, w.Send(as, in, event, given)
	}
	in, created, err := w.create(as, workflow, public, private)
	if err != nil {
		return nil, err
	}
	if created.Instance.Key() != business {
		return nil, failure.Refuse(failure.ErrInvalid, "the key is %s, and create makes it %s", data.Quote(business), data.Quote(created.Instance.Key()))
	}
	in.state = created.Instance
	first, err := in.step(as, event, given)
	if err != nil {
		return nil, err
	}
	w.instances = append(w.instances, in)
	in.adopt(&created, 0)
	if first.Outcome != statemachine.Ignored {
		in.adopt(&first, 0)
	}
	return in, w.settle()
}

// step asks whether a user may send an event, and what it makes of the instance, which stays as it is.
func (in *Instance) step(as, event string, given data.Value) (statemachine.Result, error) {
	var none statemachine.Result
	w := in.world
	who, err := w.o.User(as)
	if err != nil {
		return none, err
	}
	rules, err := w.Definition(in.Workflow(), 0)
	if err != nil {
		return none, err
	}
	req := &message.Event{Caller: who, WorkflowID: in.Workflow()}
	if err := req.May(rules, w.now); err != nil {
		return none, err
	}
	_, c := req.Seen()
	if !rules.MaySend(in.view(), c, w.now) {
		return none, catalog.MayNotSend(rules, in.view(), c, "", w.now, failure.ErrNotFound)
	}
	name, ok := statemachine.ParseEventName(event)
	if !ok {
		return none, failure.Refuse(failure.ErrInvalid, "%w: %s", statemachine.ErrUnknownEvent, data.Quote(event))
	}
	result, err := in.of.Step(&in.state, statemachine.Event{Name: name, Data: given, Caller: c, Now: w.now})
	if errors.Is(err, statemachine.ErrForbidden) {
		return none, catalog.MayNotSend(rules, in.view(), c, event, w.now, failure.ErrForbidden)
	}
	if err != nil {
		return none, failure.OfStep(err)
	}
	return result, nil
}

// ChangeTask has a user claim, release or assign a task; to is who gets it, of message.Assign.
func (w *World) ChangeTask(as string, in *Instance, id statemachine.ElementID, action message.TaskAction, to string) error {
	who, err := w.o.User(as)
	if err != nil {
		return err
	}
	whole, err := in.whole()
	if err != nil {
		return err
	}
	req := &message.TaskChange{Caller: who, Action: action}
	if to != "" {
		req.To, _ = w.o.User(to) // NB: nobody is refused as who is no candidate
	}
	if c := catalog.CallerOf(who); !whole.MayRead(c, w.now) && (!c.OverridesClaims || action == message.Claim) {
		return failure.ErrNotFound
	}
	t := task.Find(&in.state, id)
	if t == nil {
		return failure.ErrNotFound
	}
	assignee, _, err := req.Decide(whole, t, w.now)
	if err == nil && assignee != t.Assignee {
		in.state, err = in.of.Assign(&in.state, id, assignee)
	}
	return err
}

func (w *World) newInstance(id key.ID, d *statemachine.Definition, requester string) *Instance {
	in := &Instance{world: w, id: id, of: d, requester: requester}
	in.name = nameOf(id)
	return in
}
