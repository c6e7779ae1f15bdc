package workflow

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/instance"
	"troupe/actors/message"
	"troupe/statemachine"
)

// FormOf returns what an instance's form was made from, which never changes. It asks for no right. An instance that is
// not a form is failure.ErrNotFound.
func (r *Router) FormOf(workflowID, instanceID string) (*form.Form, error) {
	at, err := r.shards.Find(instanceID)
	if err != nil {
		return nil, err
	}
	stored, err := at.Load(workflowID)
	if err != nil {
		return nil, err
	}
	record, err := statemachine.ParseRecord(stored)
	if err == nil && len(record.Attachment) == 0 {
		return nil, failure.ErrNotFound
	}
	var f *form.Form
	if err == nil {
		f, err = form.Parse(record.Attachment)
	}
	if err != nil {
		return nil, failure.Errorf(failure.ErrExecution, "form %s/%s: %w", workflowID, instanceID, err)
	}
	return f, nil
}

// Form returns an instance as a form. The errors are those of Load; an instance that is not a form is failure.ErrNotFound.
func (r *Router) Form(req *form.Request) (*form.View, error) {
	var out *form.View
	load := &message.Load{Caller: req.Caller, WorkflowID: req.WorkflowID, InstanceID: req.InstanceID}
	_, err := r.askReader(load, instance.SeeForm(load, req, &out))
	return out, failure.In("form", req.WorkflowID+"/"+req.InstanceID, err)
}

// SaveDraft keeps or drops the caller's draft; it is durable when SaveDraft returns. Besides the errors of Send:
// failure.ErrPrecondition, and failure.ErrNotAllowed when there is something to keep and the caller may not submit the
// form now.
func (r *Router) SaveDraft(req *message.Draft) (form.Draft, error) {
	err := r.accepting()
	if err == nil {
		_, err = r.ask(req.WorkflowID, req.InstanceID, instance.SaveDraft{Draft: req})
	}
	if err != nil {
		return form.Draft{}, failure.In("draft for", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return req.Saved, nil
}

// Submit sends the event that submits the form, and removes the caller's draft in the same commit. An event that no
// transition takes is failure.ErrNotAllowed, whatever the definition says about it. The other errors are those of Send,
// but anyone who does not see the form gets failure.ErrNotFound alone, unless it repeats a submission of the caller's.
func (r *Router) Submit(req *message.Submit) (reply *message.Reply, err error) {
	if err = r.accepting(); err == nil {
		reply, err = r.ask(req.WorkflowID, req.InstanceID, instance.SubmitForm{Submit: req})
	}
	return reply, failure.In("submit", req.WorkflowID+"/"+req.InstanceID, err)
}

// DeleteForm deletes the form of an instance with the instance, for its creator and while it was never submitted:
// failure.ErrNotFound for everybody else, failure.ErrNotAllowed afterwards, failure.ErrInUse when the instance has a
// parent or children. The other errors are those of Send. It returns when that is durable.
func (r *Router) DeleteForm(caller *identity.Principal, workflowID, instanceID string) error {
	err := r.accepting()
	if err == nil {
		_, err = r.ask(workflowID, instanceID, instance.DeleteForm(caller))
	}
	if err == nil {
		if left := r.Incidents.Forget(context.Background(), instanceID); left != nil {
			r.o.Log.Warn().Err(left).Str("workflow", workflowID).Str("instance", instanceID).Msg("incidents may quote a form that was deleted")
		}
	}
	return failure.In("delete form", workflowID+"/"+instanceID, err)
}
