package changefeed

import (
	"encoding/binary"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/persistence/key"
)

// Cursor is how far a reader is: for each numbered shard the place of the last row that it has seen, 0 for none.
type Cursor []key.FeedPlace

// ErrGone: the feed no longer has what comes behind the cursor.
var ErrGone = failure.Refuse(failure.ErrGone, "the feed of changes no longer has what comes behind this cursor; read the present state, and go on without it")

// cursors are cursors of one list, whatever a reader picks from it.
var cursors = query.List{"changes"}

// String is the text of a cursor: the latest place, and for each shard 0 for none or how far it is behind that, plus
// one. It is the same on every node.
func (c Cursor) String() string {
	latest := uint64(slices.Max(c))
	b := binary.AppendUvarint(make([]byte, 0, 10+5*len(c)), latest)
	for _, place := range c {
		if place == 0 {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, latest-uint64(place)+1)
	}
	return cursors.Cursor(b)
}

// ParseCursor reads what String wrote, for a store of so many shards; anything else is query.ErrCursor.
func ParseCursor(text string, shards int) (Cursor, error) {
	b, err := cursors.Position(text)
	if err != nil {
		return nil, err
	}
	latest, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, query.ErrCursor
	}
	c := make(Cursor, shards)
	for sh := range c {
		b = b[n:]
		var behind uint64
		if behind, n = binary.Uvarint(b); n <= 0 || behind > latest {
			return nil, query.ErrCursor
		}
		if behind > 0 {
			c[sh] = key.FeedPlace(latest - behind + 1)
		}
	}
	if len(b) != n {
		return nil, query.ErrCursor
	}
	return c, nil
}

// Saw moves the cursor on to a row.
func (c Cursor) Saw(sh key.Shard, place key.FeedPlace) {
	c[sh] = max(c[sh], place)
}

// Raise moves the cursor on to another one, where that is further.
func (c Cursor) Raise(to Cursor) {
	for sh, place := range to {
		c[sh] = max(c[sh], place)
	}
}

// Has reports whether the cursor is at or behind another one in every shard.
func (c Cursor) Has(other Cursor) bool {
	for sh, place := range other {
		if c[sh] < place {
			return false
		}
	}
	return true
}
