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
	rang   bool // over is closed; guarded by waiting.mu
	// follows: it waits for the jobs of other nodes, too.
	follows bool
	types   []string
	place   int // in the heap; -1: it is not there
}

const (
	seenFor    = time.Minute
	workersMax = 1000 // that are remembered of a type
)

// sawLocked notes that a worker has asked for jobs.
func (k *kind) sawLocked(worker string, now int64) {
	if _, known := k.workers[worker]; worker == "" || !known && len(k.workers) == workersMax {
		return
	}
	k.workers[worker] = now
	for name, seen := range k.workers {
		if len(k.workers) > workersMax/2 && now-seen > seenFor.Milliseconds() {
			delete(k.workers, name)
		}
	}
}

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
	if w.place < 0 && !w.rang {
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
		w.rang = true
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
