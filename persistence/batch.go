package persistence

import (
	"encoding/binary"
	"fmt"
	"slices"

	"troupe/persistence/internal/commit"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// batchRetainedBytes is the largest buffer that a pooled batch keeps.
const batchRetainedBytes = 256 << 10

// Batch gathers changes that become visible and durable together or not at all. It belongs to one goroutine until
// Append or Discard takes it; after that it must not be touched, because it is used again for somebody else.
//
// All keys are of the shard it was made for. Anything else is a mistake in this program and panics.
type Batch struct {
	store  *Store
	shard  key.Shard
	ticket commit.Ticket
	feed   []announcement // in their order; the first placed of them have their places
	placed int

	// With replicas: the epoch in which the writer has read, and the bytes when it was appended.
	epoch uint64
	size  int64
}

// NewBatch returns an empty set of changes for sh. It comes from a pool; give it to Append or call Discard.
func (s *Store) NewBatch(sh key.Shard) *Batch {
	if sh != key.Meta && int(sh) >= s.shards {
		panic(fmt.Sprintf("persistence: shard %d of %d", sh, s.shards))
	}
	w := s.newBatch(sh)
	if s.replicas != nil {
		w.epoch = s.Epoch(sh)
	}
	return w
}

// NewBatchIn is [Store.NewBatch] for a writer that goes on with what it has read in an
// epoch of the shard. When that is over, the changes are refused.
func (s *Store) NewBatchIn(sh key.Shard, epoch uint64) *Batch {
	w := s.NewBatch(sh)
	w.epoch = epoch
	return w
}

func (s *Store) newBatch(sh key.Shard) *Batch {
	w, _ := s.pool.Get().(*Batch)
	if db := s.db.Load(); w == nil || w.ticket.DB != db {
		w = &Batch{store: s}
		w.ticket.Owner, w.ticket.DB = (*owned)(w), db
		if db != nil {
			w.ticket.Batch = db.EmptyBatch(batchRetainedBytes)
		}
	}
	w.shard = sh
	return w
}

// Set stores value under k. Both are copied.
func (w *Batch) Set(k, value []byte) {
	w.check(k)
	if key.IsCount(k) {
		panic("persistence: Set on a counter")
	}
	w.must(w.ticket.Batch.Set(k, value, nil))
}

// Delete removes key, whether it exists or not.
func (w *Batch) Delete(key []byte) {
	w.check(key)
	w.must(w.ticket.Batch.Delete(key, nil))
}

// DeleteRange removes all keys from from up to but not including to. Both are of the shard and of one kind of row.
func (w *Batch) DeleteRange(from, to []byte) {
	w.check(from)
	w.check(to)
	w.must(w.ticket.Batch.DeleteRange(from, to, nil))
}

// Add changes the counter under k by delta, without reading it. A counter that does not exist is zero.
func (w *Batch) Add(k []byte, delta int64) {
	w.check(k)
	if !key.IsCount(k) {
		panic("persistence: Add on something other than a counter")
	}
	var value [engine.CounterBytes]byte
	binary.BigEndian.PutUint64(value[:], uint64(delta))
	w.must(w.ticket.Batch.Merge(k, value[:], nil))
}

// Len returns the number of changes.
func (w *Batch) Len() int {
	return int(w.ticket.Batch.Count()) + len(w.feed) - w.placed
}

// Each visits what it sets, and with a nil value what it deletes by name; both are valid during the call.
func (w *Batch) Each(visit func(key, value []byte)) { engine.EachSet(w.ticket.Batch.Repr(), visit) }

// Discard gives w back without applying it.
func (w *Batch) Discard() { w.recycle() }

func (w *Batch) check(k []byte) {
	if len(k) < 3 || key.Shard(binary.BigEndian.Uint16(k)) != w.shard {
		panic(fmt.Sprintf("persistence: key %x in writes for shard %d", k, w.shard))
	}
}

// must turns an error of a batch, which only a mistake in this package can cause, into a panic.
func (w *Batch) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("persistence: build batch: %v", err))
	}
}

// recycle empties w and gives it to the pool. Its batch was copied, or will never be.
func (w *Batch) recycle() {
	w.ticket.Reset()
	w.feed, w.placed = w.feed[:0], 0
	w.epoch = 0
	w.store.pool.Put(w)
}

// owned is a set of writes as the commit path sees it: a commit.Owner.
type owned Batch

func (o *owned) Place() (k, value []byte) { return (*Batch)(o).place() }

func (o *owned) Recycle() { (*Batch)(o).recycle() }

// Announce adds a row to the feed of the shard. It gets its place when the order of the writes of the shard is known, which is later than now;
// placed, unless it is nil, has it before the waiter is told anything. at is the time in Unix milliseconds. value is copied.
//
// Sketch of the cost: a key of 11 bytes and 8 bytes beside value in the batch that is written anyway. The rows of a shard follow each other there, as
// in the memtable, which finds the place of a row beside the one before without a search.
func (w *Batch) Announce(at int64, value []byte, placed *key.FeedPlace) {
	w.ticket.Announces = true
	w.feed = slices.Grow(w.feed, 1)[:len(w.feed)+1] // NB: with the bytes of one from before
	a := &w.feed[len(w.feed)-1]
	a.at, a.placed = key.FeedPlaceAt(at), placed
	a.value = append(binary.BigEndian.AppendUint64(a.value[:0], 0), value...)
}

// announcement is a row of the feed in a set of writes.
type announcement struct {
	at     key.FeedPlace
	placed *key.FeedPlace
	key    []byte
	value  []byte // with room for the ordinal in front
}

// place gives the next row of the feed its place, and returns it. It is called in the order in which the writes of the
// shard will be visible, and returns nothing when there is no row more.
func (w *Batch) place() (k, value []byte) {
	if w.placed == len(w.feed) {
		return nil, nil
	}
	s, end, epoch := w.store, &w.store.feedEnds[w.shard], uint64(0)
	if s.replicas != nil {
		epoch = w.epoch
	}
	if !end.known || end.epoch != epoch {
		// NB: what an earlier leader has written is visible when an epoch begins.
		last, err := s.FeedEnd(w.shard)
		if err != nil {
			s.commits.Die(fmt.Sprintf("read the end of the feed of shard %d: %v", w.shard, err))
		}
		*end = feedEnd{known: true, epoch: epoch, place: last.Place, ordinal: last.Ordinal}
	}
	a := &w.feed[w.placed]
	w.placed++
	end.place = max(end.place+1, a.at)
	end.ordinal++
	a.key = key.Feed(a.key[:0], w.shard, end.place)
	binary.BigEndian.PutUint64(a.value, end.ordinal)
	if a.placed != nil {
		*a.placed = end.place
	}
	return a.key, a.value
}

// TrimFeed removes the rows of a shard's feed up to last, and notes that. w is of the shard.
func TrimFeed(w *Batch, last key.FeedPlace) {
	w.DeleteRange(key.Feed(nil, w.shard, 1), key.Feed(nil, w.shard, last+1))
	w.Set(key.FeedFloor(nil, w.shard), binary.BigEndian.AppendUint64(nil, uint64(last)))
}
