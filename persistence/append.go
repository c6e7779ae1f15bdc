package persistence

import (
	"errors"
	"fmt"

	"troupe/persistence/internal/commit"
	"troupe/persistence/key"
)

// Waiter is told how an Append or a Barrier ended.
type Waiter = commit.Waiter

// VisibleWaiter is a Waiter that is also told when every reader sees what it waits for.
type VisibleWaiter = commit.VisibleWaiter

// Append takes w over and returns. The changes become visible soon after, to all readers at the same moment and in the order of the calls; see
// [Store.AwaitVisible]. They are durable when the waiter is told so. One sync serves all commits that arrive while the sync before it is running.
//
// Append never waits, not even while the store has no room in memory because flushing cannot keep up; Accepting says so
// then, and the waiter is told after Options.CommitWaitMax at the latest, in a standalone store.
//
// While the store takes nothing (see [Store.Accepting]) nothing is applied: Append returns false, and the waiter gets
// the reason, in its turn. After Close it is called at once, on the caller's goroutine. Anyone who keeps the state that it
// wrote in memory must drop it before anything is built on top of it.
//
// A store with replicas gives the changes to the group of their shard; see [Replication]. Their waiter is told when a
// majority of nodes has them or this node leads no more, however long that takes: followers that answer and cannot
// write hold it up. Who cannot wait so long says so to its own caller; the changes may still be confirmed.
func (s *Store) Append(w *Batch, waiter Waiter) (taken bool) {
	if s.replicas != nil {
		return s.replicate(w, waiter)
	}
	return s.appendHere(w, waiter)
}

// appendHere is Append on this node alone.
func (s *Store) appendHere(w *Batch, waiter Waiter) (taken bool) {
	w.ticket.Waiter = waiter
	return s.commits.Append(&w.ticket)
}

// Commit is [Store.Append] for a caller who waits: it returns when the changes are durable, or why they are not known to be.
func (s *Store) Commit(w *Batch) error {
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
	w := s.NewBatch(key.Meta)
	s.metrics.barriers.Add(1)
	s.Append(w, waiter)
}

// AwaitDurable returns when everything that a reader can see now is durable. What is visible was appended earlier, so a place in the queue behind it
// is enough: nothing is written, and all callers that wait at the same time are served by the same sync.
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

// AwaitVisible returns when every reader sees what was appended before, which is before it is durable unless many
// groups wait for a slow disk. It returns ErrStalled when it takes longer than Options.CommitWaitMax.
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

// replicate is Append for a shard with replicas.
func (s *Store) replicate(w *Batch, waiter Waiter) (taken bool) {
	w.ticket.Waiter = waiter
	var err error
	if w.Len() > 0 {
		err = s.commits.Gate.Refusal()
	}
	if err == nil {
		w.size = int64(w.ticket.Batch.Len())
		size := w.size // NB: w belongs to the group once it has it
		s.commits.Backlog.Add(size)
		err = ErrNotLed
		if g := s.replicas.At(w.shard).Load(); g != nil {
			err = g.Append(w, w.epoch)
		}
		if err == nil {
			return true // NB: w belongs to the group
		}
		s.commits.Backlog.Add(-size)
	}
	err = ofShard(w.shard, err)
	w.recycle()
	s.commits.Counters.Refused.Add(1)
	waiter.Committed(err)
	return false
}

// Repr implements replica.Change.
func (w *Batch) Repr() []byte {
	if w.Len() == 0 {
		return nil
	}
	for k, value := w.place(); k != nil; k, value = w.place() {
		w.Set(k, value)
	}
	return w.ticket.Batch.Repr()
}

// Done implements replica.Change.
func (w *Batch) Done(err error) {
	s, waiter, writes := w.store, w.ticket.Waiter, w.Len() > 0
	s.commits.Backlog.Add(-w.size)
	err = ofShard(w.shard, err)
	w.recycle()
	switch {
	case errors.Is(err, ErrLost):
		s.commits.Counters.Unknown.Add(1)
	case err != nil:
		s.commits.Counters.Refused.Add(1)
	case writes:
		s.commits.Counters.Committed.Add(1)
	}
	if v, ok := waiter.(VisibleWaiter); ok && err == nil {
		v.Applied()
	}
	waiter.Committed(err)
}

// DeletePrefixes removes every key that begins with one of the prefixes, which are built for EveryShard: one durable set of writes for each shard.
// After an error or a crash it is called again. With replicas it does so in the shards that this node leads.
func (s *Store) DeletePrefixes(prefixes ...[]byte) error {
	for sh := range s.shards {
		if s.Epoch(key.Shard(sh)) == 0 {
			continue
		}
		w := s.NewBatch(key.Shard(sh))
		for _, prefix := range prefixes {
			w.DeleteRange(key.Range{Prefix: prefix}.In(key.Shard(sh)))
		}
		if err := s.Commit(w); err != nil {
			return err
		}
	}
	return nil
}

// deletesMax is the most keys that one set of writes of DeleteWhere removes.
const deletesMax = 1000

// DeleteWhere removes every key that begins with prefix, which is built for EveryShard, and of whose value gone says so: in durable sets of writes,
// shard after shard. What it cannot read or write in one shard keeps it from no other. With replicas it does so in the shards that this node leads.
func (s *Store) DeleteWhere(prefix []byte, gone func(value []byte) (bool, error)) error {
	var failed error
	for sh := range s.shards {
		if s.Epoch(key.Shard(sh)) == 0 {
			continue
		}
		inShard, _ := key.Range{Prefix: prefix}.In(key.Shard(sh))
		w := s.NewBatch(key.Shard(sh))
		err := s.Scan(inShard, func(k, value []byte) error {
			yes, err := gone(value)
			if yes {
				w.Delete(k)
			}
			if err != nil || w.Len() < deletesMax {
				return err
			}
			err, w = s.Commit(w), s.NewBatch(key.Shard(sh))
			return err
		})
		failed = errors.Join(failed, err, s.Commit(w))
	}
	return failed
}
