package workflow

import (
	"context"
	"errors"
	"slices"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// TaskForm returns a task with its form: failure.ErrNotFound when it is gone, has no form, or the caller may not read its instance,
// failure.ErrForbidden for who is no candidate. That somebody else has it is no error: then it is not editable.
func (r *Router) TaskForm(_ context.Context, req *message.TaskForm) (*message.TaskView, error) {
	var out *message.TaskView
	_, err := r.ask(req.Task.Workflow, req.Task.InstanceID(), inspect{&message.Load{Caller: req.Caller}, func(i *instance) (err error) {
		out, err = i.taskView(req)
		return err
	}})
	return out, failure.In("form of", "task of "+req.Task.InstanceID(), err)
}

func (i *instance) taskView(req *message.TaskForm) (*message.TaskView, error) {
	t, whole, may := i.mayFill(req)
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
	item := whole.ItemOf(t, catalog.CallerOf(req.Caller), i.router.o.Clock(), requester)
	return &message.TaskView{
		Item: item, Of: i.of, Sequence: i.state.Sequence, Public: i.state.Public, States: i.of.States(&i.state), Draft: draft,
		Editable: may == nil && req.Refusal == nil && len(item.Events) > 0,
	}, nil
}

// whole is the instance with the rules of now.
func (i *instance) whole() (*task.Whole, error) {
	newest, err := i.router.catalog.Newest(i.workflowID)
	if err != nil {
		return nil, err
	}
	return &task.Whole{Workflow: i.workflowID, Of: i.of, Rules: newest, State: &i.state}, nil
}

// taskDraft is the place of a user's draft for a task.
func (i *instance) taskDraft(id statemachine.PartID, user identity.UserID) draftPlace {
	return draftPlace{key: key.TaskDraft(nil, i.shard, i.id, id.Sequence, id.Number, string(user))}
}

// SaveTaskDraft keeps or drops the caller's draft for a task; it is durable when SaveTaskDraft returns. Besides the errors of
// TaskForm: failure.ErrPrecondition, and to keep one failure.ErrClaimed when somebody else has the task.
func (r *Router) SaveTaskDraft(_ context.Context, req *message.TaskDraft) (form.Draft, error) {
	kept := &message.Draft{Data: req.Data, Template: req.Template, DraftCondition: req.DraftCondition}
	err := r.accepting()
	if err == nil {
		_, err = r.ask(req.Task.Workflow, req.Task.InstanceID(), saveTaskDraft{&req.TaskForm, kept})
	}
	if err != nil {
		return form.Draft{}, failure.In("draft for", "task of "+req.Task.InstanceID(), err)
	}
	return kept.Saved, nil
}

// saveTaskDraft is the request of SaveTaskDraft.
type saveTaskDraft struct {
	*message.TaskForm
	draft *message.Draft
}

func (req saveTaskDraft) run(i *instance, c *call) error {
	t, _, err := i.mayFill(req.TaskForm)
	dropsOnly := req.draft.Data == nil && errors.Is(err, failure.ErrClaimed) // NB: what is left over can be dropped
	if err != nil && !dropsOnly {
		return err
	}
	if req.draft.Data != nil && req.Refusal != nil {
		return req.Refusal
	}
	return i.keepDraft(c, i.taskDraft(t.ID, req.Caller.ID), req.draft)
}

// mayFill asks what TaskForm and MayFill do. With failure.ErrClaimed it returns the task and its instance all the same.
func (i *instance) mayFill(req *message.TaskForm) (*statemachine.Task, *task.Whole, error) {
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
	return t, whole, req.MayFill(whole, t, i.router.o.Clock())
}

// SubmitTask sends what was filled in for a task with one of its events, and removes the caller's draft in the same commit. The errors
// are those of SaveTaskDraft and of Send; an event that the task does not have is failure.ErrInvalid, and one that no transition takes
// now failure.ErrNotAllowed, whatever the definition says about it. A repetition gets its first answer also after the task was decided.
func (r *Router) SubmitTask(_ context.Context, req *message.TaskSubmit) (reply *message.Reply, err error) {
	if err = r.accepting(); err == nil {
		reply, err = r.ask(req.Task.Workflow, req.Task.InstanceID(), submitTask{req})
	}
	return reply, failure.In("submit", "task of "+req.Task.InstanceID(), err)
}

// submitTask is the request of SubmitTask.
type submitTask struct{ *message.TaskSubmit }

func (req submitTask) run(i *instance, c *call) error {
	event := &message.Event{
		Caller: req.Caller, Name: req.Event, Data: req.Data, Retry: req.Retry, IfMatch: req.IfMatch, WithHistory: req.WithHistory,
		As: catalog.CallerOf(req.Caller),
	}
	return i.take(c, event, submittedTask(req))
}

// submittedTask is the form of a task.
type submittedTask struct{ *message.TaskSubmit }

func (s submittedTask) mayRepeat(i *instance) error {
	return i.mayWriteForms(&form.Request{Caller: s.Caller})
}

func (s submittedTask) may(i *instance) error {
	t, _, err := i.mayFill(&s.TaskForm)
	switch {
	case err != nil:
		return err
	case s.Event != "" && !slices.Contains(i.of.TaskSends(t.At), statemachine.EventName(s.Event)):
		return failure.Refuse(failure.ErrInvalid, "the task is not brought on by the event %s", data.Quote(s.Event))
	}
	return s.Refusal
}

func (s submittedTask) draft(i *instance) []byte {
	return i.taskDraft(s.Task.Task, s.Caller.ID).key
}

// dropTaskDrafts adds the drafts for tasks that end with a change, or that have no form any more.
func (i *instance) dropTaskDrafts(ch *change, ended, begun []statemachine.Task) error {
	for _, t := range ended {
		if t.Form == "" || slices.ContainsFunc(begun, func(b statemachine.Task) bool { return b.ID == t.ID && b.Form != "" }) {
			continue
		}
		store, err := i.rows()
		if err != nil {
			return err
		}
		err = store.Scan(key.TaskDraftPrefix(nil, i.shard, i.id, t.ID.Sequence, t.ID.Number), func(key, _ []byte) error {
			ch.drafts = append(ch.drafts, slices.Clone(key))
			return nil
		})
		if err != nil {
			return failure.OfStore(err)
		}
	}
	return nil
}
