package task

import (
	"context"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/statemachine"
)

// Name is the name of a task taken apart.
type Name struct {
	Shard    persistence.Shard
	Workflow string
	Instance persistence.ID
	Task     statemachine.PartID
}

// InstanceID is the text of Instance.
func (n *Name) InstanceID() string { return instanceid.Text(n.Instance) }

// LocateTask returns the workflow of a task where its shard is led: failure.ErrNotFound, failure.ErrElsewhere.
func (l *Lists) LocateTask(ctx context.Context, taskID string) (*Name, error) {
	n, err := l.parse(taskID)
	if err != nil {
		return nil, err
	}
	epoch := l.Store.Epoch(n.Shard)
	if epoch == 0 {
		return nil, failure.Elsewhere(uint16(n.Shard))
	}
	of, err := loadRow(l.Store, n.Shard, n.Instance, n.Task)
	if failure.Of(err).Kind == failure.ErrNotFound && err != nil {
		if err := l.Store.AwaitLed(ctx, n.Shard, epoch); err != nil { // NB: another node may have it by now
			return nil, failure.OfStore(err)
		}
	}
	n.Workflow = of.Workflow
	return n, err
}

func (l *Lists) parse(taskID string) (*Name, error) {
	id, sequence, number, ok := instanceid.ParsePart(taskID)
	if !ok {
		return nil, failure.ErrNotFound
	}
	return &Name{Shard: l.Store.ShardOf(id), Instance: id, Task: statemachine.PartID{Sequence: sequence, Number: number}}, nil
}

// Task returns one task of an instance that the caller may see, whoever has it: failure.ErrNotFound when there is none, and what
// query.Service.Rows returns.
func (l *Lists) Task(ctx context.Context, caller *identity.Principal, taskID string) (item *Item, err error) {
	n, err := l.parse(taskID)
	if err == nil {
		err = l.Queries.Read(ctx, caller.ID, func(r *query.Reader) error {
			item, err = l.load(r, n, catalog.CallerOf(caller))
			return err
		})
	}
	if err != nil {
		return nil, failure.In("show", "task "+taskID, err)
	}
	return item, nil
}

func (l *Lists) load(r *query.Reader, n *Name, c *statemachine.Caller) (*Item, error) {
	of, err := loadRow(r, n.Shard, n.Instance, n.Task)
	if err != nil {
		return nil, err
	}
	whole, err := loadWhole(r, l.Catalog, n.Shard, of.Workflow, n.Instance)
	if err != nil {
		return nil, err
	}
	now := l.Clock()
	if !whole.MayRead(c, now) {
		return nil, failure.ErrNotFound
	}
	requester, err := LoadRequester(r, n.Shard, n.Instance)
	if err != nil {
		return nil, err
	}
	if of.Decided != nil {
		return decidedItem(whole, of.Decided, requester), nil
	}
	t := Find(whole.State, n.Task)
	if t == nil {
		return nil, failure.ErrNotFound
	}
	return whole.ItemOf(t, c, now, requester), nil
}

// decidedItem is a task that somebody has brought on.
func decidedItem(of *Whole, d *Decided, requester string) *Item {
	return &Item{
		WorkflowID: of.Workflow, InstanceID: of.State.ID, Task: d.Task, TaskText: d.TaskText, Status: Done, Requester: requester, Decided: d,
	}
}
