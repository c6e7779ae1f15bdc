// Package line keeps the order in which jobs are offered. A line is the offers of one type, priority and workflow, in the
// order of time. Its rows stand in one range of each shard; in memory are the first of each shard, and where the others
// begin: the read goes on there, past all that was removed, so that a long line costs no more than a short one.
//
// Nothing here is safe for concurrent use.
package line

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"troupe/persistence/key"
)

// Name is which line of a type it is.
type Name struct {
	Priority uint8
	Workflow string
}

// Of is the line of an offer.
func Of(o *key.Offer) Name { return Name{o.Priority, o.Workflow} }

// Lines are those of a type, over all shards.
type Lines map[Name]*Line

// Line has a head for each shard that has offers, in the order of the shards.
type Line struct{ heads []*Head }

// place is where the head of a shard is, or belongs.
func (l *Line) place(sh key.Shard) (int, bool) {
	return slices.BinarySearchFunc(l.heads, sh, func(h *Head, sh key.Shard) int { return cmp.Compare(h.of, sh) })
}

func (l *Line) drop(sh key.Shard) {
	if at, found := l.place(sh); found {
		l.heads = slices.Delete(l.heads, at, at+1)
	}
}

// Front is when its oldest job was created, as far as that is known, in Unix milliseconds.
func (l *Line) Front() int64 {
	oldest := int64(math.MaxInt64)
	for _, h := range l.heads {
		at := h.last.Created
		if len(h.next) > 0 {
			at = h.next[0].Created
		}
		oldest = min(oldest, at)
	}
	return oldest
}

// Count is about how many jobs it has.
func (l *Line) Count() (n int64) {
	for _, h := range l.heads {
		n += h.count
	}
	return n
}

// First returns the head that has the oldest job, and its shard; or shards whose heads are to be read before that is known.
func (l *Line) First() (first *Head, of key.Shard, unread []key.Shard) {
	for _, h := range l.heads {
		switch {
		case len(h.next) == 0:
			unread = append(unread, h.of)
		case first == nil || Compare(&h.next[0], &first.next[0]) < 0:
			first, of = h, h.of
		}
	}
	return first, of, unread
}

// AheadMax is how many offers are read at a time.
const AheadMax = 64

// Head is the front of a line in a shard.
type Head struct {
	of    key.Shard
	next  []key.Offer // the first ones, in order
	more  bool        // there may be rows behind last
	last  key.Offer   // up to which next has all
	reads bool        // those behind last are being read
	came  []key.Offer // behind last meanwhile
	count int64       // of all, about
}

// Compare is the order of a line.
func Compare(a, b *key.Offer) int {
	if a.Created != b.Created {
		return cmp.Compare(a.Created, b.Created)
	}
	return cmp.Or(bytes.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Number, b.Number))
}

// placeOf is where an offer is, or belongs.
func (h *Head) placeOf(o *key.Offer) (int, bool) {
	return slices.BinarySearchFunc(h.next, o, func(a key.Offer, o *key.Offer) int { return Compare(&a, o) })
}

// Head returns the head that an offer of a shard belongs to; nil: there is none.
func (l Lines) Head(sh key.Shard, o *key.Offer) *Head {
	of := l[Of(o)]
	if of == nil {
		return nil
	}
	at, found := of.place(sh)
	if !found {
		return nil
	}
	return of.heads[at]
}

// Insert puts an offer into its line.
func (l Lines) Insert(sh key.Shard, o key.Offer) {
	h := l.Head(sh, &o)
	if h == nil {
		h = &Head{}
		l.put(sh, Of(&o), h)
	}
	h.insert(o)
}

func (l Lines) put(sh key.Shard, name Name, h *Head) {
	of := l[name]
	if of == nil {
		of = &Line{}
		l[name] = of
	}
	h.of = sh
	of.drop(sh)
	at, _ := of.place(sh)
	of.heads = slices.Insert(of.heads, at, h)
}

