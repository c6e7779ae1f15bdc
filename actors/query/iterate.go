package query

import (
	"bytes"
	"container/heap"
	"errors"
	"slices"

	"troupe/persistence"
)

// A candidate is an instance that may match.
type candidate struct {
	shard persistence.Shard
	id    persistence.ID
	// value is what the entry of the index that sorts has; nil when _id sorts.
	value []byte
	// record is the stored record, or the row of a list; nil when it has to be
	// loaded.
	record []byte
}

// iterator gives candidates in the order of the list, and never the same one twice in
// succession. The slices of a candidate are valid until the next call.
type iterator interface {
	// next returns false at the end.
	next() (candidate, bool, error)
	close() error
}

// sortedIDs is candidates that were collected, sorted by id.
type sortedIDs struct {
	ids []persistence.ID
	of  func(persistence.ID) persistence.Shard
	at  int
}

func (l *sortedIDs) next() (candidate, bool, error) {
	if l.at == len(l.ids) {
		return candidate{}, false, nil
	}
	id := l.ids[l.at]
	l.at++
	return candidate{shard: l.of(id), id: id}, true, nil
}

func (l *sortedIDs) close() error { return nil }

// newSortedIDs sorts the ids, drops doubles and what lies before the position.
func newSortedIDs(ids []persistence.ID, of func(persistence.ID) persistence.Shard, down bool, after *position) *sortedIDs {
	slices.SortFunc(ids, func(a, b persistence.ID) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	if down {
		slices.Reverse(ids)
	}
	if after != nil {
		behind := func(id persistence.ID) bool { return isBehind(bytes.Compare(id[:], after.id[:]), down) }
		if n := slices.IndexFunc(ids, behind); n >= 0 {
			ids = ids[n:]
		} else {
			ids = nil
		}
	}
	return &sortedIDs{ids: ids, of: of}
}

// isBehind says whether a comparison means "later in the list".
func isBehind(order int, down bool) bool {
	if down {
		return order < 0
	}
	return order > 0
}

// merge is a heap of cursors, each of which is in the order of the list.
type merge struct {
	sources []*source
	down    bool
	moved   bool           // the first source's row was looked at
	last    persistence.ID // of the candidate that was given last
	given   bool           // there was one
	// rows counts the index rows that were read.
	rows *int64
}

// source is one cursor.
type source struct {
	cursor *persistence.Cursor
	shard  persistence.Shard
	kind   rowKind
	value  []byte
	id     persistence.ID
}

// rowKind says how a row names its instance.
type rowKind uint8

const (
	recordRow rowKind = iota
	nodeRow
	indexRow
	// sortedRow is indexRow where the value decides the order.
	sortedRow
	// listRow is a row of a user's list, which shows what it is about itself.
	listRow
)

// next implements iterator. Several rows may name the same instance: those
// follow each other, unless values decide the order.
func (m *merge) next() (candidate, bool, error) {
	for {
		if m.moved {
			if err := m.advance(); err != nil {
				return candidate{}, false, err
			}
		}
		if len(m.sources) == 0 {
			return candidate{}, false, nil
		}
		m.moved = true
		s := m.sources[0]
		if s.kind != recordRow {
			*m.rows++
		}
		if m.given && m.last == s.id && s.kind != sortedRow && s.kind != listRow {
			continue
		}
		m.last, m.given = s.id, true
		c := candidate{shard: s.shard, id: s.id, value: s.value}
		if s.kind == recordRow || s.kind == listRow {
			c.record = s.cursor.Value()
		}
		return c, true, nil
	}
}

func (m *merge) Len() int      { return len(m.sources) }
func (m *merge) Swap(a, b int) { m.sources[a], m.sources[b] = m.sources[b], m.sources[a] }
func (m *merge) Push(x any)    { m.sources = append(m.sources, x.(*source)) }

// Less implements heap.Interface: by value, then by id.
func (m *merge) Less(a, b int) bool {
	x, y := m.sources[a], m.sources[b]
	order := bytes.Compare(x.value, y.value)
	if order == 0 {
		order = bytes.Compare(x.id[:], y.id[:])
	}
	return isBehind(order, !m.down)
}

// Pop implements heap.Interface.
func (m *merge) Pop() any {
	last := m.sources[len(m.sources)-1]
	m.sources = m.sources[:len(m.sources)-1]
	return last
}

// add takes a cursor over, also when it fails.
func (m *merge) add(c *persistence.Cursor, sh persistence.Shard, kind rowKind) error {
	s := &source{cursor: c, shard: sh, kind: kind}
	ok, err := s.next()
	if ok {
		heap.Push(m, s)
		return nil
	}
	return errors.Join(err, c.Close())
}

// advance moves the first cursor on.
func (m *merge) advance() error {
	s := m.sources[0]
	ok, err := s.next()
	if ok {
		heap.Fix(m, 0)
		return nil
	}
	heap.Pop(m)
	m.moved = false
	return errors.Join(err, s.cursor.Close())
}

// close implements iterator.
func (m *merge) close() error {
	var err error
	for _, s := range m.sources {
		err = errors.Join(err, s.cursor.Close())
	}
	m.sources = nil
	return err
}

// next moves to the next row; false at the end or on an error.
func (s *source) next() (ok bool, err error) {
	if !s.cursor.Next() {
		return false, s.cursor.Err()
	}
	key := s.cursor.Key()
	switch s.kind {
	case recordRow:
		s.id, ok = persistence.RecordID(key)
	case nodeRow:
		s.id, ok = persistence.NodeID(key)
	case indexRow:
		_, s.id, ok = persistence.IndexEntry(key)
	case sortedRow:
		s.value, s.id, ok = persistence.IndexEntry(key)
	case listRow:
		s.value, s.id, ok = persistence.ListEntry(key)
	}
	if !ok {
		return false, persistence.ErrCorrupt
	}
	return true, nil
}
