package task

import (
	"sync"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

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
	lists   []worklist // read only
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
	w.rouse()
}

func (w *watcher) lose() {
	w.mu.Lock()
	w.lost = true
	w.mu.Unlock()
	w.rouse()
}

func (w *watcher) rouse() {
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

func (f *Feed) join(lists []worklist) *watcher {
	w := &watcher{lists: lists, pending: map[instance]bool{}, wake: make(chan struct{}, 1)}
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
func (f *Feed) Missed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.all {
		w.lose()
	}
}

// follower tells a feed what becomes visible in replicas.
type follower struct{ *Feed }

// Written implements persistence.ShardFollower.
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

// Skipped implements persistence.ShardFollower.
func (f follower) Skipped(key.Shard) { f.Missed() }
