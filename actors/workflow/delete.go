package workflow

import (
	"context"

	"troupe/actors/deletion"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
)

// DeleteForm deletes the form of an instance with the instance, for its creator and while it was never submitted:
// failure.ErrNotFound for everybody else, failure.ErrNotAllowed afterwards, failure.ErrInUse when the instance
// has a parent or children. The other errors are those of Send. It returns when that is durable.
func (r *Router) DeleteForm(_ context.Context, caller *identity.Principal, workflowID, instanceID string) error {
	err := r.accepting()
	if err == nil {
		_, err = r.ask(workflowID, instanceID, deleteInstance{func(i *instance) error { return i.mayDeleteForm(caller) }})
	}
	return failure.In("delete form", workflowID+"/"+instanceID, err)
}

// mayDeleteForm asks what DeleteForm demands.
func (i *instance) mayDeleteForm(caller *identity.Principal) error {
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

// deleteInstance is the request to delete an instance, if may allows it, in one commit with all that the store has of it.
// Whoever comes later finds no such instance.
type deleteInstance struct{ may func(*instance) error }

func (req deleteInstance) run(i *instance, c *call) error {
	err := i.ensureLoaded()
	if err == nil {
		err = req.may(i)
	}
	if err == nil {
		err = deletion.Refusal(&i.state)
	}
	if err != nil {
		return err
	}
	store, err := i.rows()
	if err != nil {
		return err
	}
	c.commit = i.router.catalog.BeginCommit(i.shard)
	indexes, err := i.router.indexesIn(i.shard, i.activation.epoch, i.workflowID)
	if err != nil {
		c.endCommit()
		return err
	}
	w := i.writes()
	of := deletion.Instance{Shard: i.shard, ID: i.id, Workflow: i.workflowID, Of: i.of, State: &i.state, Form: i.form, Indexes: indexes}
	if err := of.Put(w, store); err != nil {
		w.Discard()
		c.endCommit()
		return err
	}
	if open := i.state.Tasks(); len(open) > 0 {
		i.tellTasks(c, task.ChangeOf(&task.Origin{Workflow: i.workflowID, Instance: i.id, Before: i.of}, open, nil))
	}
	i.loaded = false // NB: also when nothing is written: the next call reads what there is
	i.handOver(w, c, &message.Reply{WorkflowID: i.workflowID, InstanceID: i.name})
	return nil
}
