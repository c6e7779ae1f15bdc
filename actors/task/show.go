package task

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
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
// failure.ErrNotLeader.
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
// it has none, failure.ErrNotLeader.
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

// Task returns one task of an instance that the caller may see, no matter who has it, where its shard is led:
// failure.ErrNotFound when there is none, failure.ErrNotLeader, and what query.Service.Rows returns.
func (l *Lists) Task(ctx context.Context, caller *identity.Principal, taskID string) (item *Item, err error) {
	n, err := l.parse(taskID)
	if err == nil && l.Store.Epoch(n.Shard) == 0 {
		err = failure.Elsewhere(uint16(n.Shard))
	}
	if err == nil {
		err = l.Queries.Read(ctx, []key.Shard{n.Shard}, caller.ID, func(r *query.Reader) error {
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

// A group is the tasks of one workflow that stand in one worklist in one order: what a list of tasks is merged of.

// findGroups looks for the groups that the list can have something of, by going from each to the next.
func (r *reading) findGroups() error {
	r.groups = []key.Range{}
	if r.req.Scope == ScopeEvery {
		return r.hop(r.hopEvery, key.Range{Prefix: key.WorksPrefix(nil, key.EveryShard)})
	}
	var lists []key.Range
	for _, list := range r.worklists() {
		lists = append(lists, key.Range{Prefix: list.prefix(nil, key.EveryShard, r.order)})
	}
	return r.hop(r.hopGroup, lists...)
}

func (r *reading) hop(next func(group []byte, of *key.Work) []byte, ranges ...key.Range) error {
	var stopped error
	err := r.from.Hop(func(k []byte) ([]byte, error) {
		if stopped = r.from.Step(); stopped != nil {
			return nil, stopped
		}
		place, w, ok := key.ParseWork(k)
		if !ok {
			return nil, persistence.ErrCorrupt
		}
		return next(bytes.Clone(k[:len(k)-len(place)]), &w), nil
	}, ranges...)
	if stopped != nil {
		return stopped
	}
	return failure.OfStore(err)
}

func (r *reading) hopGroup(group []byte, of *key.Work) []byte {
	if of.Workflow == "" || r.isWanted(of.Workflow) {
		r.groups = append(r.groups, key.Range{Prefix: group})
	}
	return key.PrefixEnd(group)
}

func (r *reading) hopEvery(group []byte, of *key.Work) []byte {
	sh := key.ShardOf(group)
	switch order := Order(of.Order); {
	case of.List == listDecided: // what is decided is not open
		return key.PrefixEnd(append(key.WorksPrefix(nil, sh), listDecided))
	case order < r.order:
		return key.WorkPrefix(nil, sh, of.List, of.Name, byte(r.order))
	case order > r.order:
		return key.PrefixEnd(key.WorkListPrefix(nil, sh, of.List, of.Name))
	}
	return r.hopGroup(group, of)
}

func (r *reading) isWanted(workflow string) bool {
	return (r.req.WorkflowID == "" || r.req.WorkflowID == workflow) && r.mayReadSome(workflow)
}

func (r *reading) matches(i *Item, of *Whole) bool {
	if len(r.words) > 0 {
		text := strings.ToLower(strings.Join(append([]string{i.TaskID(), i.Requester, r.nameOf(i.Requester)}, i.Title.All()...), "\n"))
		for _, word := range r.words {
			if !strings.Contains(text, word) {
				return false
			}
		}
	}
	if r.req.Filter == "" {
		return true
	}
	return r.filter.Match(filter.Document{
		ID: i.InstanceID, WorkflowID: i.WorkflowID, Key: of.State.Key(), States: of.Of.States(of.State), Public: of.State.Public, Own: r.document(i),
	})
}

func (r *reading) nameOf(user string) string {
	if r.NameOf == nil {
		return ""
	}
	return r.NameOf(user)
}

// document has what a filter sees of a task: ownRoots.
func (r *reading) document(i *Item) data.Value {
	v := data.Value("{")
	text := func(name, value string) {
		if len(v) > 1 {
			v = append(v, ',')
		}
		v = append(data.AppendString(v, name), ':')
		if value == "" {
			v = append(v, "null"...)
			return
		}
		v = data.AppendString(v, value)
	}
	text("taskId", i.TaskID())
	text("instanceId", i.InstanceID)
	text("stateMachineId", string(i.At.Machine))
	text("nodeId", string(i.At.Node))
	text("title", i.Title.For(r.req.Languages...))
	text("status", string(i.Status))
	text("created", i.Created.Format(statemachine.TimeLayout))
	due := ""
	if !i.Due.IsZero() {
		due = i.Due.Format(statemachine.TimeLayout)
	}
	text("due", due)
	text("assignee", i.Assignee)
	text("requester", i.Requester)
	v = append(v, `,"priority":`...)
	return append(strconv.AppendInt(v, int64(i.Priority), 10), '}')
}
