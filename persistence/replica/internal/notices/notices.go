// Package notices calls functions one after the other, without holding up those who ask for it.
package notices

import "sync"

// Queue has the functions that are to be called. NewQueue makes one.
type Queue struct {
	mu   sync.Mutex
	all  []func()
	wake chan struct{} // has an entry when there is something
}

// NewQueue returns an empty queue.
func NewQueue() *Queue { return &Queue{wake: make(chan struct{}, 1)} }

// Add has a function called behind those that were added before.
func (q *Queue) Add(f func()) {
	q.mu.Lock()
	q.all = append(q.all, f)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Run calls what is added until stop is closed.
func (q *Queue) Run(stop <-chan struct{}) {
	for {
		q.mu.Lock()
		all := q.all
		q.all = nil
		q.mu.Unlock()
		for _, f := range all {
			f()
		}
		if len(all) > 0 {
			continue
		}
		select {
		case <-q.wake:
		case <-stop:
			return
		}
	}
}
