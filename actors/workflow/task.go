package workflow

import (
	"context"

	"troupe/actors/activity"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/instance"
	"troupe/actors/message"
	"troupe/actors/task"
)

// ChangeTask carries out what somebody wants with a task, and returns it as the caller sees it then: failure.ErrNotFound when it is gone or
// the caller may not read its instance, failure.ErrForbidden for who is not a candidate, failure.ErrClaimed when somebody else has it,
// failure.ErrInvalid when it is assigned to who is not a candidate, and otherwise the errors of Send.
func (r *Router) ChangeTask(ctx context.Context, req *message.TaskChange) (*task.Item, error) {
	item, err := r.changeTask(ctx, req)
	return item, failure.In(string(req.Action), "task "+req.TaskID, err)
}

func (r *Router) changeTask(ctx context.Context, req *message.TaskChange) (*task.Item, error) {
	if err := r.accepting(); err != nil {
		return nil, err
	}
	name, err := r.Worklists.LocateTask(ctx, req.TaskID)
	if err != nil {
		return nil, err
	}
	var item task.Item
	// NB: not askReader, whose ErrForbidden is for who has named the workflow.
	if _, err = r.ask(name.Workflow, name.InstanceID(), instance.ChangeTask{TaskChange: req, ID: name.Task, Item: &item}); err != nil {
		return nil, err // NB: without an answer the actor may be writing item
	}
	return &item, nil
}

// AddComment writes a comment beside an instance's history, and returns it when it is durable; a repetition returns the
// first one. The errors are those of Load, and failure.ErrQuota, ErrKeyReused and ErrOutcomeUnknown.
func (r *Router) AddComment(req *message.Comment) (*activity.Row, error) {
	var row activity.Row
	err := r.accepting()
	if err == nil && !req.Counted {
		err = r.env.CountRefusal(r.eventQuota.Take(req.Caller.ID, r.o.Clock()))
	}
	if err == nil {
		_, err = r.askReader(&req.Load, instance.AddComment{Comment: req, Row: &row})
	}
	if err != nil {
		return nil, failure.In("comment", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return &row, nil
}

// Activity returns a page of what has happened to an instance. The errors are those of Load, and failure.ErrInvalid.
func (r *Router) Activity(req *message.Activity) (*activity.Page, error) {
	of := activity.Request{OldestFirst: req.OldestFirst, From: req.From, Limit: req.Limit, Cursor: req.Cursor}
	err := r.View(&req.Load, func(v message.View) {
		of.Instance, of.Sequence, of.Timers = v.ID, v.Instance.Sequence, v.Instance.Timers()
	})
	if err == nil {
		of.Deliveries, err = r.Waiting.OfInstance(of.Instance)
	}
	var page *activity.Page
	if err == nil {
		page, err = activity.Read(r.o.Store, &of)
	}
	return page, failure.In("activity of", req.WorkflowID+"/"+req.InstanceID, err)
}

// TaskForm returns a task with its form: failure.ErrNotFound when it is gone, has no form, or the caller may not read its instance,
// failure.ErrForbidden for who is not a candidate. That somebody else has it is not an error: then it is not editable.
func (r *Router) TaskForm(req *message.TaskForm) (*message.TaskView, error) {
	var out *message.TaskView
	_, err := r.ask(req.Task.Workflow, req.Task.InstanceID(), instance.SeeTaskForm(req, &out))
	return out, failure.In("form of", "task of "+req.Task.InstanceID(), err)
}

// SaveTaskDraft keeps or drops the caller's draft for a task; it is durable when SaveTaskDraft returns. Besides the
// errors of TaskForm: failure.ErrPrecondition, and to keep one failure.ErrClaimed when the task is assigned to someone else.
func (r *Router) SaveTaskDraft(req *message.TaskDraft) (form.Draft, error) {
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
func (r *Router) SubmitTask(req *message.TaskSubmit) (reply *message.Reply, err error) {
	if err = r.accepting(); err == nil {
		reply, err = r.ask(req.Task.Workflow, req.Task.InstanceID(), instance.SubmitTask{TaskSubmit: req})
	}
	return reply, failure.In("submit", "task of "+req.Task.InstanceID(), err)
}
