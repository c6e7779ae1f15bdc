// Package inventory reads all rows of a store. It knows which of them belong to an instance, and which follow from its
// record: so it checks that they fit each other (Verify), adds up what they take (Measure), and has them written for an
// instance that comes from elsewhere (Instance.Put). Everything reads snapshots, a shard at a time, and changes nothing.
package inventory

import (
	"fmt"

	"troupe/actors/catalog"
	"troupe/actors/form"
	"troupe/actors/internal/businesskey"
	"troupe/actors/internal/instanceid"
	"troupe/actors/job"
	"troupe/actors/outbox"
	"troupe/actors/retention"
	"troupe/actors/task"
	"troupe/actors/timer"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Instance is an instance as its record says.
type Instance struct {
	Shard    key.Shard
	ID       key.ID
	Workflow string
	Record   statemachine.Record
	Of       *statemachine.Definition
	State    statemachine.Instance
	Form     *form.Form // nil for one that is not a form
}

// Name is what people call it.
func (in *Instance) Name() string { return in.Workflow + "/" + instanceid.Text(in.ID) }

// Read makes an instance of its stored record, which it aliases.
func Read(c *catalog.Catalog, sh key.Shard, workflow string, id key.ID, stored []byte) (*Instance, error) {
	in := &Instance{Shard: sh, ID: id, Workflow: workflow}
	var err error
	if in.Record, err = statemachine.ParseRecord(stored); err != nil {
		return in, err
	}
	if in.Of, err = c.Version(workflow, in.Record.Version); err != nil {
		return in, err
	}
	if in.State, err = in.Of.Restore(instanceid.Text(id), in.Record); err != nil {
		return in, err
	}
	if len(in.Record.Attachment) > 0 {
		in.Form, err = form.Parse(in.Record.Attachment)
	}
	return in, err
}

// Spot is what list rows have of it.
func (in *Instance) Spot() form.Spot {
	return form.Spot{Shard: in.Shard, ID: in.ID, Made: in.State.CreatedAt.UnixMilli()}
}

func (in *Instance) tasks() *task.Origin {
	return &task.Origin{Shard: in.Shard, Workflow: in.Workflow, Instance: in.ID, Before: in.Of, Of: in.Of}
}

// Put writes the rows that follow from the record alone: nodes, indexes, timers, open tasks, jobs as those that nobody had, and those of a
// form in lists.
func (in *Instance) Put(w *persistence.Batch, indexes []*catalog.Index) []job.Change {
	for _, p := range in.Of.Positions(&in.State) {
		w.Set(key.Node(nil, in.Shard, in.Workflow, string(p.Node), string(p.Machine), in.ID), nil)
	}
	var room []byte
	for _, ix := range indexes {
		room = ix.Update(w, room, in.Shard, in.ID, nil, &in.State)
	}
	timer.Put(w, &timer.Origin{Shard: in.Shard, Workflow: in.Workflow, Instance: in.ID, Of: in.Of}, nil, in.State.Timers())
	businesskey.Put(w, in.Shard, in.Workflow, in.ID, nil, &in.State)
	task.Put(w, in.tasks(), nil, in.State.Tasks(), nil, nil)
	if in.Form != nil {
		row := form.Row{Form: *in.Form, WorkflowID: in.Workflow, Nodes: statemachine.NodeNames(in.Of.Positions(&in.State))}
		row.Put(w, in.Spot(), nil)
	}
	return job.Put(w, &job.Origin{Shard: in.Shard, Workflow: in.Workflow, Version: in.Of.Version, Instance: in.ID, At: in.State.UpdatedAt}, nil, in.State.Jobs())
}

// PutBehind writes the row that follows from a row of the instance which the record does not give: the attempt of a delivery, the
// place of a decided task in a list, and that of an instance among those that are done. own reports whether the row is one of the instance's own, and not one that follows from its record.
func (in *Instance) PutBehind(w *persistence.Batch, rowKey, value []byte) (own bool, err error) {
	k, _ := key.Parse(rowKey)
	switch k.Table {
	case "task":
		open, err := in.tasks().PutDecided(w, statemachine.ElementID{Sequence: k.Number, Number: k.Place}, value)
		return !open, err
	case "delivery":
		of, _ := key.ParseDelivery(rowKey)
		d, err := outbox.Parse(value)
		if err != nil {
			return true, err
		}
		outbox.PutAttempt(w, in.Shard, of, d)
	case "donetime":
		at, err := retention.ParseTime(value)
		if err != nil {
			return true, err
		}
		w.Set(key.Done(nil, in.Shard, in.Workflow, at, in.ID), nil)
	}
	return true, nil
}

// failed are the keys of the incidents that the record speaks of.
func (in *Instance) failed() (keys [][]byte) {
	for _, t := range in.State.Timers() {
		if t.Failed {
			keys = append(keys, key.Incident(nil, in.Shard, in.ID, t.ID.Sequence, t.ID.Number))
		}
	}
	return keys
}

// Shards are those that this node has.
func Shards(store *persistence.Store) (here []key.Shard) {
	for _, sh := range store.Numbered() {
		if store.Standalone() || store.Replica(sh) != nil {
			here = append(here, sh)
		}
	}
	return here
}

// errRow says which row cannot be read.
func errRow(rowKey []byte, err error) error {
	k, ok := key.Parse(rowKey)
	if !ok {
		return fmt.Errorf("key %x has an unknown form", rowKey)
	}
	return fmt.Errorf("%s: %w", k, err)
}
