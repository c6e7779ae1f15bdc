package workflow

import (
	"context"
	"errors"
	"time"

	"troupe/actors/activity"
	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/retry"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// tasks are the worklists of a router.
type tasks struct {
	*task.Lists
	feed    *task.Feed
	watcher *task.Watcher
}

// makeTasks makes them of the queries and the watches. NB: before anything runs that commits, since each commit tells the feed.
func (r *Router) makeTasks() {
	r.tasks = tasks{Lists: &task.Lists{Store: r.store, Queries: r.queries, Catalog: r.catalog, Bounds: task.UsualBounds, Clock: r.o.Clock}, feed: task.NewFeed(r.store)}
	r.watcher = &task.Watcher{Lists: r.tasks.Lists, Feed: r.feed, Stopped: r.watches.Stopped()}
}

// Tasks lists tasks, as task.Lists says.
func (r *Router) Tasks(ctx context.Context, req *task.ListRequest) (*task.Page, error) {
	return r.tasks.List(ctx, req)
}

// WatchTasks tells what comes into worklists and goes from them, as task.Watcher says.
func (r *Router) WatchTasks(ctx context.Context, req *task.WatchRequest, yield func(*task.Event) error) error {
	return failure.In("watch", "tasks", r.watcher.Watch(ctx, req, yield))
}

// ChangeTask carries out what somebody wants with a task, and returns it as the caller sees it then: failure.ErrNotFound when it is gone or
// the caller may not read its instance, failure.ErrForbidden for who is no candidate, failure.ErrClaimed when somebody else has it,
// failure.ErrInvalid when it is assigned to who is no candidate, and otherwise the errors of Send.
func (r *Router) ChangeTask(ctx context.Context, req *message.TaskChange) (*task.Item, error) {
	item, err := r.changeTask(ctx, req)
	return item, failure.In(string(req.Action), "task "+req.TaskID, err)
}

func (r *Router) changeTask(ctx context.Context, req *message.TaskChange) (*task.Item, error) {
	if err := r.accepting(); err != nil {
		return nil, err
	}
	name, err := r.LocateTask(ctx, req.TaskID)
	if err != nil {
		return nil, err
	}
	var item task.Item
	// NB: not askReader, whose ErrForbidden is for who has named the workflow.
	if _, err = r.ask(name.Workflow, name.InstanceID(), changeTask{req, name.Task, &item}); err != nil {
		return nil, err // NB: without an answer the actor may be writing item
	}
	return &item, nil
}

// changeTask is the request of ChangeTask. item is written before the answer.
type changeTask struct {
	*message.TaskChange
	id   statemachine.PartID
	item *task.Item
}

func (req changeTask) run(i *instance, c *call) error {
	caller, now := catalog.CallerOf(req.Caller), i.router.o.Clock()
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	whole, err := i.whole()
	if err != nil {
		return err
	}
	blind := !whole.MayRead(caller, now)
	if blind && (!caller.OverridesClaims || req.Action == message.Claim) {
		return failure.ErrNotFound
	}
	t := task.Find(&i.state, req.id)
	if t == nil {
		return failure.ErrNotFound
	}
	to, kind, err := req.Decide(whole, t, now)
	if err != nil {
		return err
	}
	store, err := i.rows()
	if err != nil {
		return err
	}
	requester, err := task.LoadRequester(store, i.shard, i.id)
	if err != nil {
		return err
	}
	next := i.state
	if to != t.Assignee {
		if next, err = i.of.Assign(&i.state, req.id, to); err != nil {
			return failure.ErrNotFound
		}
	}
	whole.State = &next
	if blind {
		*req.item = *whole.BlindItemOf(task.Find(&next, req.id))
	} else {
		*req.item = *whole.ItemOf(task.Find(&next, req.id), caller, now, requester)
	}
	if to == t.Assignee {
		i.deliver(c, nil)
		return nil
	}
	row := activity.Row{Kind: kind, At: now, User: caller.ID, Task: t.ID, Node: t.At, To: to}
	return i.commitActivity(c, &change{next: next, caller: caller.ID}, &row)
}

// commitActivity commits a change with something that has happened beside the history.
func (i *instance) commitActivity(c *call, ch *change, row *activity.Row) error {
	number, err := i.nextActivity()
	if err != nil {
		return err
	}
	more := ch.writes
	ch.writes = func(w *persistence.Writes) {
		w.Set(key.Activity(nil, i.shard, i.id, i.state.Sequence, number), row.Append(nil))
		if more != nil {
			more(w)
		}
	}
	return i.commit(c, ch, false)
}

// nextActivity is the number of the next activity behind the last entry.
func (i *instance) nextActivity() (uint32, error) {
	store, err := i.rows()
	if err != nil {
		return 0, err
	}
	return activity.Next(store, i.shard, i.id, i.state.Sequence)
}

// AddComment writes a comment beside an instance's history, and returns it when it is durable; a repetition returns the first one. The errors are
// those of Load, and failure.ErrQuota, ErrKeyReused and ErrOutcomeUnknown.
func (r *Router) AddComment(_ context.Context, req *message.Comment) (*activity.Row, error) {
	var row activity.Row
	err := r.accepting()
	if err == nil && !req.Counted {
		err = r.countRefusal(r.eventQuota.Take(req.Caller.ID, r.o.Clock()))
	}
	if err == nil {
		_, err = r.askReader(&req.Load, addComment{req, &row})
	}
	if err != nil {
		return nil, failure.In("comment", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return &row, nil
}

// addComment is the request of AddComment. row is written before the answer.
type addComment struct {
	*message.Comment
	row *activity.Row
}

func (req addComment) run(i *instance, c *call) error {
	if err := i.mayRead(req.Caller); err != nil {
		return err
	}
	row := activity.Row{Kind: activity.Comment, At: i.router.o.Clock(), User: string(req.Caller.ID), Text: req.Text}
	key := key.Reply(nil, i.shard, i.id, retry.DigestOf(row.User, req.Retry.Key))
	if req.Retry.Key != "" {
		store, err := i.rows()
		if err != nil {
			return err
		}
		first, err := retry.Load(store, key, req.Retry.Fingerprint)
		if err != nil {
			return err
		}
		if first != nil {
			row.At = time.UnixMilli(first.At).UTC()
			*req.row = row
			i.deliver(c, nil)
			return nil
		}
	}
	*req.row = row
	return i.commitActivity(c, &change{next: i.state, caller: row.User, writes: func(w *persistence.Writes) {
		if req.Retry.Key != "" {
			i.forgetKeys(w)
			first := retry.First{Fingerprint: req.Retry.Fingerprint, Instance: i.id, Sequence: i.state.Sequence, At: row.At.UnixMilli()}
			w.Set(key, first.Append(nil))
		}
	}}, &row)
}

// Activity returns a page of what has happened to an instance. The errors are those of Load, and failure.ErrInvalid.
func (r *Router) Activity(ctx context.Context, req *message.Activity) (*activity.Page, error) {
	of := activity.Request{OldestFirst: req.OldestFirst, Limit: req.Limit, Cursor: req.Cursor}
	err := r.look(ctx, &req.Load, func(i *instance) error {
		of.Instance, of.Sequence, of.Timers = i.id, i.state.Sequence, i.state.Timers()
		return nil
	})
	if err == nil {
		of.Deliveries, err = r.OfInstance(of.Instance)
	}
	var page *activity.Page
	if err == nil {
		page, err = activity.Read(r.store, &of)
	}
	return page, failure.In("activity of", req.WorkflowID+"/"+req.InstanceID, err)
}

// putTasks writes what a step changes in the tasks of the instance. before is its definition until now, and was what it was.
func (i *instance) putTasks(w *persistence.Writes, c *call, ch *change, before *statemachine.Definition, was *statemachine.Instance, ended, begun []statemachine.Task) (changed bool) {
	if len(ended)+len(begun) == 0 {
		return false
	}
	of := &task.Origin{
		Shard: i.shard, Workflow: i.workflowID, Instance: i.id, Before: before, Of: i.of, User: ch.caller, Event: string(ch.entry.Event), At: i.state.UpdatedAt,
	}
	earlier := *was // NB: a copy, so that only steps that change tasks have one on the heap
	task.Put(w, of, ended, begun, ch.decided, statemachine.View{Instance: &earlier, Of: before}.TaskText)
	i.tellTasks(c, task.ChangeOf(of, ended, begun))
	return true
}

// tellTasks has those who watch told of a change when it is durable. In a cluster they get what becomes visible in the replicas.
func (i *instance) tellTasks(c *call, change *task.Change) {
	if i.router.store.Alone() && i.router.feed.IsWatched() {
		c.withNews().tasks = change
	}
}

// publishTasks tells who watches tasks what became of a commit that changes some; nil: it does not.
func (r *Router) publishTasks(change *task.Change, err error) {
	switch {
	case change == nil:
	case err == nil:
		r.feed.Changed(change)
	case errors.Is(err, persistence.ErrOutcomeUnknown), errors.Is(err, persistence.ErrLost):
		r.feed.Missed()
	}
}
