package persistence

import (
	"errors"
	"fmt"

	"troupe/persistence/internal/commit"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// Waiter is told how an Append or a Barrier ended.
type Waiter = commit.Waiter

// VisibleWaiter is a Waiter that is also told when every reader sees what it waits for.
type VisibleWaiter = commit.VisibleWaiter

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
	w.ticket.Waiter = waiter
	return s.commits.Append(&w.ticket)
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
	if s.commits.Idle() {
		return s.commits.Gate.Ending() // NB: asked after the queue, which is emptied without an answer then
	}
	durable := make(outcome, 1)
	s.Barrier(durable)
	return <-durable
}

// AwaitVisible returns when every reader sees what was appended before, which is before it
// is durable unless many groups wait for a slow disk. It returns ErrStalled when it takes
// longer than Options.CommitWaitMax.
func (s *Store) AwaitVisible() error {
	if s.readOnly || s.replicas != nil || s.commits.Idle() {
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

// Backlog is how many bytes were appended that are not durable yet.
func (s *Store) Backlog() int64 { return s.commits.Backlog.Load() }

// Accepting returns nil while new writes are taken, else why not: it wraps ErrStalled, ErrDiskFull, ErrReadOnly or
// ErrClosed. It costs one atomic load, so it can be asked before every request.
func (s *Store) Accepting() error { return s.commits.Gate.Refusal() }

// applier is the store as the commit path sees it.
type applier struct{ *Store }

// Apply implements commit.Applier.
func (s applier) Apply(db *engine.Generation, batch engine.Batch, synced bool) (log uint64, err error) {
	log = s.recorder.NewestLog()
	s.recorder.Stamp(batch.Repr())
	if synced && !ackBeforeSync {
		return log, db.ApplySynced(batch)
	}
	return log, db.ApplyUnsynced(batch)
}

// Sync implements commit.Applier.
func (s applier) Sync(batch engine.Batch, log uint64) error {
	if ackBeforeSync {
		return nil
	}
	if err := batch.SyncWait(); err != nil {
		return err
	}
	s.recorder.Durable(log, uint64(batch.SeqNum())+uint64(batch.Count()))
	return nil
}

// Answered implements commit.Applier.
func (s applier) Answered() {
	if s.replicas == nil {
		s.written.ring()
	}
}
