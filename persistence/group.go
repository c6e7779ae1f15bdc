package persistence

import "sync"

// Group joins the writes of many callers into few commits: one batch, one place in the
// queue, one sync. Its methods are safe for concurrent use; Flush, Enter and Leave may be
// called on nil, which joins nothing.
//
// What was joined is not in the store before its [Joint] is flushed, so whoever keeps in
// memory what it wrote is ahead of the store until then:
//
//  1. It remembers the Joint that it joined last, and gives it to its next Join. That
//     fails when the Joint was refused: nothing is built on top of what was not written.
//  2. Before it reads rows of its own, or shows what it has to anybody outside the group,
//     it calls [Joint.Settle]. When that fails it drops what it has in memory.
//
// A Joint is flushed when it has enough, by Settle, and by Flush. Those who are about to
// join say so with Enter and then Leave; a Flush in between is left to the last of them.
type Group struct {
	store *Store
	mu    struct {
		sync.Mutex
		open    *Joint // takes more; nil: nobody has joined since the last flush
		entered int    // Enter without Leave
		flush   bool   // the last Leave flushes
	}
}

// Joint is one commit of a group.
type Joint struct {
	group   *Group
	writes  *Writes  // with waiters under Group.mu until the flush
	waiters []Waiter // in the order of Join
	flushed sync.WaitGroup
	refused bool // written before flushed is done
}

const (
	// jointWaitersMax and jointBytesMax are how much is enough for one commit: what a
	// commit costs by itself is little beside that, and readers wait for it briefly.
	jointWaitersMax = 128
	jointBytesMax   = 256 << 10
)

// NewGroup returns a group that nobody has joined.
func (s *Store) NewGroup() *Group { return &Group{store: s} }

// NewWrites returns an empty set of changes for sh. Give it to Join or call Discard.
func (g *Group) NewWrites(sh Shard) *Writes { return g.store.newWrites(sh, &g.store.parts) }

// Join adds w to the commit that the group gathers, which it returns. The waiter is told
// how that ended. w may be nil, for who only waits as with [Store.Barrier]. before is what
// w builds on, nil for nothing: when it was refused, Join is false, nothing was joined,
// and w belongs to the caller.
func (g *Group) Join(w *Writes, waiter Waiter, before *Joint) (j *Joint, taken bool) {
	g.mu.Lock()
	for before != nil && before != g.mu.open {
		g.mu.Unlock()
		if before.flushed.Wait(); before.refused {
			return nil, false
		}
		before = nil
		g.mu.Lock()
	}
	if j = g.mu.open; j == nil {
		j = &Joint{group: g, writes: g.store.newJointWrites(), waiters: make([]Waiter, 0, jointWaitersMax)}
		j.flushed.Add(1)
		g.mu.open = j
	}
	if w != nil {
		w.must(join(j.writes.batch, w.batch))
		w.recycle()
	}
	j.waiters = append(j.waiters, waiter)
	enough := len(j.waiters) == jointWaitersMax || j.writes.batch.Len() >= jointBytesMax
	if enough {
		g.mu.open = nil
	}
	g.mu.Unlock()
	if enough {
		j.flush()
	}
	return j, true
}

// flush appends what was joined. Nobody can join any more.
func (j *Joint) flush() {
	j.refused = !j.group.store.Append(j.writes, j)
	j.flushed.Done()
}

// Committed implements Waiter.
func (j *Joint) Committed(err error) {
	for _, w := range j.waiters {
		w.Committed(err)
	}
}

// Settle returns when the joint is in the store, or was refused: then it is false.
func (j *Joint) Settle() (taken bool) {
	g := j.group
	g.mu.Lock()
	open := g.mu.open == j
	if open {
		g.mu.open = nil
	}
	g.mu.Unlock()
	if open {
		j.flush()
	}
	j.flushed.Wait()
	return !j.refused
}

// IsOpenIn reports whether g, which may be nil, still gathers the joint.
func (j *Joint) IsOpenIn(g *Group) bool {
	if j.group != g {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.open == j
}

// Of reports whether the joint is one of g.
func (j *Joint) Of(g *Group) bool { return j.group == g }

// Flush has everything written that was joined and is about to be.
func (g *Group) Flush() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.mu.flush = true
	g.flushUnlock()
}

// Enter says that the caller is about to join.
func (g *Group) Enter() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.mu.entered++
	g.mu.Unlock()
}

// Leave is the end of Enter.
func (g *Group) Leave() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.mu.entered--
	g.flushUnlock()
}

// flushUnlock flushes if that was asked for and nobody is about to join, without mu.
func (g *Group) flushUnlock() {
	var j *Joint
	if g.mu.flush && g.mu.entered == 0 {
		g.mu.flush = false
		j, g.mu.open = g.mu.open, nil
	}
	g.mu.Unlock()
	if j != nil {
		j.flush()
	}
}
