package instance

import (
	"troupe/actors/deletion"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
)

// DeleteForm is the request to delete the form of an instance with the instance, for its creator and while it was never submitted.
func DeleteForm(caller *identity.Principal) Delete {
	return Delete{func(i *Actor) error {
		a, err := i.access(caller, nil, nil)
		if err == nil {
			err = a.mayDeleteForm()
		}
		return err
	}}
}

// Delete is the request to delete an instance, if may allows it, in one commit with all that the store has of it.
// Whoever comes later finds no such instance.
type Delete struct{ May func(*Actor) error }

func (req Delete) run(i *Actor, c *Call) error {
	err := i.ensureLoaded()
	if err == nil {
		err = req.May(i)
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
	c.commit = i.env.Catalog.BeginCommit(i.shard)
	indexes, err := i.env.Indexes(i.shard, i.activation.lead.Epoch, i.workflowID)
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

func (req Delete) traits() traits { return traits{deletes: true} }
