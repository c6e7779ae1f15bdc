package job

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"troupe/actors/failure"
)

// waiter is a call that waits for jobs.
type waiter struct {
	rung   chan struct{} // has room for one: there may be jobs
	over   chan struct{} // closed when its wait is over
	end    time.Time
	isOver bool
	// follows: it waits for the jobs of other nodes, too.
	follows bool
	types   []string
	place   int // in the heap; -1: it is not there
}

// listen has a call told of jobs that come from now on, and its worker be seen.
func (s *Service) listen(a *Activation) *waiter {
	w := &waiter{rung: make(chan struct{}, 1), over: make(chan struct{}), end: time.Now().Add(a.Wait), types: a.Types, place: -1}
	now := s.o.Clock().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, typ := range a.Types {
		k := s.types[typ]
		if k == nil {
			if len(s.o.Types(typ)) == 0 { // NB: else names that nobody knows would fill the memory
				continue
			}
			k = s.kindLocked(typ)
		}
		if a.Worker != "" && (len(k.workers) < workersMax || k.workers[a.Worker] != 0) {
			k.workers[a.Worker] = now
		}
		if a.Wait > 0 {
			k.waiters[w] = struct{}{}
		}
	}
	if w.follows = s.kinds != nil && a.Wait > 0; w.follows {
		s.kinds.followLocked(s)
	}
	return w
}

func (s *Service) ignore(w *waiter) {
	s.waits.leave(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Clock().UnixMilli()
	for _, typ := range w.types {
		if k := s.types[typ]; k != nil {
			delete(k.waiters, w)
			for name, seen := range k.workers {
				if len(k.workers) > workersMax/2 && now-seen > seenFor.Milliseconds() {
					delete(k.workers, name)
				}
			}
		}
	}
	if s.kinds != nil && w.follows {
		s.kinds.ignoredLocked(s)
	}
}

const (
	seenFor    = time.Minute
	workersMax = 1000 // that are remembered of a type
)

// waiting ends the waits of all calls, with one timer for the earliest. Its zero value has none.
type waiting struct {
	mu    sync.Mutex
	open  waiterHeap
	timer *time.Timer
}

// wait returns when there may be jobs, at a time, or when the wait is over, which it notes; the error is that of ctx.
func (q *waiting) wait(ctx, stopped context.Context, w *waiter, at time.Time) error {
	q.enter(w)
	var until <-chan time.Time
	if !at.IsZero() { // NB: a limit holds back what waits
		t := time.NewTimer(time.Until(at))
		defer t.Stop()
		until = t.C
	}
	select {
	case <-w.rung:
	case <-until:
	case <-w.over:
		w.isOver = true
	case <-stopped.Done():
		return failure.ErrUnavailable
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (q *waiting) enter(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.place < 0 {
		heap.Push(&q.open, w)
		if w.place == 0 {
			q.setLocked()
		}
	}
}

func (q *waiting) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.place >= 0 {
		heap.Remove(&q.open, w.place)
	}
	if len(q.open) == 0 && q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

func (q *waiting) setLocked() {
	if q.timer != nil {
		q.timer.Stop()
	}
	q.timer = time.AfterFunc(time.Until(q.open[0].end), q.ring)
}

// ring ends the waits whose time is over.
func (q *waiting) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for len(q.open) > 0 && !q.open[0].end.After(now) {
		w := q.open[0]
		heap.Pop(&q.open)
		close(w.over)
	}
	if len(q.open) > 0 {
		q.setLocked()
	}
}

type waiterHeap []*waiter

func (h waiterHeap) Len() int           { return len(h) }
func (h waiterHeap) Less(i, j int) bool { return h[i].end.Before(h[j].end) }
func (h waiterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *waiterHeap) Push(v any) {
	w := v.(*waiter) //nolint:forcetypeassert // only waiters are in it
	w.place = len(*h)
	*h = append(*h, w)
}

// Pop implements heap.Interface.
func (h *waiterHeap) Pop() any {
	w := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	w.place = -1
	return w
}
