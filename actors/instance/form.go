package instance

import (
	"cmp"
	"errors"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/trace"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

func (a *access) formView(req *form.Request) (*form.View, error) {
	i := a.Actor
	if i.form == nil {
		return nil, failure.ErrNotFound
	}
	draft, err := i.loadDraft(i.formDraft(req.Caller.ID))
	if err != nil {
		return nil, err
	}
	return &form.View{
		Form: i.form, Sequence: i.state.Sequence, When: i.state.CreatedAt.UnixMilli(), Public: i.state.Public,
		States: i.of.States(&i.state), Nodes: statemachine.NodeNames(i.of.Positions(&i.state)), Draft: draft,
		Editable: a.mayWrite(req.Privilege) == nil && a.maySubmit(req) == nil, ByPrivilege: a.needsPrivilege(),
	}, nil
}

type draftPlace struct {
	key []byte
	// after is a time in Unix milliseconds: older drafts do not count any more.
	after int64
}

// formDraft is the place of a user's draft for the instance as a form. One from before the form left its start does not
// count: what was submitted since is newer.
func (i *Actor) formDraft(user identity.UserID) draftPlace {
	return draftPlace{key.Draft(nil, i.shard, i.id, string(user)), i.form.LeftAt}
}

func (i *Actor) loadDraft(at draftPlace) (*form.Draft, error) {
	store, err := i.rows()
	if err != nil {
		return nil, err
	}
	return form.LoadDraft(store, at.key, at.after)
}

// SubmitForm is the request of Submit.
type SubmitForm struct{ *message.Submit }

func (req SubmitForm) span() *trace.Span {
	return below(req.Span, "submit", req.WorkflowID, req.InstanceID)
}

func (req SubmitForm) run(i *Actor, c *Call) error {
	event := &message.Event{
		Caller: req.Caller, Name: req.Event, Data: req.Data, Retry: req.Retry, WithHistory: req.WithHistory,
	}
	return i.step(c, event, submittedForm{&req.Request})
}

type submittedForm struct{ *form.Request }

func (f submittedForm) mayRepeat(a access) error { return a.mayWrite(f.Privilege) }

func (f submittedForm) may(a access) error {
	return cmp.Or(a.maySee(), a.mayWrite(f.Privilege), f.Refusal)
}

func (f submittedForm) draft(i *Actor) []byte { return i.formDraft(f.Caller.ID).key }

// SaveDraft is the request of SaveDraft.
type SaveDraft struct{ *message.Draft }

func (req SaveDraft) span() *trace.Span {
	return below(req.Span, "draft", req.WorkflowID, req.InstanceID)
}

func (req SaveDraft) run(i *Actor, c *Call) error {
	a, err := i.access(req.Caller, nil, nil)
	if err == nil {
		err = a.mayDraft(req.Draft)
	}
	if err != nil {
		return err
	}
	return i.keepDraft(c, i.formDraft(req.Caller.ID), req.Draft)
}

// keepDraft keeps or drops a draft, if the one that there is allows it.
func (i *Actor) keepDraft(c *Call, at draftPlace, req *message.Draft) error {
	before := &form.Draft{}
	if req.Data != nil || req.Any() { // what cannot be read can be dropped
		present, err := i.loadDraft(at)
		if err != nil {
			return err
		}
		if !req.Holds(present) {
			return failure.ErrPrecondition
		}
		if present != nil {
			before = present
		}
	}
	now := i.env.Clock().UnixMilli()
	w := i.writes()
	if req.Data == nil {
		w.Delete(at.key)
	} else {
		// NB: the clock keeps revisions apart that have a submission in between, and a draft from being older than the
		// move that it follows.
		i.revision = max(before.Revision+1, i.revision+1, uint64(now))
		req.Saved = form.Draft{Revision: i.revision, SavedAt: max(now, at.after+1), Template: req.Template, Data: req.Data}
		w.Set(at.key, req.Saved.Append(nil))
	}
	i.enqueue(w, c, &message.Reply{WorkflowID: i.workflowID, InstanceID: i.name, Sequence: i.state.Sequence})
	return nil
}

func (a *access) taskView(req *message.TaskForm) (*message.TaskView, error) {
	i := a.Actor
	t, whole, may := a.mayFill(req)
	if may != nil && !errors.Is(may, failure.ErrClaimed) {
		return nil, may
	}
	draft, err := i.loadDraft(i.taskDraft(t.ID, req.Caller.ID))
	if err != nil {
		return nil, err
	}
	store, err := i.rows()
	if err != nil {
		return nil, err
	}
	requester, err := task.LoadRequester(store, i.shard, i.id)
	if err != nil {
		return nil, err
	}
	item := whole.ItemOf(t, a.as, a.now, requester)
	return &message.TaskView{
		Item: item, Of: i.of, Sequence: i.state.Sequence, Public: i.state.Public, States: i.of.States(&i.state), Draft: draft,
		Editable: may == nil && req.Refusal == nil && len(item.Events) > 0, ByPrivilege: a.needsPrivilege(),
	}, nil
}

func (i *Actor) taskDraft(id statemachine.ElementID, user identity.UserID) draftPlace {
	return draftPlace{key: key.TaskDraft(nil, i.shard, i.id, id.Sequence, id.Number, string(user))}
}

// SaveTaskDraft is the request of SaveTaskDraft.
type SaveTaskDraft struct {
	*message.TaskForm
	Draft *message.Draft
}

func (req SaveTaskDraft) span() *trace.Span { return ofTask(req.TaskForm, "task draft") }

func (req SaveTaskDraft) run(i *Actor, c *Call) error {
	a, err := i.visible(&message.Load{Caller: req.Caller})
	if err != nil {
		return err
	}
	t, _, err := a.mayFill(req.TaskForm)
	dropsOnly := req.Draft.Data == nil && errors.Is(err, failure.ErrClaimed) // NB: what is left over can be dropped
	if err != nil && !dropsOnly {
		return err
	}
	if req.Draft.Data != nil && req.Refusal != nil {
		return req.Refusal
	}
	return i.keepDraft(c, i.taskDraft(t.ID, req.Caller.ID), req.Draft)
}

// SubmitTask is the request of SubmitTask.
type SubmitTask struct{ *message.TaskSubmit }

func (req SubmitTask) span() *trace.Span { return ofTask(&req.TaskForm, "task submit") }

func ofTask(req *message.TaskForm, name string) *trace.Span {
	if req.Span == nil {
		return nil
	}
	return below(req.Span, name, req.Task.Workflow, req.Task.InstanceID())
}

func (req SubmitTask) run(i *Actor, c *Call) error {
	event := &message.Event{
		Caller: req.Caller, Name: req.Event, Data: req.Data, Retry: req.Retry, IfMatch: req.IfMatch, WithHistory: req.WithHistory,
	}
	return i.step(c, event, submittedTask(req))
}

type submittedTask struct{ *message.TaskSubmit }

func (s submittedTask) mayRepeat(a access) error { return a.mayWrite("") }

func (s submittedTask) may(a access) error {
	if err := a.mayRead(); err != nil {
		return err
	}
	t, _, err := a.mayFill(&s.TaskForm)
	switch {
	case err != nil:
		return err
	case s.Event != "" && !slices.Contains(a.of.TaskSends(t.At), statemachine.EventName(s.Event)):
		return failure.Refuse(failure.ErrInvalid, "the task does not accept the event %s", data.Quote(s.Event))
	}
	return s.Refusal
}

func (s submittedTask) draft(i *Actor) []byte {
	return i.taskDraft(s.Task.Task, s.Caller.ID).key
}
