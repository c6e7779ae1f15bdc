package job

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"math"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
)

// A line is the offers of one type, priority and workflow, in the order of time. Its rows stand in one range of each shard;
// in memory are the first of each shard, and where the others begin: the read goes on there, past all that was removed, so
// that a long line costs no more than a short one.

// kind is what is known of the jobs of a type in the shards that are led here.
type kind struct {
	lines   map[lineName]*line
	shares  map[string]*share // by workflow
	waiters map[*waiter]struct{}
	workers map[string]int64 // when they asked last, in Unix milliseconds
}

type lineName struct {
	priority uint8
	workflow string
}

// line has a head for each shard that has offers.
type line struct{ heads map[key.Shard]*head }

// front is when its oldest job was created, as far as that is known.
func (l *line) front() int64 {
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

// share is what a workflow gets of the jobs of a type.
type share struct {
	served  uint64 // when it was its turn last, as a number
	running int    // leases
}

// aheadMax is how many offers are read at a time.
const aheadMax = 64

// head is the front of a line in a shard.
type head struct {
	next  []key.Offer // the first ones, in order
	more  bool        // there may be rows behind last
	last  key.Offer   // up to which next has all
	news  uint64      // counts what has come
	count int64       // of all, about
}

func compareOffers(a, b key.Offer) int {
	return cmp.Or(cmp.Compare(a.Created, b.Created), bytes.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Number, b.Number))
}

func (s *Service) kindLocked(typ string) *kind {
	k := s.types[typ]
	if k == nil {
		k = newKind()
		s.types[typ] = k
	}
	return k
}

func newKind() *kind {
	return &kind{lines: map[lineName]*line{}, shares: map[string]*share{}, waiters: map[*waiter]struct{}{}, workers: map[string]int64{}}
}

func (k *kind) shareOf(workflow string) *share {
	of := k.shares[workflow]
	if of == nil {
		of = &share{}
		k.shares[workflow] = of
	}
	return of
}

func (k *kind) headOf(sh key.Shard, o *key.Offer) *head {
	l := k.lines[lineName{o.Priority, o.Workflow}]
	if l == nil {
		return nil
	}
	return l.heads[sh]
}

func (k *kind) makeHead(sh key.Shard, o *key.Offer) *head {
	name := lineName{o.Priority, o.Workflow}
	l := k.lines[name]
	if l == nil {
		l = &line{map[key.Shard]*head{}}
		k.lines[name] = l
	}
	h := l.heads[sh]
	if h == nil {
		h = &head{}
		l.heads[sh] = h
	}
	return h
}

// prune forgets a head that has nothing.
func (k *kind) prune(sh key.Shard, o *key.Offer) {
	name := lineName{o.Priority, o.Workflow}
	l := k.lines[name]
	if h := l.heads[sh]; len(h.next) > 0 || h.more {
		return
	}
	if delete(l.heads, sh); len(l.heads) == 0 {
		delete(k.lines, name)
	}
}

// offerLocked puts a job into its line, and tells who waits for it.
func (s *Service) offerLocked(x *shard, o key.Offer) {
	if x.over {
		return
	}
	s.kindLocked(o.Type).makeHead(x.number, &o).insert(o)
	s.ringLocked(o.Type)
}

func (h *head) insert(o key.Offer) {
	h.news++
	h.count++
	if h.more && compareOffers(o, h.last) > 0 {
		return // it is read with those behind
	}
	at, found := slices.BinarySearchFunc(h.next, o, compareOffers)
	if found {
		h.count--
		return
	}
	if h.next = slices.Insert(h.next, at, o); len(h.next) > 2*aheadMax {
		h.next = slices.Clone(h.next[:aheadMax])
		h.last, h.more = h.next[aheadMax-1], true
	}
}

// withdrawLocked takes a job out of its line.
func (s *Service) withdrawLocked(x *shard, o *key.Offer) {
	k := s.types[o.Type]
	if k == nil {
		return
	}
	if h := k.headOf(x.number, o); h != nil {
		h.withdraw(o)
		k.prune(x.number, o)
	}
}

func (h *head) withdraw(o *key.Offer) {
	if at, found := slices.BinarySearchFunc(h.next, *o, compareOffers); found {
		h.next = slices.Delete(h.next, at, at+1)
	}
	h.count = max(h.count-1, int64(len(h.next)))
}

// lines are those of one shard while they are read.
type lines map[string]map[lineName]*head

func newLines() lines { return lines{} }

