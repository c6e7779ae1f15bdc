package query

import (
	"bytes"
	"slices"

	"troupe/persistence"
	"troupe/persistence/key"
)

type candidate struct {
	id     key.ID
	value  []byte // what the entry of the index that sorts has; nil when _id sorts
	record []byte // the stored record, or the row of a list; nil when it has to be loaded
}

// iterator gives candidates in the order of the list, never the same twice in succession. Their slices are valid until
// next.
type iterator interface {
	next() (candidate, bool, error)
	close() error
}

type sortedIDs struct {
	ids []key.ID
	at  int
}

func (l *sortedIDs) next() (candidate, bool, error) {
	if l.at == len(l.ids) {
		return candidate{}, false, nil
	}
	id := l.ids[l.at]
	l.at++
	return candidate{id: id}, true, nil
}

func (l *sortedIDs) close() error { return nil }

func newSortedIDs(ids []key.ID, down bool, after *position) *sortedIDs {
	slices.SortFunc(ids, func(a, b key.ID) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	if down {
		slices.Reverse(ids)
	}
	if after != nil {
		behind := func(id key.ID) bool { return isBehind(bytes.Compare(id[:], after.id[:]), down) }
		if n := slices.IndexFunc(ids, behind); n >= 0 {
			ids = ids[n:]
		} else {
			ids = nil
		}
	}
	return &sortedIDs{ids: ids}
}

func isBehind(order int, down bool) bool {
	if down {
		return order < 0
	}
	return order > 0
}

type merged struct {
	cursor *persistence.MergeCursor
	kind   rowKind
	last   key.ID // of the candidate that was given last
	given  bool   // there was one
	rows   *int64 // rows counts the index rows that were read
}

// Several rows may name the same instance: those follow each other, unless values decide the order.
func (m *merged) next() (candidate, bool, error) {
	for m.cursor.Next() {
		c := candidate{}
		var ok bool
		if c.value, c.id, ok = m.kind.parse(m.cursor.Key()); !ok {
			return candidate{}, false, persistence.ErrCorrupt
		}
		if m.kind != recordRow {
			*m.rows++
		}
		if m.given && m.last == c.id && m.kind != sortedRow && m.kind != listRow {
			continue
		}
		m.last, m.given = c.id, true
		if m.kind == recordRow || m.kind == listRow {
			c.record = m.cursor.Value()
		}
		return c, true, nil
	}
	return candidate{}, false, m.cursor.Err()
}

func (m *merged) close() error { return m.cursor.Close() }

type rowKind uint8

const (
	recordRow rowKind = iota
	entryRow          // of the index of nodes or of a declared one
	sortedRow         // of a declared index where the value decides the order
	listRow           // a row of a user's list, which shows what it is about itself
)

// parse reads the key of a row. value is what decides the order, where that is not the id; it is a part of the key.
func (k rowKind) parse(rowKey []byte) (value []byte, id key.ID, ok bool) {
	switch k {
	case recordRow:
		id, ok = key.RecordID(rowKey)
	case entryRow:
		if id, ok = key.NodeID(rowKey); !ok {
			_, id, ok = key.ParseIndex(rowKey)
		}
	case sortedRow:
		value, id, ok = key.ParseIndex(rowKey)
	case listRow:
		value, id, ok = key.ParseList(rowKey)
	}
	return value, id, ok
}
