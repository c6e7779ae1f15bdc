package instance

import (
	"slices"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/statemachine"
)

// view is the instance as rights see it.
func (i *Actor) view() statemachine.View {
	return statemachine.View{Instance: &i.state, Of: i.of}
}

// mayRead asks whether the caller may see the instance, and loads it.
func (i *Actor) mayRead(caller *identity.Principal) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	newest, err := i.env.Catalog.Newest(i.workflowID)
	if err != nil {
		return err
	}
	if !newest.MayRead(i.view(), catalog.CallerOf(caller), i.env.Clock()) {
		return failure.ErrNotFound
	}
	return nil
}

// mayReceive asks the workflow's rules about this instance, and If-Match.
func (i *Actor) mayReceive(req *message.Event, caller *statemachine.Caller, now time.Time) error {
	newest, err := i.env.Catalog.Newest(i.workflowID)
	if err != nil {
		return err
	}
	if !newest.MaySend(i.view(), caller, now) {
		return i.env.Catalog.MayNotSend(i.workflowID, i.view(), caller, "", now, failure.ErrNotFound)
	}
	if req.IfMatch != nil && !slices.Contains(req.IfMatch, i.state.Sequence) {
		return failure.ErrPrecondition
	}
	return nil
}

// mayWrite asks whether the caller sees the form, has the privilege to write it, and
// has a right to send events of the workflow: failure.ErrNotFound or
// failure.ErrForbidden if not.
func (i *Actor) mayWrite(req *form.Request) error {
	if err := i.maySee(req.Caller); err != nil {
		return err
	}
	return i.mayWriteForms(req)
}

// maySee asks whether the instance is a form that the caller sees.
func (i *Actor) maySee(caller *identity.Principal) error {
	if err := i.mayRead(caller); err != nil {
		return err
	}
	if i.form == nil {
		return failure.ErrNotFound
	}
	return nil
}

// mayWriteForms makes the checks of mayWrite without visibility: for a caller who is
// known to see the form, and for a repeated submission after which the caller no longer
// does.
func (i *Actor) mayWriteForms(req *form.Request) error {
	newest, err := i.env.Catalog.Newest(i.workflowID)
	if err != nil {
		return err
	}
	if req.Privilege != "" && !req.Caller.Has(req.Privilege) {
		return failure.Needs(req.Privilege)
	}
	if newest.SendRight(catalog.CallerOf(req.Caller), i.env.Clock()) == statemachine.Denied {
		return failure.ErrForbidden
	}
	return nil
}

// maySubmit asks whether the event that submits the form would be taken now:
// failure.ErrNotAllowed, failure.ErrForbidden or req.Refusal if not.
func (i *Actor) maySubmit(req *form.Request) error {
	caller := catalog.CallerOf(req.Caller)
	if err := i.mayReceive(&message.Event{}, caller, i.env.Clock()); err != nil {
		return err
	}
	if req.Refusal != nil {
		return req.Refusal
	}
	for _, e := range i.view().Available(caller, i.env.Clock()) {
		if string(e.Name) == req.Event && e.Guard != statemachine.GuardFalse && len(e.Transitions) > 0 {
			return nil
		}
	}
	return failure.ErrNotAllowed
}

// mayDraft asks what SaveDraft demands. Whoever sees the form can drop a draft that is
// left over.
func (i *Actor) mayDraft(req *message.Draft) error {
	if req.Data == nil {
		return i.maySee(req.Caller)
	}
	if err := i.mayWrite(&req.Request); err != nil {
		return err
	}
	return i.maySubmit(&req.Request)
}

// whole is the instance with the rules of now.
func (i *Actor) whole() (*task.Whole, error) {
	newest, err := i.env.Catalog.Newest(i.workflowID)
	if err != nil {
		return nil, err
	}
	return &task.Whole{Workflow: i.workflowID, Of: i.of, Rules: newest, State: &i.state}, nil
}

// mayFill asks what TaskForm and MayFill do. With failure.ErrClaimed it returns the task and its instance all the same.
func (i *Actor) mayFill(req *message.TaskForm) (*statemachine.Task, *task.Whole, error) {
	if err := i.mayRead(req.Caller); err != nil {
		return nil, nil, err
	}
	t, err := req.Find(&i.state)
	if err != nil {
		return nil, nil, err
	}
	whole, err := i.whole()
	if err != nil {
		return nil, nil, err
	}
	return t, whole, req.MayFill(whole, t, i.env.Clock())
}

// mayDeleteForm asks what DeleteForm demands.
func (i *Actor) mayDeleteForm(caller *identity.Principal) error {
	if err := i.maySee(caller); err != nil {
		return err
	}
	switch {
	case i.form.By != string(caller.ID):
		return failure.ErrNotFound
	case i.form.Moved(), i.form.SubmissionID != "":
		return failure.Refuse(failure.ErrNotAllowed, "the form has been submitted, and what was submitted stays")
	}
	return nil
}

// available returns the events for the caller.
func (i *Actor) available(req *message.Load) []statemachine.Available {
	caller, now := catalog.CallerOf(req.Caller), i.env.Clock()
	newest, err := i.env.Catalog.Newest(i.workflowID)
	if err != nil || !newest.MaySend(i.view(), caller, now) {
		return nil
	}
	return i.view().Available(caller, now)
}
