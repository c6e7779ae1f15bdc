package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// FeedRow is a row of a feed. The rows of a shard are in the order in which their writes became visible.
type FeedRow struct {
	Place key.FeedPlace
	// Ordinal counts the rows of the shard from its first one on. Every shard has its own.
	Ordinal uint64
	// Value is what the writer announced.
	Value []byte
}

// feedHeadBytes is the ordinal in front of the value of a row.
const feedHeadBytes = 8

// ParseFeedRow takes a row of a feed apart. Its value aliases the stored one. It is false for bytes that are none.
func ParseFeedRow(k, stored []byte) (r FeedRow, ok bool) {
	if r.Place, ok = key.ParseFeed(k); !ok || len(stored) < feedHeadBytes {
		return FeedRow{}, false
	}
	r.Ordinal, r.Value = binary.BigEndian.Uint64(stored), stored[feedHeadBytes:]
	return r, true
}

// FeedEnd returns the last row of a shard's feed, with no value; the zero row when there is none. The row is visible, and perhaps not durable yet.
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
	row, err := sn.store.feedEndIn(sn.db, sh)
	if held := sn.store.checkHeld(key.FeedPrefix(nil, sh)); held != nil {
		return FeedRow{}, held
	}
	return row, err
}

func (s *Store) feedEndIn(v engine.View, sh key.Shard) (FeedRow, error) {
	prefix := key.FeedPrefix(nil, sh)
	k, stored, err := engine.Last(v, key.Feed(nil, sh, 1), key.PrefixEnd(prefix))
	if err != nil {
		return FeedRow{}, s.readFault("read the feed at", prefix, err)
	}
	if k == nil {
		return FeedRow{}, nil
	}
	row, ok := ParseFeedRow(k, stored)
	if !ok {
		return FeedRow{}, s.readFault("read the feed at", k, ErrCorrupt)
	}
	row.Value = nil
	return row, nil
}

// FeedFloor returns the place of the last row that was removed from the feed of a shard; 0: none was.
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
