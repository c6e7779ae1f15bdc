package wait

import (
	"context"
	"errors"
	"sync"
	"time"
)

var (
	ErrWaiting  = errors.New("too many wait")     // too many wait
	ErrNoAnswer = errors.New("no answer in time") // the answer did not come in time
)

// Rounds shares calls whose answer says something of a moment after they began: one goes on at a time, and those who
// come meanwhile share the next one. Its fields are set before the first Await, and not changed.
type Rounds struct {
	Ask        func(context.Context) error
	Context    context.Context //nolint:containedctx // of the goroutine that calls
	WaitMax    time.Duration   // WaitMax bounds each call, and each wait for one
	WaitersMax int             // WaitersMax bounds those who wait; 0: nothing does

	mu      sync.Mutex
	asking  bool // run goes on
	waiting int
	next    *round // the one that has not begun; nil: nobody waits for it
}

type round struct {
	done chan struct{}
	err  error // set before done is closed
}

// Await returns the error of a call of Ask that began after Await was called, ErrWaiting, ErrNoAnswer, or that of ctx.
func (r *Rounds) Await(ctx context.Context) error {
	mine := r.join()
	if mine == nil {
		return ErrWaiting
	}
	defer func() {
		r.mu.Lock()
		r.waiting--
		r.mu.Unlock()
	}()
	timer := time.NewTimer(r.WaitMax)
	defer timer.Stop()
	select {
	case <-mine.done:
		return mine.err
	case <-timer.C:
		return ErrNoAnswer
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Rounds) join() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.WaitersMax > 0 && r.waiting >= r.WaitersMax {
		return nil
	}
	r.waiting++
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
	}
	if !r.asking {
		r.asking = true
		go r.run()
	}
	return r.next
}

func (r *Rounds) run() {
	for {
		r.mu.Lock()
		now := r.next
		r.next, r.asking = nil, now != nil
		r.mu.Unlock()
		if now == nil {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context, r.WaitMax)
		now.err = r.Ask(ctx)
		cancel()
		close(now.done)
	}
}