// Withdraw takes an offer out of its line.
func (l Lines) Withdraw(sh key.Shard, o *key.Offer) {
	if h := l.Head(sh, o); h != nil {
		h.withdraw(o)
		l.Prune(sh, o)
	}
}

// Adopt takes over what was read of a shard.
func (l Lines) Adopt(sh key.Shard, of Lines) {
	for name, line := range of {
		l.put(sh, name, line.heads[0])
		l.Prune(sh, &key.Offer{Priority: name.Priority, Workflow: name.Workflow})
	}
}

// Leave forgets what there is of a shard.
func (l Lines) Leave(sh key.Shard) {
	for name, of := range l {
		if of.drop(sh); len(of.heads) == 0 {
			delete(l, name)
		}
	}
}

// Prune forgets the head of an offer's line when it has nothing.
func (l Lines) Prune(sh key.Shard, o *key.Offer) {
	of := l[Of(o)]
	at, _ := of.place(sh)
	if h := of.heads[at]; len(h.next) > 0 || h.more {
		return
	}
	if of.drop(sh); len(of.heads) == 0 {
		delete(l, Of(o))
	}
}

// Take takes the first offer of a head that has one.
func (h *Head) Take() key.Offer {
	o := h.next[0]
	h.next = h.next[1:]
	h.count = max(h.count-1, int64(len(h.next)))
	return o
}

func (h *Head) insert(o key.Offer) {
	h.count++
	if h.more && Compare(&o, &h.last) > 0 {
		if h.reads {
			h.came = append(h.came, o)
		}
		return // it is read with those behind
	}
	at, found := h.placeOf(&o)
	if found {
		h.count--
		return
	}
	if h.next = slices.Insert(h.next, at, o); len(h.next) > 2*AheadMax {
		h.next = slices.Clone(h.next[:AheadMax])
		h.last, h.more = h.next[AheadMax-1], true
	}
}

func (h *Head) withdraw(o *key.Offer) {
	if at, found := h.placeOf(o); found {
		h.next = slices.Delete(h.next, at, at+1)
	}
	h.count = max(h.count-1, int64(len(h.next)))
}

// BeginRead returns behind which offer others are to be read; false: none are.
func (h *Head) BeginRead() (last key.Offer, ok bool) {
	if !h.more || len(h.next) > 0 {
		return last, false
	}
	h.reads = true
	return h.last, true
}

// EndRead takes what was read; isWhole: there are no others behind. isTaken says of which jobs that are not offered.
func (h *Head) EndRead(read []key.Offer, isWhole bool, isTaken func(key.Job) bool) {
	h.reads = false
	came := h.came
	h.came = nil
	if len(read) > 0 {
		h.last = read[len(read)-1]
	}
	for i := range read {
		if !isTaken(read[i].Job) { // NB: what was taken out of the middle of the line may be visible still
			h.next = append(h.next, read[i])
		}
	}
	if isWhole {
		h.more, h.count = false, int64(len(h.next))
	}
	for i := range came {
		if !isTaken(came[i].Job) {
			h.count-- // it was counted when it came
			h.insert(came[i])
		}
	}
	if !h.more {
		h.count = int64(len(h.next))
	}
}

// Shard are the lines of one shard while its rows are read, by type.
type Shard struct {
	Of     key.Shard
	ByType map[string]Lines
}

// Add appends an offer, in the order of its line.
func (s *Shard) Add(o key.Offer) {
	lines := s.ByType[o.Type]
	if lines == nil {
		lines = Lines{}
		s.ByType[o.Type] = lines
	}
	h := lines.Head(s.Of, &o)
	if h == nil {
		h = &Head{}
		lines.put(s.Of, Of(&o), h)
	}
	h.count++
	if len(h.next) < AheadMax {
		h.next, h.last = append(h.next, o), o
		return
	}
	h.more = true
}
