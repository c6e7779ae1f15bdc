package persistence

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

const (
	// groupsMax is how many groups may wait for a sync. One sync serves all that are there
	// when it begins; what comes while that many wait gathers in larger groups.
	groupsMax = 64
	// groupTicketsMax and groupBytesMax are how much is enough for one group: what a group
	// costs by itself is little beside that, and its log record is written while the next
	// group is gathered.
	groupTicketsMax = 256
	groupBytesMax   = 256 << 10
)

// commits is the state of the commit path:
//
//	Append ──► queue ──► applier ──► committer ──► Waiter
//	                     one group   waits for
//	                     at a time   its sync
//
// The applier and the committer are a goroutine each, so that whoever appends waits for
// neither memory nor disk.
type commits struct {
	queue *queue
	// free has the groups that nobody uses, applied those that the committer has not passed.
	// Both have room for all.
	free, applied chan *group
	// done is closed when the committer has returned.
	done chan struct{}
	// writing counts the tickets with changes that were taken and that the committer has
	// not passed yet, and bytes what they write.
	writing, bytes atomic.Int64
}

// group is tickets that share one batch of Pebble's and one sync. It belongs to the
// applier, then to the committer.
type group struct {
	tickets []*Writes          // in the order of Append; changed under the queue's lock
	db      *engine.Generation // that the batch was made for
	batch   engine.Batch       // empty: the tickets only wait
	synced  bool               // somebody waits for a sync of the batch
	log     uint64             // the newest log when the group was applied
}

func (c *commits) init() {
	c.queue, c.done = newQueue(), make(chan struct{})
	c.free, c.applied = make(chan *group, groupsMax), make(chan *group, groupsMax)
	for range groupsMax {
		c.free <- &group{}
	}
}

// Append takes w over and returns. The changes become visible soon after, to all readers
// at the same moment and in the order of the calls; see [Store.AwaitVisible]. They are
// durable when the waiter is told so. One sync serves all commits that arrive while the
// sync before it is running.
//
// Append never waits, not even while the store has no room in memory because flushing
// cannot keep up; Accepting says so then, and the waiter is told after
// Options.CommitWaitMax at the latest, in a store that stands alone.
//
// While the store takes nothing (see [Store.Accepting]) nothing is applied:
// Append returns false, and the waiter gets the reason, in its turn. After Close
// it is called at once, on the caller's goroutine. Whoever keeps the state that
// it wrote in memory must drop it before anything is built on top of it.
//
// A store with replicas gives the changes to the group of their shard; see [Replication]. Their
// waiter is told when a majority of nodes has them or this node leads no more, however long
// that takes: followers that answer and cannot write hold it up. Who cannot wait so
// long says so to its own caller; the changes may still be confirmed.
func (s *Store) Append(w *Writes, waiter Waiter) (taken bool) {
	if s.replicas != nil {
		return s.replicate(w, waiter)
	}
	return s.appendHere(w, waiter)
}

// appendHere is Append on this node alone.
func (s *Store) appendHere(w *Writes, waiter Waiter) (taken bool) {
	w.waiter = waiter
	if w.Len() > 0 { // waiting for what is there is always possible
		// NB: counted before the gate is asked, so that nobody is on the way in once
		// the gate is closed and the count is zero.
		s.commits.writing.Add(1)
		if !w.ungated {
			w.refusal = s.gate.refusal()
		}
		if w.refusal == nil && w.db != s.db.Load() {
			w.refusal = errReopened
		}
		if w.refusal != nil {
			s.commits.writing.Add(-1)
		}
	}
	w.since = s.clock.Load()
	taken = w.refusal == nil
	if w.writes() {
		s.commits.bytes.Add(int64(w.batch.Len()))
	}
	if s.commits.queue.push(w) {
		return taken // NB: w belongs to the applier
	}
	s.passed(w)
	w.recycle()
	s.metrics.refused.Add(1)
	waiter.Committed(ErrClosed)
	return false
}

// Commit is [Store.Append] for a caller who waits: it returns when the changes are
// durable, or why they are not known to be.
func (s *Store) Commit(w *Writes) error {
	durable := make(outcome, 1)
	s.Append(w, durable)
	return <-durable
}

// Barrier tells waiter when everything appended before is durable. With replicas what
// is visible is confirmed, and the waiter is told at once; writers call [Store.BarrierIn].
func (s *Store) Barrier(waiter Waiter) {
	if s.replicas != nil {
		waiter.Committed(nil)
		return
	}
	w := s.NewWrites(key.Meta)
	s.metrics.barriers.Add(1)
	s.Append(w, waiter)
}

// AwaitDurable returns when everything that a reader can see now is durable. What
// is visible was appended earlier, so a place in the queue behind it is enough:
// nothing is written, and all callers that wait at the same time are served by
// the same sync.
func (s *Store) AwaitDurable() error {
	if s.readOnly || s.replicas != nil {
		return nil
	}
	if s.commits.queue.empty() {
		if s.gate.dead.Load() { // NB: asked after the queue, which complete empties without an answer then
			return errEnding
		}
		return nil
	}
	durable := make(outcome, 1)
	s.Barrier(durable)
	return <-durable
}

