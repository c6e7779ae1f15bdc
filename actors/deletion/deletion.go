// Package deletion removes an instance with all that the store has of it. What begins with the id of the instance is
// found by persistence.InstancePrefixes; the other rows follow from what the instance is like. The row of the
// idempotency key of its create stays until the keys of other creates go, and rows of the feed of changes name it until
// they are trimmed. Nothing here decides who may delete. The actor calls Put between two of its events, so nothing else
// writes rows of the instance meanwhile; the outbox only removes some (actors/outbox/DESIGN.md, "Deleted instances").
package deletion

import (
	"errors"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/internal/businesskey"
	"troupe/actors/internal/retry"
	"troupe/actors/job"
	"troupe/actors/outbox"
	"troupe/actors/retention"
	"troupe/actors/task"
	"troupe/actors/timer"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Instance is an instance as its actor knows it.
type Instance struct {
	Shard    key.Shard
	ID       key.ID
	Workflow string
	Of       *statemachine.Definition
	State    *statemachine.Instance
	Form     *form.Form       // nil for one that is not a form
	Indexes  []*catalog.Index // those that commits of the workflow maintain
	Ended    []job.Change     // that Put has made of its jobs
}

// Refusal is failure.ErrInUse for an instance that others need, as far as it knows itself: those that it has invoked run,
// or a message to them or to its parent is on its way. Whether its parent waits for it, the router asks before.
func (in *Instance) Refusal(store *persistence.Store) error {
	for _, c := range in.State.Children() {
		if c.Status == statemachine.ChildRuns {
			return failure.Refuse(failure.ErrInUse, "an instance of %s that it invoked is running", c.Workflow)
		}
	}
	tells, err := in.Tells(store)
	if err == nil && tells {
		err = failure.Refuse(failure.ErrInUse, "a message to its parent, or to an instance that it invoked, has not arrived yet")
	}
	return err
}

// Tells reports whether a message to a parent or a child is on its way.
func (in *Instance) Tells(store *persistence.Store) (tells bool, err error) {
	for _, queue := range []string{outbox.ChildQueue, outbox.ParentQueue} {
		err = store.Scan(key.DeliveryQueuePrefix(nil, in.Shard, in.ID, queue), func(_, _ []byte) error { return errEnough })
		if err != nil {
			break
		}
	}
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, failure.OfStore(err)
}

// Put writes the deletion into w, which is of the instance's shard. The errors are those of package failure; w is useless
// then.
func (in *Instance) Put(w *persistence.Batch, store *persistence.Store) error {
	if err := in.putDeliveries(w, store); err != nil {
		return err
	}
	if err := in.putLists(w, store); err != nil {
		return err
	}
	done, err := retention.Rows(store, in.Shard, in.Workflow, in.ID)
	if err != nil {
		return err
	}
	for _, row := range done {
		w.Delete(row)
	}
	if err := retry.BareCreate(w, store, in.Shard, in.ID); err != nil {
		return err
	}
	for _, prefix := range key.InstancePrefixes(in.Shard, in.ID) {
		if err := remove(w, store, prefix); err != nil {
			return err
		}
	}
	tasks := task.Origin{Shard: in.Shard, Workflow: in.Workflow, Instance: in.ID, Before: in.Of}
	if err := tasks.Remove(w, store, in.State.Tasks()); err != nil {
		return err
	}
	timer.Put(w, &timer.Origin{Shard: in.Shard, Workflow: in.Workflow, Instance: in.ID}, in.State.Timers(), nil)
	in.Ended = job.Remove(w, &job.Origin{Shard: in.Shard, Workflow: in.Workflow, Instance: in.ID}, in.State.Jobs())
	var k []byte
	for _, ix := range in.Indexes {
		k = ix.Leave(w, k, in.Shard, in.ID, in.State)
	}
	for _, p := range in.Of.Positions(in.State) {
		w.Delete(key.Node(nil, in.Shard, in.Workflow, string(p.Node), string(p.Machine), in.ID))
	}
	businesskey.Release(w, in.Shard, in.Workflow, in.State)
	w.Add(key.Count(nil, in.Shard, in.Workflow, in.Of.Version), -1)
	w.Delete(key.Record(nil, in.Shard, in.Workflow, in.ID))
	return nil
}

func (in *Instance) putLists(w *persistence.Batch, store *persistence.Store) error {
	at := form.Spot{Shard: in.Shard, ID: in.ID, Made: in.State.CreatedAt.UnixMilli()}
	if in.Form == nil {
		return form.RemoveInstance(w, store, at)
	}
	in.Form.Remove(w, at)
	return nil
}

// putDeliveries removes the attempts of deliveries that wait: their keys begin with something else.
func (in *Instance) putDeliveries(w *persistence.Batch, store *persistence.Store) error {
	err := store.Scan(key.DeliveryPrefix(nil, in.Shard, in.ID), func(k, value []byte) error {
		of, ok := key.ParseDelivery(k)
		d, err := outbox.Parse(value)
		if err != nil || !ok {
			return failure.Errorf(failure.ErrExecution, "delivery of a deleted instance: %w", errors.Join(err, persistence.ErrCorrupt))
		}
		outbox.Remove(w, in.Shard, of, d)
		return nil
	})
	return failure.OfStore(err)
}

// More are removed as a range: one mark in the store, which costs readers more than that of a row.
const singlesMax = 1000

var errEnough = errors.New("enough")

func remove(w *persistence.Batch, store *persistence.Store, prefix []byte) error {
	n := 0
	err := store.Scan(prefix, func(key, _ []byte) error {
		if n++; n > singlesMax {
			return errEnough
		}
		w.Delete(key)
		return nil
	})
	if errors.Is(err, errEnough) {
		w.DeleteRange(prefix, key.PrefixEnd(prefix))
		return nil
	}
	return failure.OfStore(err)
}
