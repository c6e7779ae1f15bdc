package message

import (
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/task"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// TaskForm names the form of a task that somebody fills in. What depends on the form's template the caller finds out before.
type TaskForm struct {
	Caller *identity.Principal
	// Task has the template for which Refusal was found out.
	Task *task.FormName
	// Refusal is why nobody can write this now; nil: it can be written.
	Refusal error
}

// Find returns the task, if it is there with its form: failure.ErrNotFound when it has gone, failure.ErrNotAllowed when it has another
// form by now.
func (req *TaskForm) Find(in *statemachine.Instance) (*statemachine.Task, error) {
	t := task.Find(in, req.Task.Task)
	switch {
	case t == nil, t.Form == "":
		return nil, failure.ErrNotFound
	case t.Form != req.Task.Form:
		return nil, failure.Errorf(failure.ErrNotAllowed, "the task has another form by now")
	}
	return t, nil
}

// MayFill asks whether the caller may fill in the form: failure.ErrForbidden for who is no candidate, failure.ErrClaimed when somebody
// else has the task.
func (req *TaskForm) MayFill(of *task.Whole, t *statemachine.Task, now time.Time) error {
	c := catalog.CallerOf(req.Caller)
	return mayWork(of, t, c, now, c.OverridesClaims)
}

// TaskView is a task with its form, at one moment.
type TaskView struct {
	Item     *task.Item
	Of       *statemachine.Definition // that of the instance
	Sequence uint64
	Public   data.Value
	// States is the JSON of the positions.
	States []byte
	// Editable: the caller may keep a draft now, and the task offers the caller some event.
	Editable bool
	// Draft is the caller's; nil when there is none.
	Draft *form.Draft
}

// TaskDraft asks to keep a draft for a task, or to drop it.
type TaskDraft struct {
	TaskForm
	// Data is a checked, compact object; absent drops the draft.
	Data data.Value
	// Template is what the draft was written for; zero: nobody knows.
	Template form.Digest
	form.DraftCondition
}

// TaskSubmit asks to send what was filled in. Its Refusal answers a new request; a repetition still gets its first answer.
type TaskSubmit struct {
	TaskForm
	// Event is one of those that bring the task on.
	Event string
	// Data is a checked, compact object.
	Data  data.Value
	Retry Retry
	// IfMatch lists the sequence numbers that the instance may have now; nil means any.
	IfMatch []uint64
	// WithHistory says whether the reply carries svcHistory.
	WithHistory bool
}
