package job

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"

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
	// isBounded: the workflow bounds running, so that one waits for the end of another.
	isBounded bool
}

// aheadMax is how many offers are read at a time.
const aheadMax = 64

// head is the front of a line in a shard.
type head struct {
	next  []key.Offer // the first ones, in order
	more  bool        // there may be rows behind last
	last  key.Offer   // up to which next has all
	reads bool        // those behind last are being read
	came  []key.Offer // behind last meanwhile
	count int64       // of all, about
}

func compareOffers(a, b key.Offer) int {
	return cmp.Or(cmp.Compare(a.Created, b.Created), bytes.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Number, b.Number))
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

func (h *head) insert(o key.Offer) {
	h.count++
	if h.more && compareOffers(o, h.last) > 0 {
		if h.reads {
			h.came = append(h.came, o)
		}
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

var errEnough = errors.New("enough")
