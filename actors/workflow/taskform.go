package workflow

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/instance"
	"troupe/actors/message"
)

// TaskForm returns a task with its form: failure.ErrNotFound when it is gone, has no form, or the caller may not read its instance,
// failure.ErrForbidden for who is no candidate. That somebody else has it is no error: then it is not editable.
func (r *Router) TaskForm(_ context.Context, req *message.TaskForm) (*message.TaskView, error) {
	var out *message.TaskView
	_, err := r.ask(req.Task.Workflow, req.Task.InstanceID(), instance.SeeTaskForm(req, &out))
	return out, failure.In("form of", "task of "+req.Task.InstanceID(), err)
}

// SaveTaskDraft keeps or drops the caller's draft for a task; it is durable when SaveTaskDraft returns. Besides the errors of
// TaskForm: failure.ErrPrecondition, and to keep one failure.ErrClaimed when somebody else has the task.
func (r *Router) SaveTaskDraft(_ context.Context, req *message.TaskDraft) (form.Draft, error) {
	kept := &message.Draft{Data: req.Data, Template: req.Template, DraftCondition: req.DraftCondition}
	err := r.accepting()
	if err == nil {
		_, err = r.ask(req.Task.Workflow, req.Task.InstanceID(), instance.SaveTaskDraft{TaskForm: &req.TaskForm, Draft: kept})
	}
	if err != nil {
		return form.Draft{}, failure.In("draft for", "task of "+req.Task.InstanceID(), err)
	}
	return kept.Saved, nil
}

// SubmitTask sends what was filled in for a task with one of its events, and removes the caller's draft in the same commit. The errors
// are those of SaveTaskDraft and of Send; an event that the task does not have is failure.ErrInvalid, and one that no transition takes
// now failure.ErrNotAllowed, whatever the definition says about it. A repetition gets its first answer also after the task was decided.
func (r *Router) SubmitTask(_ context.Context, req *message.TaskSubmit) (reply *message.Reply, err error) {
	if err = r.accepting(); err == nil {
		reply, err = r.ask(req.Task.Workflow, req.Task.InstanceID(), instance.SubmitTask{TaskSubmit: req})
	}
	return reply, failure.In("submit", "task of "+req.Task.InstanceID(), err)
}
