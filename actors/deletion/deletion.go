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
	"troupe/actors/outbox"
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
}

// Refusal is failure.ErrInUse for an instance that has a parent, or has invoked others; else nil.
func Refusal(of *statemachine.Instance) error {
	if of.Parent() != nil || len(of.Children()) > 0 {
		return failure.ErrInUse
	}
	return nil
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
	var k []byte
	for _, ix := range in.Indexes {
		k = ix.Leave(w, k, in.Shard, in.ID, in.State)
	}
	for _, p := range in.Of.Positions(in.State) {
		w.Delete(key.Node(nil, in.Shard, in.Workflow, string(p.Node), string(p.Machine), in.ID))
	}
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
