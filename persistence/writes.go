package persistence

import (
	"encoding/binary"
	"fmt"

	"troupe/persistence/internal/commit"
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
	store  *Store
	shard  key.Shard
	ticket commit.Ticket
	feed   announcement

	// With replicas: the epoch in which the writer has read, and the bytes when it was appended.
	epoch uint64
	size  int64
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
	if db := s.db.Load(); w == nil || w.ticket.DB != db {
		w = &Writes{store: s}
		w.ticket.Owner, w.ticket.DB = (*owned)(w), db
		if db != nil {
			w.ticket.Batch = db.EmptyBatch(batchRetainedBytes)
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
	w.must(w.ticket.Batch.Set(k, value, nil))
}

// Delete removes key, whether it exists or not.
func (w *Writes) Delete(key []byte) {
	w.check(key)
	w.must(w.ticket.Batch.Delete(key, nil))
}

// DeleteRange removes all keys from from up to but not including to. Both are
// of the shard and of one kind of row.
func (w *Writes) DeleteRange(from, to []byte) {
	w.check(from)
	w.check(to)
	w.must(w.ticket.Batch.DeleteRange(from, to, nil))
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
	w.must(w.ticket.Batch.Merge(k, value[:], nil))
}

// Len returns the number of changes.
func (w *Writes) Len() int { return int(w.ticket.Batch.Count()) }

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
	w.ticket.Reset()
	w.feed.reset()
	w.epoch = 0
	w.store.pool.Put(w)
}

// owned is a set of writes as the commit path sees it.
type owned Writes

// Place implements commit.Owner.
func (o *owned) Place() { (*Writes)(o).place() }

// Recycle implements commit.Owner.
func (o *owned) Recycle() { (*Writes)(o).recycle() }
