package persistence

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// batchRetainedBytes is the largest buffer that a pooled batch keeps.
const batchRetainedBytes = 64 << 10

// Writes gathers changes that become visible and durable together or not at
// all. It belongs to one goroutine until Append or Discard takes it; after that
// it must not be touched, because it is used again for somebody else.
//
// All keys are of the shard it was made for. Anything else is a mistake in this
// program and panics.
type Writes struct {
	store *Store
	shard key.Shard
	batch engine.Batch
	db    *engine.Generation // that the batch was made for

	feed announcement

	// What follows is the ticket of a running Append. It is written by Append
	// before the queue gets it.

	waiter  Waiter
	refusal error  // why the writes were not taken; nil when they were
	epoch   uint64 // of a shard with replicas, in which its writer has read
	size    int64  // with replicas: in bytes, when it was appended
	// ungated: the changes are taken whatever the gate says. unsynced: nobody waits for a
	// sync of them. See [replica.Write].
	ungated, unsynced bool
	since             int64 // when Append was called, on the watchdog's clock

	// state says who may call the waiter; see the constants at queue.
	state atomic.Uint32
}

// Waiter is told how an Append or a Barrier ended.
type Waiter interface {
	// Committed is called exactly once. Nil means: durable. It is called by the
	// committer or the watchdog, never two at a time, in the order of the calls of
	// Append; after Close it is called within Append. It must not block: every other
	// commit waits meanwhile.
	Committed(err error)
}

// VisibleWaiter is a Waiter that is also told when every reader sees what it waits for.
type VisibleWaiter interface {
	Waiter
	// Applied is called once, by the applier, before Committed. It is not called when the
	// changes were refused. While the disk is stuck it may come behind Committed, and what
	// writes nothing may not get it at all. It must not block.
	Applied()
}

// NewWrites returns an empty set of changes for sh. It comes from a pool; give
// it to Append or call Discard.
func (s *Store) NewWrites(sh key.Shard) *Writes {
	if sh != key.Meta && int(sh) >= s.shards {
		panic(fmt.Sprintf("persistence: shard %d of %d", sh, s.shards))
	}
	w := s.newWrites(sh)
	if s.replicas != nil {
		w.epoch = s.Epoch(sh)
	}
	return w
}

// NewWritesIn is [Store.NewWrites] for a writer that goes on with what it has read in an
// epoch of the shard. When that is over, the changes are refused.
func (s *Store) NewWritesIn(sh key.Shard, epoch uint64) *Writes {
	w := s.NewWrites(sh)
	w.epoch = epoch
	return w
}

func (s *Store) newWrites(sh key.Shard) *Writes {
	w, _ := s.pool.Get().(*Writes)
	if db := s.db.Load(); w == nil || w.db != db {
		w = &Writes{store: s, db: db}
		if db != nil {
			w.batch = db.EmptyBatch(batchRetainedBytes)
		}
	}
	w.shard = sh
	return w
}

// Set stores value under k. Both are copied.
func (w *Writes) Set(k, value []byte) {
	w.check(k)
	if key.IsCount(k) {
		panic("persistence: Set on a counter")
	}
	w.must(w.batch.Set(k, value, nil))
}

// Delete removes key, whether it exists or not.
func (w *Writes) Delete(key []byte) {
	w.check(key)
	w.must(w.batch.Delete(key, nil))
}

// DeleteRange removes all keys from from up to but not including to. Both are
// of the shard and of one kind of row.
func (w *Writes) DeleteRange(from, to []byte) {
	w.check(from)
	w.check(to)
	w.must(w.batch.DeleteRange(from, to, nil))
}

// Add changes the counter under k by delta, without reading it. A counter
// that does not exist is zero.
func (w *Writes) Add(k []byte, delta int64) {
	w.check(k)
	if !key.IsCount(k) {
		panic("persistence: Add on something other than a counter")
	}
	var value [engine.CounterBytes]byte
	binary.BigEndian.PutUint64(value[:], uint64(delta))
	w.must(w.batch.Merge(k, value[:], nil))
}

// Len returns the number of changes.
func (w *Writes) Len() int { return int(w.batch.Count()) }

// writes reports whether there is anything to apply.
func (w *Writes) writes() bool { return w.refusal == nil && w.Len() > 0 }

// Discard gives w back without applying it.
func (w *Writes) Discard() { w.recycle() }

func (w *Writes) check(k []byte) {
	if len(k) < 3 || key.Shard(binary.BigEndian.Uint16(k)) != w.shard {
		panic(fmt.Sprintf("persistence: key %x in writes for shard %d", k, w.shard))
	}
}

// must turns an error of a batch, which only a mistake in this package can
// cause, into a panic.
func (w *Writes) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("persistence: build batch: %v", err))
	}
}

// recycle empties w and gives it to the pool. Its batch was copied, or will never be.
func (w *Writes) recycle() {
	w.batch.Reset()
	w.feed.reset()
	w.waiter, w.refusal, w.epoch, w.ungated, w.unsynced = nil, nil, 0, false, false
	w.state.Store(waiting)
	w.store.pool.Put(w)
}
