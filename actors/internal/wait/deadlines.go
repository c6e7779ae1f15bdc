package wait

import (
	"container/heap"
	"sync"
	"time"
)

// Deadlines ends many waits with one timer, which is that of the earliest. Its zero value has none. Its methods are safe for concurrent use.
type Deadlines struct {
	mu    sync.Mutex
	open  deadlineHeap
	timer *time.Timer
}

// Deadline is the end of a wait. Over is closed when its time has come.
type Deadline struct {
	Over  chan struct{}
	at    time.Time
	place int // in the heap; -1: it is not there
}

// NewDeadline returns a deadline that waits for Add.
func NewDeadline(at time.Time) *Deadline {
	return &Deadline{Over: make(chan struct{}), at: at, place: -1}
}

// Add has a deadline come. One that is there, or that has come, stays as it is.
func (d *Deadlines) Add(of *Deadline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-of.Over:
		return
	default:
	}
	if of.place >= 0 {
		return
	}
	if heap.Push(&d.open, of); of.place == 0 {
		d.setLocked()
	}
}

// Remove has a deadline not come. It may be called again.
func (d *Deadlines) Remove(of *Deadline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of.place >= 0 {
		heap.Remove(&d.open, of.place)
	}
	if len(d.open) == 0 && d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// Len is how many there are.
func (d *Deadlines) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

func (d *Deadlines) setLocked() {
	if d.timer != nil {
		d.timer.Stop()
	}
	d.timer = time.AfterFunc(time.Until(d.open[0].at), d.ring)
}

func (d *Deadlines) ring() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for len(d.open) > 0 && !d.open[0].at.After(now) {
		of := d.open[0]
		heap.Pop(&d.open)
		close(of.Over)
	}
	if len(d.open) > 0 {
		d.setLocked()
	}
}

type deadlineHeap []*Deadline

func (h deadlineHeap) Len() int           { return len(h) }
func (h deadlineHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h deadlineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *deadlineHeap) Push(v any) {
	of := v.(*Deadline) //nolint:forcetypeassert // only deadlines are in it
	of.place = len(*h)
	*h = append(*h, of)
}

// Pop implements heap.Interface.
func (h *deadlineHeap) Pop() any {
	of := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	of.place = -1
	return of
}
