package persistence

import (
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/record"
)

// syncsMax is how many commits may wait for a sync of their own. Pebble has
// room for record.SyncConcurrency of them and blocks the next one until a sync
// is over, which Append promises not to do.
const syncsMax = record.SyncConcurrency / 2

// commits is the state of the commit path.
type commits struct {
	queue *queue
	// done is closed when the committer has returned.
	done chan struct{}
	// syncs counts the tickets that are applied, or on the way there, and that the
	// committer has not passed yet.
	syncs atomic.Int64
	// waitingSince is when the ticket that the committer is waiting for was
	// appended, zero while it waits for none. The watchdog reads it.
	waitingSince atomic.Int64
}

// Append applies w and returns. The changes are visible to every reader at once
// and durable when the waiter is told so. One sync serves all commits that arrive
// while the sync before it is running.
//
// Append never waits for a sync. It does wait, like every writer, while the
// store has no room in memory because flushing cannot keep up; Accepting says
// so, and the waiter is told after Options.CommitWaitMax even then.
//
// While the store takes nothing (see [Store.Accepting]) nothing is applied:
// Append returns false, and the waiter gets the reason, in its turn. After Close
// it is called at once, on the caller's goroutine. Whoever keeps the state that
// it wrote in memory must drop it before anything is built on top of it.
func (s *Store) Append(w *Writes, waiter Waiter) (taken bool) {
	w.waiter = waiter
	w.barrier = w.Len() == 0
	if !w.barrier { // waiting for what is there is always possible
		// NB: counted before the gate is asked, so that nobody is on the way in once
		// the gate is closed and the count is zero.
		w.unsynced = s.commits.syncs.Add(1) > syncsMax
		if w.refusal = s.gate.refusal(); w.refusal == nil && w.db != s.db.Load() {
			w.refusal = errReopened
		}
		if w.refusal != nil {
			s.commits.syncs.Add(-1)
		}
	}
	w.since = s.clock.Load()
	taken = w.refusal == nil
	apply := taken && !w.barrier
	if apply {
		w.log = s.recorder.NewestLog()
		w.applied.Add(1)
	}
	if !s.commits.queue.push(w) {
		if apply {
			s.commits.syncs.Add(-1)
			w.applied.Done()
		}
		w.recycle()
		s.metrics.refused.Add(1)
		waiter.Committed(ErrClosed)
		return false
	}
	// NB: from here on the committer owns w: as soon as applied is done, or at
	// once when there is nothing to apply.
	if apply {
		s.apply(w)
	}
	return taken
}

// Commit is [Store.Append] for a caller who waits: it returns when the changes are
// durable, or why they are not known to be.
func (s *Store) Commit(w *Writes) error {
	durable := make(outcome, 1)
	s.Append(w, durable)
	return <-durable
}

// Barrier tells waiter when everything appended before is durable.
func (s *Store) Barrier(waiter Waiter) {
	w := s.NewWrites(Meta)
	s.metrics.barriers.Add(1)
	s.Append(w, waiter)
}

// AwaitDurable returns when everything that a reader can see now is durable. What
// is visible was appended earlier, so a place in the queue behind it is enough:
// nothing is written, and all callers that wait at the same time are served by
// the same sync.
func (s *Store) AwaitDurable() error {
	if s.readOnly || s.commits.queue.empty() {
		return nil
	}
	durable := make(outcome, 1)
	s.Barrier(durable)
	return <-durable
}

type outcome chan error

func (o outcome) Committed(err error) { o <- err }

// apply puts the batch into the log buffer and makes it visible.
func (s *Store) apply(w *Writes) {
	defer func() {
		// Pebble panics, with its locks held, when the log cannot be written. A
		// caller that recovers would leave a store that never answers again.
		if r := recover(); r != nil {
			s.die(fmt.Sprintf("apply batch: %v", r))
		}
	}()
	s.recorder.Stamp(w.batch.Repr())
	s.metrics.appended.Add(1)
	s.metrics.appendedBytes.Add(uint64(w.batch.Len()))
	var err error
	if ackBeforeSync || w.unsynced {
		err = w.db.apply(w.batch)
	} else {
		err = w.db.applySynced(w.batch)
	}
	if err != nil {
		s.die(fmt.Sprintf("apply batch: %v", err))
	}
	w.applied.Done()
}

// commitLoop is the committer: it answers the tickets in order until the queue
// is closed and empty.
func (s *Store) commitLoop() {
	defer close(s.commits.done)
	for {
		tickets, ok := s.commits.queue.take()
		if !ok {
			return
		}
		s.completeAll(tickets)
		s.commits.waitingSince.Store(0)
		s.commits.queue.release()
	}
}

// completeAll waits for each ticket in turn and answers it.
func (s *Store) completeAll(tickets []*Writes) {
	for len(tickets) > 0 {
		t := tickets[0]
		s.commits.waitingSince.Store(t.since)
		n := 1
		switch {
		case t.barrier || t.refusal != nil:
			s.complete(t, t.refusal)
		case t.unsynced && !ackBeforeSync:
			n = s.completeUnsynced(tickets)
		default:
			t.applied.Wait()
			if !ackBeforeSync {
				if err := t.batch.SyncWait(); err != nil {
					s.die(fmt.Sprintf("sync log: %v", err))
				}
			}
			s.complete(t, nil)
		}
		tickets = tickets[n:]
	}
}

// completeUnsynced answers the run of unsynced tickets at the front and returns how
// many they were. They are in the log without a sync; one empty record behind
// them, synced, makes all of them durable.
func (s *Store) completeUnsynced(tickets []*Writes) int {
	n := 0
	for n < len(tickets) && tickets[n].unsynced && tickets[n].refusal == nil && !tickets[n].barrier {
		tickets[n].applied.Wait()
		n++
	}
	if err := s.db.Load().syncLog(); err != nil {
		s.die(fmt.Sprintf("sync log: %v", err))
	}
	for _, t := range tickets[:n] {
		s.complete(t, nil)
	}
	return n
}

// complete records a durable ticket and answers it, unless the watchdog has. Once
// the process is about to end, nothing is acknowledged.
func (s *Store) complete(t *Writes, err error) {
	if !t.barrier && t.refusal == nil {
		s.commits.syncs.Add(-1)
		if !ackBeforeSync {
			end := uint64(t.batch.SeqNum()) + uint64(t.batch.Count())
			s.recorder.Durable(t.log, end)
		}
	}
	if t.refusal != nil {
		s.metrics.refused.Add(1)
	}
	if err == nil && s.gate.dead.Load() {
		return // what was synced may stand in a file that is not ours any more
	}
	if answer(t, err) {
		if err == nil && !t.barrier {
			s.metrics.committed.Add(1)
		}
		return
	}
	s.commits.queue.awaitSweep()
}

// die ends the process. If Options.Fatal returns in spite of its contract, the
// goroutine stops here: going on could acknowledge what is lost.
func (s *Store) die(reason string) {
	s.gate.dead.Store(true)
	s.gate.update()
	s.options.Fatal(reason)
	select {}
}
