package job

import (
	"container/heap"
	"context"
	"time"

	"troupe/persistence/key"
)

// shard is what is known of the jobs of one shard in one epoch. Service.mu guards what can change.
type shard struct {
	number key.Shard
	epoch  uint64
	ctx    context.Context //nolint:containedctx // of the epoch
	wake   chan struct{}   // has room for one
	loaded chan struct{}   // closed when its rows were read

	isLoaded bool
	over     bool
	early    []Change // that came before
	taken    map[key.Job]*entry
	seized   uint64 // counts what came to taken
	due      dueHeap
}

// entry is a job that is not offered.
type entry struct {
	shard *shard
	offer key.Offer
	attempt
	busy  bool          // a write is on its way, or its instance is being told
	gone  bool          // it has ended while it was busy
	pause time.Duration // before its instance is told again
	place int           // in the heap; -1: it is not there
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
