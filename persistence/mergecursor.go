package persistence

import (
	"bytes"
	"container/heap"
	"errors"
)

// MergeCursor walks over the keys of several ranges at once, in the order of what
// follows their prefixes; where that is the same, in the order of the keys. That is
// how rows of all shards come in one order. It is used like a [Cursor], and belongs to
// one goroutine.
type MergeCursor struct {
	sources mergeHeap // a heap once moved; the first one has the present key
	moved   bool
	err     error // the first error; the cursor has ended
}

// Merge returns a cursor over all keys of the ranges. It opens one cursor for each
// range and shard, so the caller bounds their number. It stands before the first key.
func (sn *Snapshot) Merge(ranges ...Range) *MergeCursor { return sn.merge(ranges, false) }

// MergeBackward is Merge from the last key to the first.
func (sn *Snapshot) MergeBackward(ranges ...Range) *MergeCursor { return sn.merge(ranges, true) }

func (sn *Snapshot) merge(ranges []Range, backward bool) *MergeCursor {
	m := &MergeCursor{sources: mergeHeap{backward: backward}}
	for _, r := range ranges {
		for sh := range sn.store.shardsOf(r) {
			lower, upper := r.in(Shard(sh))
			source := &mergeSource{Cursor: sn.cursor(lower, upper, backward), prefix: lower[:len(r.Prefix)]}
			m.sources.all = append(m.sources.all, source)
		}
	}
	return m
}

// Next moves to the next key. It is false at the end and after an error.
func (m *MergeCursor) Next() bool {
	if !m.moved {
		return m.moveAll((*mergeSource).Next)
	}
	if m.err != nil || len(m.sources.all) == 0 {
		return false
	}
	if first := m.sources.all[0]; first.Next() {
		heap.Fix(&m.sources, 0)
	} else {
		heap.Pop(&m.sources)
		m.err = first.end()
	}
	return m.err == nil && len(m.sources.all) > 0
}

// Seek moves on to the first key whose rest behind its prefix is rest or later; a
// cursor that goes backward moves to the last one before rest. It is false when there
// is none and after an error. Where the cursor has ended, it stays at its end.
func (m *MergeCursor) Seek(rest []byte) bool {
	return m.moveAll(func(s *mergeSource) bool { return s.Seek(bytes.Join([][]byte{s.prefix, rest}, nil)) })
}

// moveAll moves every source, and drops those that have ended.
func (m *MergeCursor) moveAll(move func(*mergeSource) bool) bool {
	m.moved = true
	if m.err != nil {
		return false
	}
	going := m.sources.all[:0]
	for _, s := range m.sources.all {
		if move(s) {
			going = append(going, s)
		} else {
			m.err = errors.Join(m.err, s.end())
		}
	}
	m.sources.all = going
	heap.Init(&m.sources)
	return m.err == nil && len(going) > 0
}

// Key is the present key, with its shard. The slice is valid until the next move.
func (m *MergeCursor) Key() []byte { return m.sources.all[0].Key() }

// Rest is what follows the prefix of the key's range, which decides the order. The
// slice is valid until the next move.
func (m *MergeCursor) Rest() []byte { return m.sources.all[0].rest() }

// Value is the present value. The slice is valid until the next move.
func (m *MergeCursor) Value() []byte { return m.sources.all[0].Value() }

// Err is why the cursor ended early, or nil.
func (m *MergeCursor) Err() error { return m.err }

// Close gives the cursor back. It must be called once.
func (m *MergeCursor) Close() error {
	var err error
	for _, s := range m.sources.all {
		err = errors.Join(err, s.Close())
	}
	m.sources.all = nil
	return err
}

// mergeSource is the part of a range that is in one shard.
type mergeSource struct {
	*Cursor
	prefix []byte
}

func (s *mergeSource) rest() []byte { return s.Key()[len(s.prefix):] }

// end closes a source that cannot move any more, and says why.
func (s *mergeSource) end() error { return errors.Join(s.Err(), s.Close()) }

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
		order = bytes.Compare(x.Key(), y.Key())
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