func (l lines) add(o key.Offer) {
	of := l[o.Type]
	if of == nil {
		of = map[lineName]*head{}
		l[o.Type] = of
	}
	name := lineName{o.Priority, o.Workflow}
	h := of[name]
	if h == nil {
		h = &head{}
		of[name] = h
	}
	h.count++
	if len(h.next) < aheadMax {
		h.next, h.last = append(h.next, o), o
		return
	}
	h.more = true
}

func (s *Service) withdrawnFrom(l lines, e *entry) {
	if h := l[e.offer.Type][lineName{e.offer.Priority, e.offer.Workflow}]; h != nil {
		if _, found := slices.BinarySearchFunc(h.next, e.offer, compareOffers); found {
			h.withdraw(&e.offer)
		}
	}
}

func (s *Service) adoptLocked(x *shard, l lines) {
	for typ, of := range l {
		k := s.kindLocked(typ)
		for name, h := range of {
			o := key.Offer{Priority: name.priority, Workflow: name.workflow}
			*k.makeHead(x.number, &o) = *h
			k.prune(x.number, &o)
		}
		s.ringLocked(typ)
	}
}

var errEnough = errors.New("enough")

// fill reads offers of a line in a shard. NB: who calls it has the turn, so that no other read goes on.
func (s *Service) fill(x *shard, k *kind, o *key.Offer) error {
	s.mu.Lock()
	h := k.headOf(x.number, o)
	if h == nil || !h.more || len(h.next) > 0 {
		s.mu.Unlock()
		return nil
	}
	last, news := h.last, h.news
	s.mu.Unlock()
	prefix := key.OfferPrefix(nil, x.number, o.Type, o.Priority, o.Workflow)
	of := key.Range{Prefix: prefix, From: append(last.Key(nil, x.number)[len(prefix):], 0)}
	var read []key.Offer
	err := s.rows.ScanRanges(func(rowKey, _ []byte) error {
		if len(read) == aheadMax {
			return errEnough
		}
		o, ok := key.ParseOffer(rowKey)
		if !ok {
			return persistence.ErrCorrupt
		}
		read = append(read, o)
		return nil
	}, of)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h = k.headOf(x.number, o); h == nil || x.over {
		return nil
	}
	switch {
	case errors.Is(err, errEnough):
	case err != nil:
		return failure.OfStore(err)
	case h.news == news: // NB: else there may be rows that came behind the read
		h.more, h.count = false, int64(len(h.next)+len(read))
	}
	if len(read) > 0 {
		h.last = read[len(read)-1]
	}
	for i := range read {
		if x.taken[read[i].Job] == nil { // NB: what was taken out of the middle of the line may be visible still
			h.next = append(h.next, read[i])
		}
	}
	k.prune(x.number, o)
	return nil
}

// dueHeap has the entries of a shard for which something is to be done at a time, the earliest first.
type dueHeap []*entry

// put has the heap come to an entry at its time. first: it is the earliest.
func (d *dueHeap) put(e *entry) (first bool) {
	if e.place >= 0 {
		heap.Fix(d, e.place)
	} else {
		heap.Push(d, e)
	}
	return e.place == 0
}

func (d *dueHeap) remove(e *entry) {
	if e.place >= 0 && e.place < len(*d) && (*d)[e.place] == e {
		heap.Remove(d, e.place)
	}
	e.place = -1
}

func (d dueHeap) Len() int           { return len(d) }
func (d dueHeap) Less(i, j int) bool { return d[i].At.Before(d[j].At) }
func (d dueHeap) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}

// Push implements heap.Interface.
func (d *dueHeap) Push(v any) {
	e := v.(*entry) //nolint:forcetypeassert // only entries are in it
	e.place = len(*d)
	*d = append(*d, e)
}

// Pop implements heap.Interface.
func (d *dueHeap) Pop() any {
	last := (*d)[len(*d)-1]
	(*d)[len(*d)-1] = nil
	*d = (*d)[:len(*d)-1]
	return last
}

// ringLocked tells who waits for jobs of a type to look, on all nodes.
func (s *Service) ringLocked(typ string) {
	s.wakeLocked(typ)
	if s.kinds != nil {
		for f := range s.kinds.followers {
			f.types[typ] = struct{}{}
			wait.Notify(f.rung)
		}
	}
}

func (s *Service) wakeLocked(typ string) {
	if k := s.types[typ]; k != nil {
		for w := range k.waiters {
			wait.Notify(w.rung)
		}
	}
}
