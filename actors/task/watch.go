package task

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// heartbeatEvery is how often a watcher for whom there is nothing is told so.
const heartbeatEvery = 15 * time.Second

// WatchRequest asks for what comes into the caller's worklists and goes from them.
type WatchRequest struct {
	Caller *identity.Principal
	// Reauthorize returns the caller as of now, or an error that ends the watch. It is called before each event.
	Reauthorize func() (*identity.Principal, error)
}

// EventKind is what an Event says.
type EventKind uint8

const (
	Opened    EventKind = iota // it begins: everything that is acknowledged from now on comes
	Changed                    // the tasks of an instance are others
	Lost                       // something is missing: read the list again
	Heartbeat                  // nothing happened for a while
)

// Event is one thing that a watcher is told.
type Event struct {
	Kind EventKind
	// WorkflowID and InstanceID are those of Changed, and Items all open tasks of the instance that the caller has or
	// may take over.
	WorkflowID, InstanceID string
	Items                  []*Item
}

var errOver = errors.New("watching has stopped")

// Watcher runs watches of tasks.
type Watcher struct {
	*Lists
	Feed *Feed
	// Stopped ends when the watches end.
	Stopped context.Context //nolint:containedctx // of the service

	kind *fanout.Kind[watched, watchEvent, struct{}] // nil: this node has all shards
}

// Watch calls yield with Opened, then with Changed for each instance whose tasks have changed for the caller. It
// returns nil when the service stops, ctx's error, yield's own, or failure.ErrUnavailable.
func (s *Watcher) Watch(ctx context.Context, req *WatchRequest, yield func(*Event) error) error {
	if s.kind != nil {
		return failure.In("watch", "tasks", s.merged(ctx, req, yield))
	}
	return failure.In("watch", "tasks", s.watch(ctx, s.Store.Numbered(), req, yield))
}

func (s *Watcher) watch(ctx context.Context, shards []key.Shard, req *WatchRequest, yield func(*Event) error) error {
	if s.Stopped.Err() != nil {
		return failure.ErrUnavailable
	}
	w := s.Feed.join(append(candidateLists(catalog.CallerOf(req.Caller)), worklist{listMine, string(req.Caller.ID)}), shards)
	defer s.Feed.leave(w)
	if err := s.settle(ctx, shards); err != nil {
		return err
	}
	err := s.run(ctx, w, shards, req, yield)
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

func (s *Watcher) settle(ctx context.Context, shards []key.Shard) error {
	s.Catalog.AwaitCommits()
	if err := s.Store.AwaitDurable(); err != nil {
		return failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	return s.Queries.AwaitCurrentIn(ctx, shards)
}

func (s *Watcher) run(ctx context.Context, w *watcher, shards []key.Shard, req *WatchRequest, yield func(*Event) error) error {
	beat := time.NewTimer(heartbeatEvery)
	defer beat.Stop()
	caller := req.Caller
	tell := func(e *Event) (err error) {
		if caller, err = req.Reauthorize(); err != nil {
			return err
		}
		beat.Reset(heartbeatEvery)
		return yield(e)
	}
	if err := tell(&Event{Kind: Opened}); err != nil {
		return err
	}
	look := time.NewTicker(epochEvery)
	defer look.Stop()
	told := map[instance]bool{} // those of which the caller was last told that they have tasks
	for {
		select {
		case <-w.wake:
		case <-beat.C:
			if err := tell(&Event{Kind: Heartbeat}); err != nil {
				return err
			}
			continue
		case <-look.C:
			for _, sh := range shards {
				if s.kind != nil && s.Store.Epoch(sh) == 0 {
					return failure.Elsewhere(uint16(sh))
				}
			}
			continue
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Stopped.Done():
			return errOver
		}
		changed, lost := w.take()
		if lost {
			if err := tell(&Event{Kind: Lost}); err != nil {
				return err
			}
		}
		for _, of := range changed {
			if !slices.Contains(shards, s.Store.ShardOf(of.id)) {
				continue
			}
			e, err := s.read(ctx, caller, of, told)
			if err == nil && e != nil {
				err = tell(e)
			}
			if err != nil {
				return err
			}
		}
	}
}

const toldMax = 10_000

func (s *Watcher) read(ctx context.Context, p *identity.Principal, at instance, told map[instance]bool) (e *Event, err error) {
	c, now := catalog.CallerOf(p), s.Clock()
	sh := s.Store.ShardOf(at.id)
	err = s.Queries.Read(ctx, []key.Shard{sh}, p.ID, func(r *query.Reader) error {
		whole, err := loadWhole(r, s.Catalog, sh, at.workflow, at.id)
		if err != nil {
			return err
		}
		if !whole.MayRead(c, now) {
			return nil
		}
		requester, err := LoadRequester(r, sh, at.id)
		if err != nil {
			return err
		}
		e = &Event{Kind: Changed, WorkflowID: at.workflow, InstanceID: whole.State.ID, Items: whole.itemsFor(c, now, requester)}
		return nil
	})
	if err != nil && !isSkipped(err) {
		return nil, err
	}
	switch {
	case e != nil && len(e.Items) > 0:
		if len(told) < toldMax {
			told[at] = true
		}
		return e, nil
	case e == nil && told[at]: // it may not be read any more
		e = &Event{Kind: Changed, WorkflowID: at.workflow, InstanceID: instanceid.Text(at.id)}
	}
	delete(told, at)
	return e, nil
}

func (w *Whole) itemsFor(c *statemachine.Caller, now time.Time, requester string) (items []*Item) {
	for _, t := range w.State.Tasks() {
		if i := w.ItemOf(&t, c, now, requester); i.IsFor(c) {
			items = append(items, i)
		}
	}
	return slices.Clip(items)
}

type instance struct {
	workflow string
	id       key.ID
}

// Feed tells watchers which instances have tasks that changed. Nobody waits for a watcher: one that does not follow is
// told that it has lost something.
type Feed struct {
	mu       sync.Mutex
	watchers map[worklist]map[*watcher]bool // guarded by mu; by what they look at
	all      map[*watcher]bool              // guarded by mu
}

// NewFeed returns a feed that nobody watches.
func NewFeed(s *persistence.Store) *Feed {
	f := &Feed{watchers: map[worklist]map[*watcher]bool{}, all: map[*watcher]bool{}}
	s.FollowShards(follower{f})
	return f
}

type watcher struct {
	lists   []worklist  // read only
	shards  []key.Shard // read only; those whose tasks it tells
	mu      sync.Mutex
	pending map[instance]bool // guarded by mu
	lost    bool              // guarded by mu
	wake    chan struct{}     // has room for one
}

// pendingMax bounds what a watcher has not told yet.
const pendingMax = 1000

func (w *watcher) add(of instance) {
	w.mu.Lock()
	if len(w.pending) >= pendingMax && !w.pending[of] {
		w.lost = true
	} else {
		w.pending[of] = true
	}
	w.mu.Unlock()
	w.notify()
}

func (w *watcher) lose() {
	w.mu.Lock()
	w.lost = true
	w.mu.Unlock()
	w.notify()
}

func (w *watcher) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) take() (changed []instance, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for of := range w.pending {
		changed = append(changed, of)
	}
	clear(w.pending)
	lost, w.lost = w.lost, false
	return changed, lost
}

func (f *Feed) join(lists []worklist, shards []key.Shard) *watcher {
	w := &watcher{lists: lists, shards: shards, pending: map[instance]bool{}, wake: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[w] = true
	for _, l := range lists {
		if f.watchers[l] == nil {
			f.watchers[l] = map[*watcher]bool{}
		}
		f.watchers[l][w] = true
	}
	return w
}

func (f *Feed) leave(w *watcher) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, w)
	for _, l := range w.lists {
		if delete(f.watchers[l], w); len(f.watchers[l]) == 0 {
			delete(f.watchers, l)
		}
	}
}

