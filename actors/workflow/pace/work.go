package pace

import (
	"context"
	"sync"
	"time"
)

const (
	// workFree is how much of the processor a piece of work has for nothing: the creation of a child with a few machines takes less.
	workFree = 200 * time.Microsecond
	// workPrice is how long a workflow rests for what a piece took beyond that.
	workPrice = 16
)

// Work has workflows rest behind dear pieces of what they do by themselves, so that the processors are there for people. Its methods are safe
// for concurrent use; the zero value is ready.
type Work struct {
	mu sync.Mutex
	of map[string]*debtor // those who rest, and where somebody is asked to wait; guarded by mu
}

// debtor is a workflow that rests. While it does, its work comes one piece after the other.
type debtor struct {
	turn chan struct{} // has room for one
	// Guarded by Work.mu:
	rests   time.Time // until then
	waiting int       // how many have the turn or wait for it
}

// Begin returns when a workflow does not rest. end must be called behind the work, after Took. The only error is that of ctx.
func (w *Work) Begin(ctx context.Context, workflow string) (end func(), err error) {
	w.mu.Lock()
	d := w.of[workflow]
	if d != nil {
		d.waiting++
	}
	w.mu.Unlock()
	if d == nil {
		return func() {}, nil
	}
	leave := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if d.waiting--; d.waiting == 0 && !time.Now().Before(d.rests) {
			delete(w.of, workflow)
		}
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	end = func() {
		<-d.turn
		leave()
	}
	for {
		w.mu.Lock()
		rest := time.Until(d.rests)
		w.mu.Unlock()
		if rest <= 0 {
			return end, nil
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			end()
			return nil, ctx.Err()
		}
	}
}

// Took has a workflow rest behind a piece of work that took so long.
func (w *Work) Took(workflow string, took time.Duration) {
	rest := took * workPrice
	if took < workFree || workflow == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]*debtor{}
	}
	d := w.of[workflow]
	if d == nil {
		d = &debtor{turn: make(chan struct{}, 1)}
		w.of[workflow] = d
	}
	now := time.Now()
	if d.rests.Before(now) {
		d.rests = now
	}
	d.rests = d.rests.Add(rest)
}
