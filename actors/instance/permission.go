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

// Who may do what is decided here (for tasks, in package message), by the workflow's rules of now, which are looked up once per request:
// MayCreate, MaySend and MayRead say before the mailbox what the rules say of every instance, and an access what they say of this one.

// MayCreate asks whether somebody may create instances. A repetition is answered also when the file has gone.
func (e *Env) MayCreate(req *message.Create) error {
	rules := e.Catalog.Creatable
	if req.Retry.Key != "" {
		rules = e.Catalog.Newest
	}
	d, err := rules(req.WorkflowID)
	if err != nil {
		return err
	}
	return req.May(d, e.Clock())
}

// MaySend asks whether somebody may send events to instances of a workflow at all.
func (e *Env) MaySend(req *message.Event, now time.Time) error {
	rules, err := e.Catalog.Newest(req.WorkflowID)
	if err != nil {
		return err
	}
	return req.May(rules, now)
}

// MayRead asks whether somebody may read instances of a workflow at all.
func (e *Env) MayRead(req *message.Load) error {
	rules, err := e.Catalog.Newest(req.WorkflowID)
	if err != nil {
		return err
	}
	if rules.ReadRight(req.See(rules, req.Caller), e.Clock()) == statemachine.Denied {
		return failure.MayNotRead(req.WorkflowID)
	}
	return nil
}

// access is what a caller may do with an instance, which is loaded.
type access struct {
	*Actor
	caller *identity.Principal
	as     *statemachine.Caller
	rules  *statemachine.Definition
	now    time.Time
}

// access looks the rules up where nobody has before the mailbox.
func (i *Actor) access(caller *identity.Principal, rules *statemachine.Definition, as *statemachine.Caller) (a access, err error) {
	if err = i.ensureLoaded(); err == nil && rules == nil {
		rules, err = i.env.Catalog.Newest(i.workflowID)
	}
	if err == nil && as == nil {
		as = catalog.CallerOf(caller)
	}
	return access{i, caller, as, rules, i.env.Clock()}, err
}

// visible is access for a caller who may see the instance: failure.ErrNotFound for others.
func (i *Actor) visible(req *message.Load) (access, error) {
	rules, as := req.Seen()
	a, err := i.access(req.Caller, rules, as)
	if err == nil {
		err = a.mayRead()
	}
	req.ByPrivilege = err == nil && a.needsPrivilege()
	return a, err
}

// needsPrivilege reports whether the caller is an operator who could not read the instance without privileges.
func (a *access) needsPrivilege() bool {
	return a.caller.IsOperator() && !a.rules.MayRead(a.view(), catalog.WithoutPrivileges(a.as), a.now)
}

func (a *access) view() statemachine.View { return statemachine.View{Instance: &a.state, Of: a.of} }

func (a *access) mayRead() error {
	if !a.rules.MayRead(a.view(), a.as, a.now) {
		return failure.ErrNotFound
	}
	return nil
}

// maySend asks about an event, whichever it is, and the sequence numbers of If-Match.
func (a *access) maySend(ifMatch []uint64) error {
	if !a.rules.MaySend(a.view(), a.as, a.now) {
		return a.mayNotSend("", failure.ErrNotFound)
	}
	if ifMatch != nil && !slices.Contains(ifMatch, a.state.Sequence) {
		return failure.ErrPrecondition
	}
	return nil
}

// mayNotSend is the refusal of an event; hidden is that for who may not see the instance.
func (a *access) mayNotSend(event string, hidden error) error {
	return catalog.MayNotSend(a.rules, a.view(), a.as, event, a.now, hidden)
}

func (a *access) available() []statemachine.Available {
	if !a.rules.MaySend(a.view(), a.as, a.now) {
		return nil
	}
	return a.view().Available(a.as, a.now)
}

func (a *access) maySee() error {
	if err := a.mayRead(); err != nil || a.form == nil {
		return failure.ErrNotFound
	}
	return nil
}

// mayWrite asks whether the caller has the privilege to write forms, and a right to send events of the workflow. It
// asks for no right to see the form: after a submission, which may be repeated, the caller perhaps does not any more.
func (a *access) mayWrite(privilege identity.Privilege) error {
	if privilege != "" && !a.caller.Has(privilege) {
		return failure.Needs(privilege)
	}
	if a.rules.SendRight(a.as, a.now) == statemachine.Denied {
		return failure.ErrForbidden
	}
	return nil
}

// maySubmit asks whether the event that submits the form would be taken now: failure.ErrNotAllowed,
// failure.ErrForbidden or req.Refusal if not.
func (a *access) maySubmit(req *form.Request) error {
	if err := a.maySend(nil); err != nil {
		return err
	}
	if req.Refusal != nil {
		return req.Refusal
	}
	for _, e := range a.view().Available(a.as, a.now) {
		if string(e.Name) == req.Event && e.Guard != statemachine.GuardFalse && len(e.Transitions) > 0 {
			return nil
		}
	}
	return failure.ErrNotAllowed
}

// mayDraft asks what SaveDraft requires. Anyone who sees the form can drop a draft that is left over.
func (a *access) mayDraft(req *message.Draft) error {
	if err := a.maySee(); err != nil || req.Data == nil {
		return err
	}
	if err := a.mayWrite(req.Privilege); err != nil {
		return err
	}
	return a.maySubmit(&req.Request)
}

func (a *access) whole() *task.Whole {
	return &task.Whole{Workflow: a.workflowID, Of: a.of, Rules: a.rules, State: &a.state}
}

// mayFill asks for the form of a task. With failure.ErrClaimed it returns the task and its instance all the same.
func (a *access) mayFill(req *message.TaskForm) (*statemachine.Task, *task.Whole, error) {
	t, err := req.Find(&a.state)
	if err != nil {
		return nil, nil, err
	}
	whole := a.whole()
	return t, whole, req.MayFill(whole, t, a.now)
}

func (a *access) mayDeleteForm() error {
	if err := a.maySee(); err != nil {
		return err
	}
	switch {
	case a.form.By != string(a.caller.ID):
		return failure.ErrNotFound
	case a.form.Moved(), a.form.SubmissionID != "":
		return failure.Refuse(failure.ErrNotAllowed, "the form has been submitted, and what was submitted stays")
	case a.state.Parent() != nil, len(a.state.Children()) > 0:
		return failure.ErrInUse
	}
	return nil
}
