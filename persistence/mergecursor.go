package persistence

import (
	"bytes"
	"container/heap"
	"slices"

	"troupe/persistence/key"
)

// MergeCursor walks over the keys of several ranges at once, in the order of what follows their prefixes; where that is the same, in the order of the
// keys. That is how rows of all shards come in one order. It is used like a [Cursor], and belongs to one goroutine.
//
// All sources are read with one iterator, some rows of each at a time: to open one costs
// as much as many of its seeks, and most pages need few rows of each of hundreds of shards.
type MergeCursor struct {
	rows    *Cursor // over everything; its bounds are those of the source that is read
	sources mergeHeap
	moved   bool  // whether sources is a heap, whose first one has the present key
	err     error // the first error; the cursor has ended
}

// What is read of a source at a time: few rows at first, and each time twice as many, up to about so many bytes.
const (
	aheadMin   = 2
	aheadMax   = 32
	aheadBytes = 16 << 10
)

// Merge returns a cursor over all keys of the ranges. It keeps a row of each range
// and shard, or up to 32 small ones, so the caller bounds their number. It stands before the first key.
func (sn *Snapshot) Merge(ranges ...key.Range) *MergeCursor { return sn.merge(ranges, false) }

// MergeBackward is Merge from the last key to the first.
func (sn *Snapshot) MergeBackward(ranges ...key.Range) *MergeCursor { return sn.merge(ranges, true) }

func (sn *Snapshot) merge(ranges []key.Range, backward bool) *MergeCursor {
	m := &MergeCursor{rows: sn.cursor(nil, nil, backward), sources: mergeHeap{backward: backward}}
	for i, sh := range sn.shards { // NB: shard after shard, so that blocks which are read serve several ranges
		for _, r := range ranges {
			if i == 0 || r.IsEveryShard() {
				lower, upper := r.In(sh)
				if upper != nil && bytes.Compare(lower, upper) >= 0 { // NB: an iterator with such bounds may have rows
					continue
				}
				m.sources.all = append(m.sources.all, &mergeSource{lower: lower, upper: upper, prefix: lower[:len(r.Prefix)], most: aheadMin})
			}
		}
	}
	return m
}

// Next moves to the next key. It is false at the end and after an error.
func (m *MergeCursor) Next() bool {
	if !m.moved {
		return m.moveAll(func(s *mergeSource) (bool, error) { return s.read(m.rows, nil) })
	}
	if m.err != nil || len(m.sources.all) == 0 {
		return false
	}
	var more bool
	if more, m.err = m.sources.all[0].next(m.rows); more {
		heap.Fix(&m.sources, 0)
	} else {
		heap.Pop(&m.sources)
	}
	return m.err == nil && len(m.sources.all) > 0
}

// Seek moves on to the first key whose rest behind its prefix is rest or later; a cursor that goes backward moves on to the last one before rest. It
// is false when there is none and after an error. Where the cursor has ended, it stays at its end.
func (m *MergeCursor) Seek(rest []byte) bool {
	return m.moveAll(func(s *mergeSource) (bool, error) { return s.seek(m.rows, slices.Concat(s.prefix, rest)) })
}

// moveAll moves every source, and drops those that have ended.
func (m *MergeCursor) moveAll(move func(*mergeSource) (more bool, err error)) bool {
	m.moved = true
	if m.err != nil {
		return false
	}
	going := m.sources.all[:0]
	for _, s := range m.sources.all {
		var more bool
		if more, m.err = move(s); m.err != nil {
			return false
		}
		if more {
			going = append(going, s)
		}
	}
	m.sources.all = going
	heap.Init(&m.sources)
	return len(going) > 0
}

// Key is the present key, with its shard. The slice is valid until the next move.
func (m *MergeCursor) Key() []byte { return m.sources.all[0].key() }

// Rest is what follows the prefix of the key's range, which decides the order. The slice is valid until the next move.
func (m *MergeCursor) Rest() []byte { return m.sources.all[0].rest() }

// Value is the present value. The slice is valid until the next move.
func (m *MergeCursor) Value() []byte { return m.sources.all[0].ahead[0].value }

// Err is why the cursor ended early, or nil.
func (m *MergeCursor) Err() error { return m.err }

// Close gives the cursor back. It must be called once.
func (m *MergeCursor) Close() error {
	m.sources.all = nil
	return m.rows.Close()
}

// mergeSource is the part of a range that is in one shard.
type mergeSource struct {
	lower, upper []byte
	prefix       []byte
	ahead        []mergeRow // what was read; the first is the present one
	whole        bool       // nothing follows ahead
	most         int        // how many rows are read next
}

type mergeRow struct{ key, value []byte }

func (s *mergeSource) key() []byte  { return s.ahead[0].key }
func (s *mergeSource) rest() []byte { return s.key()[len(s.prefix):] }

// next moves to the next row.
func (s *mergeSource) next(rows *Cursor) (more bool, err error) {
	if len(s.ahead) > 1 {
		s.ahead[0] = mergeRow{} // frees it
		s.ahead = s.ahead[1:]
		return true, nil
	}
	at := s.key()
	if !rows.backward {
		at = append(slices.Clip(at), 0)
	}
	s.most = min(2*s.most, aheadMax)
	return s.read(rows, at)
}

// seek moves on to a key, as [Cursor.Seek] does.
func (s *mergeSource) seek(rows *Cursor, key []byte) (more bool, err error) {
	n := slices.IndexFunc(s.ahead, func(r mergeRow) bool { return rows.backward == (bytes.Compare(r.key, key) < 0) })
	if n >= 0 {
		s.ahead = s.ahead[n:]
		return true, nil
	}
	s.most = aheadMin
	return s.read(rows, key)
}

// read reads rows from a key on, as [Cursor.Seek] finds it; nil: from the first one. They take the place of those that were read.
func (s *mergeSource) read(rows *Cursor, from []byte) (more bool, err error) {
	s.ahead = s.ahead[:0]
	if s.whole {
		return false, nil
	}
	rows.confine(s.lower, s.upper)
	more = from == nil && rows.Next() || from != nil && rows.Seek(from)
	for size := 0; more; more = rows.Next() {
		both := slices.Concat(rows.Key(), rows.Value())
		n := len(rows.Key())
		size += len(both)
		if s.ahead = append(s.ahead, mergeRow{both[:n:n], both[n:]}); len(s.ahead) == s.most || size >= aheadBytes {
			break
		}
	}
	s.whole = !more
	return len(s.ahead) > 0, rows.Err()
}

// mergeHeap implements heap.Interface.
type mergeHeap struct {
	all      []*mergeSource
	backward bool
}

func (h *mergeHeap) Len() int      { return len(h.all) }
func (h *mergeHeap) Swap(a, b int) { h.all[a], h.all[b] = h.all[b], h.all[a] }
func (h *mergeHeap) Push(x any)    { h.all = append(h.all, x.(*mergeSource)) }

func (h *mergeHeap) Less(a, b int) bool {
	x, y := h.all[a], h.all[b]
	order := bytes.Compare(x.rest(), y.rest())
	if order == 0 {
		order = bytes.Compare(x.key(), y.key())
	}
	if h.backward {
		return order > 0
	}
	return order < 0
}

func (h *mergeHeap) Pop() any {
	last := h.all[len(h.all)-1]
	h.all = h.all[:len(h.all)-1]
	return last
}
