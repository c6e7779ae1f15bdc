package instance

import (
	"troupe/actors/deletion"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/retention"
	"troupe/actors/task"
	"troupe/actors/watch"
	"troupe/statemachine"
)

// Kin is what an instance has to do with others.
type Kin struct {
	Parent   *statemachine.Parent
	Children []statemachine.Child // those that run, and the last ones that have ended
	IsOver   bool
	Tells    bool  // a message to its parent or a child is on its way
	Refusal  error // why it cannot be deleted now, as far as it knows itself
}

// KinOf is the question for Kin, if May allows it, as for Delete. It is written before the answer.
type KinOf struct {
	*Kin
	May func(*Actor) error
}

func (req KinOf) run(i *Actor, c *Call) error {
	err := i.ensureLoaded()
	if err == nil && req.May != nil {
		err = req.May(i)
	}
	if err != nil {
		return err
	}
	store, err := i.rows()
	if err != nil {
		return err
	}
	of := i.whole()
	*req.Kin = Kin{Parent: i.state.Parent(), Children: i.state.Children(), IsOver: i.of.IsOver(&i.state), Refusal: of.Refusal(store)}
	if req.Tells, err = of.Tells(store); err != nil {
		return err
	}
	i.deliver(c, nil)
	return nil
}

func (KinOf) traits() traits { return traits{reads: true} }

func (i *Actor) whole() deletion.Instance {
	return deletion.Instance{Shard: i.shard, ID: i.id, Workflow: i.workflowID, Of: i.of, State: &i.state, Form: i.form}
}

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

// IfDone allows what is for an instance that has been done since a time: retention.StillDone.
func IfDone(since int64) func(*Actor) error {
	return func(i *Actor) error {
		store, err := i.rows()
		if err != nil {
			return err
		}
		return retention.StillDone(store, i.shard, i.workflowID, i.id, since)
	}
}

// Delete is the request to delete an instance that no other one needs, if May allows it (nil: it does), in one commit with all that the store has of it.
// Anyone who comes later finds no such instance.
type Delete struct{ May func(*Actor) error }

func (req Delete) run(i *Actor, c *Call) error {
	err := i.ensureLoaded()
	if err == nil && req.May != nil {
		err = req.May(i)
	}
	if err != nil {
		return err
	}
	store, err := i.rows()
	of := i.whole()
	if err == nil {
		err = of.Refusal(store)
	}
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
	of.Indexes = indexes
	if err := of.Put(w, store); err != nil {
		w.Discard()
		c.endCommit()
		return err
	}
	if open := i.state.Tasks(); len(open) > 0 {
		i.tellTasks(c, task.ChangeOf(&task.Origin{Workflow: i.workflowID, Instance: i.id, Before: i.of}, open, nil))
	}
	if len(of.Ended) > 0 {
		c.withNotices().jobs = of.Ended
	}
	if feeds := i.env.Watches.Feeds(i.workflowID, i.id); feeds != nil {
		n := c.withNotices()
		n.feeds, n.items = feeds, []*watch.Item{{Gone: true, Shard: i.shard}}
	}
	i.loaded = false // NB: also when nothing is written: the next call reads what there is
	i.enqueue(w, c, &message.Reply{WorkflowID: i.workflowID, InstanceID: i.name})
	return nil
}

func (req Delete) traits() traits { return traits{deletes: true} }