// IsWatched reports whether anybody watches.
func (f *Feed) IsWatched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all) > 0
}

// Change is what a commit changes in worklists.
type Change struct {
	of    instance
	lists []worklist
}

// ChangeOf says which worklists Put changes with the same tasks.
func ChangeOf(of *Origin, ended, begun []statemachine.Task) *Change {
	c := &Change{of: instance{of.Workflow, of.Instance}}
	for i := range ended {
		c.lists = append(c.lists, worklistsOf(of.Before, &ended[i])...)
	}
	for i := range begun {
		c.lists = append(c.lists, worklistsOf(of.Of, &begun[i])...)
	}
	return c
}

// Changed tells of what has become durable.
func (f *Feed) Changed(c *Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range c.lists {
		for w := range f.watchers[l] {
			w.add(c.of)
		}
	}
}

// Missed tells all watchers that something may be missing.
func (f *Feed) Missed() { f.missed(func(*watcher) bool { return true }) }

func (f *Feed) missed(may func(*watcher) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.all {
		if may(w) {
			w.lose()
		}
	}
}

// follower tells a feed what becomes visible in replicas.
type follower struct{ *Feed }

func (f follower) Written(_ key.Shard, each func(visit func(key, value []byte))) {
	if !f.IsWatched() {
		return
	}
	c := &Change{}
	each(func(rowKey, _ []byte) {
		if _, w, ok := key.ParseWork(rowKey); ok {
			c.lists = append(c.lists, worklist{w.List, w.Name})
		} else if k, ok := key.Parse(rowKey); ok && k.Table == "record" { // also one that was deleted
			c.of = instance{k.Workflow, k.ID}
		}
	})
	if len(c.lists) > 0 && c.of.workflow != "" {
		f.Changed(c)
	}
}

// Skipped concerns only who tells of the shard: replicas come and go on a node without its leading them.
func (f follower) Skipped(sh key.Shard) {
	f.missed(func(w *watcher) bool { return slices.Contains(w.shards, sh) })
}
