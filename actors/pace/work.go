package pace

import (
	"context"
	"sync"
	"time"
)

const (
	// workFree is how much of the processor a piece of work has for nothing: the creation of a child with a few machines takes less.
	workFree = 200 * time.Microsecond
	// workPrice is how many times as long as a dearer piece the workflow rests behind it.
	workPrice = 16
	// restMax is the longest rest.
	restMax = 2 * time.Second
)

// Work has workflows rest behind dear pieces of what they do on their own, so that the processors are there for
// people. Its methods are safe for concurrent use; the zero value is ready.
type Work struct {
	mu sync.Mutex
	of map[string]*debtor // guarded by mu
}

// debtor is a workflow that rests, or did until a moment ago. Its work comes one piece after the other.
type debtor struct {
	turn chan struct{} // has room for one
	// Guarded by Work.mu:
	rests   time.Time // until then
	waiting int       // how many have the turn or wait for it
}

// Piece is a piece of work that may begin. Nil is one that nobody asked for.
type Piece struct {
	work     *Work
	workflow string
	end      func() // once
}

// Begin returns when a workflow does not rest. The piece must be ended. The only error is that of ctx.
func (w *Work) Begin(ctx context.Context, workflow string) (*Piece, error) {
	w.mu.Lock()
	d := w.of[workflow]
	if d != nil && d.waiting == 0 && !time.Now().Before(d.rests) {
		delete(w.of, workflow)
		d = nil
	}
	if d == nil {
		w.mu.Unlock()
		return &Piece{w, workflow, func() {}}, nil
	}
	d.waiting++
	w.mu.Unlock()
	leave := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		d.waiting--
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	p := &Piece{w, workflow, sync.OnceFunc(func() {
		<-d.turn
		leave()
	})}
	for {
		w.mu.Lock()
		rest := time.Until(d.rests)
		w.mu.Unlock()
		if rest <= 0 {
			return p, nil
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			p.End()
			return nil, ctx.Err()
		}
	}
}

// End ends a piece. The second call does nothing.
func (p *Piece) End() {
	if p != nil {
		p.end()
	}
}

// Done ends a piece that began then. The next one need not wait until what was done is durable.
func (p *Piece) Done(begun time.Time) {
	if p != nil {
		p.work.Took(p.workflow, time.Since(begun))
		p.end()
	}
}

// Took has a workflow rest behind a piece of work that took so long.
func (w *Work) Took(workflow string, took time.Duration) {
	if took < workFree {
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
	if d.rests = d.rests.Add(took * workPrice); d.rests.After(now.Add(restMax)) {
		d.rests = now.Add(restMax)
	}
}
