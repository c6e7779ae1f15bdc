package instance

import (
	"errors"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

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
		Editable: may == nil && req.Refusal == nil && len(item.Events) > 0,
	}, nil
}

// taskDraft is the place of a user's draft for a task.
func (i *Actor) taskDraft(id statemachine.ElementID, user identity.UserID) draftPlace {
	return draftPlace{key: key.TaskDraft(nil, i.shard, i.id, id.Sequence, id.Number, string(user))}
}

// SaveTaskDraft is the request of SaveTaskDraft.
type SaveTaskDraft struct {
	*message.TaskForm
	Draft *message.Draft
}

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

func (req SubmitTask) run(i *Actor, c *Call) error {
	event := &message.Event{
		Caller: req.Caller, Name: req.Event, Data: req.Data, Retry: req.Retry, IfMatch: req.IfMatch, WithHistory: req.WithHistory,
	}
	return i.take(c, event, submittedTask(req))
}

// submittedTask is the form of a task.
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
		return failure.Refuse(failure.ErrInvalid, "the task is not brought on by the event %s", data.Quote(s.Event))
	}
	return s.Refusal
}

func (s submittedTask) draft(i *Actor) []byte {
	return i.taskDraft(s.Task.Task, s.Caller.ID).key
}