// AwaitVisible returns when every reader sees what was appended before, which is before it
// is durable unless many groups wait for a slow disk. It returns ErrStalled when it takes
// longer than Options.CommitWaitMax.
func (s *Store) AwaitVisible() error {
	if s.readOnly || s.replicas != nil || s.commits.queue.empty() {
		return nil
	}
	visible := make(visibility, 2)
	s.Barrier(visible)
	err := <-visible
	if errors.Is(err, ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: commits do not get through", ErrStalled)
	}
	return err
}

type outcome chan error

func (o outcome) Committed(err error) { o <- err }

// visibility has room for both.
type visibility chan error

func (v visibility) Applied()            { v <- nil }
func (v visibility) Committed(err error) { v <- err }

// applyLoop is the applier: it gathers tickets into groups until the queue is closed and
// empty.
func (s *Store) applyLoop() {
	defer close(s.commits.applied)
	for g := range s.commits.free {
		// NB: those who can run and are about to append do so before the next look. That makes
		// groups as large as the processors are busy, and costs nothing when they are not.
		runtime.Gosched()
		if !s.commits.queue.take(g) {
			return
		}
		s.apply(g)
		s.commits.applied <- g
	}
}

// apply puts what the tickets of a group write into the log buffer and makes it visible.
func (s *Store) apply(g *group) {
	defer func() {
		// Pebble panics, with its locks held, when the log cannot be written. A
		// caller that recovers would leave a store that never answers again.
		if r := recover(); r != nil {
			s.die(fmt.Sprintf("apply batch: %v", r))
		}
	}()
	for _, t := range g.tickets {
		if t.writes() {
			g.add(t)
			s.metrics.appended.Add(1)
		}
	}
	if g.writes() {
		g.log = s.recorder.NewestLog()
		s.recorder.Stamp(g.batch.Repr())
		s.metrics.appendedBytes.Add(uint64(g.batch.Len()))
		apply := g.db.ApplySynced
		if ackBeforeSync || !g.synced {
			apply = g.db.ApplyUnsynced
		}
		if err := apply(g.batch); err != nil {
			s.die(fmt.Sprintf("apply batch: %v", err))
		}
	}
	for _, t := range g.tickets {
		if w, ok := t.waiter.(VisibleWaiter); ok && t.refusal == nil {
			w.Applied()
		}
	}
}

// add appends what a ticket writes.
func (g *group) add(t *Writes) {
	if g.db != t.db {
		g.db, g.batch = t.db, t.db.EmptyBatch(2*groupBytesMax)
	}
	if g.batch.Count() == 0 {
		// Each batch begins with a stamp in the log only.
		t.must(integrity.Reserve(g.batch))
	}
	t.place()
	t.must(engine.Join(g.batch, t.batch))
	g.synced = g.synced || !t.unsynced
}

// writes reports whether there is anything to apply.
func (g *group) writes() bool { return g.batch != nil && g.batch.Count() > 0 }

// commitLoop is the committer: it answers the tickets in order until the applier has
// ended.
func (s *Store) commitLoop() {
	defer close(s.commits.done)
	for g := range s.commits.applied {
		if g.writes() && g.synced && !ackBeforeSync {
			if err := g.batch.SyncWait(); err != nil {
				s.die(fmt.Sprintf("sync log: %v", err))
			}
			s.recorder.Durable(g.log, uint64(g.batch.SeqNum())+uint64(g.batch.Count()))
		}
		for _, t := range g.tickets {
			s.complete(t)
		}
		if g.writes() && s.replicas == nil {
			s.written.ring()
		}
		if g.batch != nil {
			g.batch.Reset()
		}
		g.synced = false
		s.commits.queue.release(g)
		s.commits.free <- g
	}
}

// passed ends the counting of a ticket, and reports whether it writes.
func (s *Store) passed(t *Writes) (writes bool) {
	if writes = t.writes(); writes {
		s.commits.writing.Add(-1)
		s.commits.bytes.Add(-int64(t.batch.Len()))
	}
	return writes
}

// Backlog is how many bytes were appended that are not durable yet.
func (s *Store) Backlog() int64 { return s.commits.bytes.Load() }

// complete answers a ticket that is durable or was refused, unless the watchdog has. Once
// the process is about to end, nothing is acknowledged.
func (s *Store) complete(t *Writes) {
	writes := s.passed(t)
	if t.refusal == nil && s.gate.dead.Load() {
		return // what was synced may stand in a file that is not ours any more
	}
	switch {
	case !answer(t, t.refusal):
		s.commits.queue.awaitSweep()
	case t.refusal != nil:
		s.metrics.refused.Add(1)
	case writes:
		s.metrics.committed.Add(1)
	}
}

// die ends the process. If Options.Fatal returns in spite of its contract, the
// goroutine stops here: going on could acknowledge what is lost.
func (s *Store) die(reason string) {
	s.gate.dead.Store(true)
	s.gate.update()
	s.options.Fatal(reason)
	select {}
}
