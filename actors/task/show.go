package task

import (
	"context"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Name is the name of a task taken apart.
type Name struct {
	Shard    key.Shard
	Workflow string
	Instance key.ID
	Task     statemachine.ElementID
}

// InstanceID is the text of Instance.
func (n *Name) InstanceID() string { return instanceid.Text(n.Instance) }

// LocateTask takes the name of a task apart and finds its workflow, where its shard is led: failure.ErrNotFound,
// failure.ErrElsewhere.
func (l *Lists) LocateTask(ctx context.Context, taskID string) (*Name, error) {
	n, _, err := l.locate(ctx, taskID)
	return n, err
}

func (l *Lists) locate(ctx context.Context, taskID string) (n *Name, of row, err error) {
	if n, err = l.parse(taskID); err != nil {
		return nil, of, err
	}
	epoch := l.Store.Epoch(n.Shard)
	if epoch == 0 {
		return nil, of, failure.Elsewhere(uint16(n.Shard))
	}
	of, err = loadRow(l.Store, n.Shard, n.Instance, n.Task)
	if failure.Of(err).Kind == failure.ErrNotFound && err != nil {
		if err := l.Store.AwaitLed(ctx, n.Shard, epoch); err != nil { // NB: another node may have it by now
			return nil, of, failure.OfStore(err)
		}
	}
	n.Workflow = of.Workflow
	return n, of, err
}

// FormName says which form a task has.
type FormName struct {
	Name
	Form string // the identifier of its template
}

// LocateForm returns the form of a task where its shard is led, also of one that was decided: failure.ErrNotFound when
// it has none, failure.ErrElsewhere.
func (l *Lists) LocateForm(ctx context.Context, taskID string) (*FormName, error) {
	n, of, err := l.locate(ctx, taskID)
	if err != nil {
		return nil, err
	}
	form := ""
	if of.Decided != nil {
		form = of.Decided.Form
	} else {
		whole, err := loadWhole(l.Store, l.Catalog, n.Shard, n.Workflow, n.Instance)
		if err != nil {
			return nil, err
		}
		if t := Find(whole.State, n.Task); t != nil {
			form = t.Form
		}
	}
	if form == "" {
		return nil, failure.ErrNotFound
	}
	return &FormName{*n, form}, nil
}

func (l *Lists) parse(taskID string) (*Name, error) {
	id, sequence, number, ok := instanceid.ParsePart(taskID)
	if !ok {
		return nil, failure.ErrNotFound
	}
	return &Name{Shard: l.Store.ShardOf(id), Instance: id, Task: statemachine.ElementID{Sequence: sequence, Number: number}}, nil
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

func decidedItem(of *Whole, d *Decided, requester string) *Item {
	return &Item{
		WorkflowID: of.Workflow, InstanceID: of.State.ID, Task: d.Task, TaskText: d.TaskText, Status: Done, Requester: requester, Decided: d,
	}
}
