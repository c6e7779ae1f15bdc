package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// FeedRow is a row of a feed. The rows of a shard are in the order in which their writes became
// visible.
type FeedRow struct {
	Place key.FeedPlace
	// Ordinal counts the rows of the shard from its first one on. Every shard has its own.
	Ordinal uint64
	// Value is what the writer announced.
	Value []byte
}

// feedHeadBytes is the ordinal in front of the value of a row.
const feedHeadBytes = 8

// ParseFeedRow takes a row of a feed apart. Its value aliases the stored one. It is false for
// bytes that are none.
func ParseFeedRow(k, stored []byte) (r FeedRow, ok bool) {
	if r.Place, ok = key.ParseFeed(k); !ok || len(stored) < feedHeadBytes {
		return FeedRow{}, false
	}
	r.Ordinal, r.Value = binary.BigEndian.Uint64(stored), stored[feedHeadBytes:]
	return r, true
}

// Announce adds a row to the feed of the shard, once in a set of writes. It gets its place when the
// order of the writes of the shard is known, which is later than now; placed, unless it is nil,
// has it before the waiter is told anything. at is the time in Unix milliseconds. value is
// copied.
//
// Sketch of the cost: a key of 11 bytes and 8 bytes beside value in the batch that is
// written anyway, all rows of a shard behind each other.
func (w *Writes) Announce(at int64, value []byte, placed *key.FeedPlace) {
	if w.feed.row != 0 {
		panic("persistence: two rows of the feed in one set of writes")
	}
	room := key.Feed(w.feed.room[:0], w.shard, key.FeedPlaceAt(at))
	room = append(binary.BigEndian.AppendUint64(room, 0), value...)
	w.feed.at, w.feed.placed, w.feed.row, w.feed.room = key.FeedPlaceAt(at), placed, w.ticket.Batch.Len(), room
	w.Set(room[:key.FeedBytes], room[key.FeedBytes:])
	w.feed.head = w.ticket.Batch.Len() - (len(room) - key.FeedBytes)
}

// announcement is the row of the feed in a set of writes.
type announcement struct {
	at     key.FeedPlace
	placed *key.FeedPlace
	// row is where the row begins in the batch, 0 without one, and head where its value
	// does.
	row, head int
	done      bool   // it has its place
	room      []byte // for key and value
}

// feedEnd is the last row of a shard's feed. In a store that stands alone it is the applier's; with
// replicas it is under the lock of the shard's group.
type feedEnd struct {
	known   bool
	epoch   uint64 // in which it was read; 0 in a store that stands alone
	place   key.FeedPlace
	ordinal uint64
}

// place gives the row of the feed its place. It is called in the order in which the writes of
// the shard will be visible, and does nothing when it was called before.
func (w *Writes) place() {
	if w.feed.row == 0 || w.feed.done {
		return
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
	end.place = max(end.place+1, w.feed.at)
	end.ordinal++
	// The row is in the batch already, and is overwritten: kind(1) length(1) shard(2) table(1) place(8).
	repr := w.ticket.Batch.Repr()
	binary.BigEndian.PutUint64(repr[w.feed.row+2+key.FeedBytes-8:], uint64(end.place))
	binary.BigEndian.PutUint64(repr[w.feed.head:], end.ordinal)
	if w.feed.placed != nil {
		*w.feed.placed = end.place
	}
	w.feed.done = true
}

func (a *announcement) reset() { *a = announcement{room: a.room[:0]} }

// FeedEnd returns the last row of a shard's feed, with no value; the zero row when there is none.
// The row is visible, and perhaps not durable yet.
func (s *Store) FeedEnd(sh key.Shard) (FeedRow, error) {
	g := s.read()
	if g == nil {
		return FeedRow{}, ErrClosed
	}
	defer g.Leave()
	return s.feedEndIn(g, sh)
}

// FeedEnd is [Store.FeedEnd] at this moment.
func (sn *Snapshot) FeedEnd(sh key.Shard) (FeedRow, error) {
	if sn.db == nil {
		return FeedRow{}, ErrClosed
	}
	return sn.store.feedEndIn(sn.db, sh)
}

func (s *Store) feedEndIn(v engine.View, sh key.Shard) (row FeedRow, err error) {
	prefix := key.FeedPrefix(nil, sh)
	it, err := v.Iter(key.Feed(nil, sh, 1), key.PrefixEnd(prefix))
	if err != nil {
		return FeedRow{}, s.readFault("read the feed at", prefix, err)
	}
	defer func() {
		if cerr := it.Close(); err == nil && cerr != nil {
			err = s.readFault("read the feed at", prefix, cerr)
		}
	}()
	if !it.Last() {
		return FeedRow{}, nil
	}
	stored, err := it.ValueAndErr()
	if err != nil {
		return FeedRow{}, s.readFault("read the feed at", prefix, err)
	}
	row, ok := ParseFeedRow(it.Key(), stored)
	if !ok {
		return FeedRow{}, s.readFault("read the feed at", it.Key(), ErrCorrupt)
	}
	row.Value = nil
	return row, nil
}

// FeedFloor returns the place of the last row that was removed from the feed of a shard; 0: none
// was.
func (sn *Snapshot) FeedFloor(sh key.Shard) (key.FeedPlace, error) {
	stored, err := sn.Load(key.FeedFloor(nil, sh))
	switch {
	case errors.Is(err, ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(stored) != 8:
		return 0, fmt.Errorf("%w: the floor of the feed of shard %d", ErrCorrupt, sh)
	}
	return key.FeedPlace(binary.BigEndian.Uint64(stored)), nil
}

// TrimFeed removes the rows of a shard's feed up to last, and notes that. w is of the shard.
func TrimFeed(w *Writes, last key.FeedPlace) {
	w.DeleteRange(key.Feed(nil, w.shard, 1), key.Feed(nil, w.shard, last+1))
	w.Set(key.FeedFloor(nil, w.shard), binary.BigEndian.AppendUint64(nil, uint64(last)))
}

// bell tells those who wait that something was written.
type bell struct {
	asked atomic.Bool
	mu    sync.Mutex
	rung  chan struct{} // guarded by mu; nil while nobody waits
}

func (b *bell) await() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
		b.asked.Store(true)
	}
	return b.rung
}

func (b *bell) ring() {
	if !b.asked.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
	}
	b.rung = nil
	b.asked.Store(false)
}

// Written returns a channel that is closed when more has become durable in the numbered shards
// of this node. It may be closed for nothing; who waits looks again.
func (s *Store) Written() <-chan struct{} { return s.written.await() }
