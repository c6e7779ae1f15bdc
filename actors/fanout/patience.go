package fanout

import (
	"context"
	"sync"
	"time"

	"troupe/actors/failure"
)

// Patience bounds what is waited for nodes whose answers can be done without. A node that does not answer in time is
// silent until it has answered again: meanwhile nobody waits for it.
type Patience struct {
	// Most is how long an answer may take when nobody waits for it any more.
	Most time.Duration
	// Probe asks a silent node whether it is there again.
	Probe func(ctx context.Context, node string) error

	mu     sync.Mutex
	silent map[string]*silence
}

// silence is of one node.
type silence struct {
	asking bool      // an answer is outstanding
	next   time.Time // when it is asked again
}

// ErrSilent is the error of a node that is not waited for.
var ErrSilent = failure.Refuse(failure.ErrUnavailable, "a node of the cluster does not answer")

// probePause is the time between two probes.
const probePause = time.Second

// Ask returns what ask does, in another goroutine, which must not panic. If that takes longer than wait, or the node is
// silent, it returns ErrSilent, and late is called when ask has returned: what it has brought came too late.
func (p *Patience) Ask(ctx context.Context, node string, wait time.Duration, ask func(context.Context) error, late func()) error {
	if !p.isAwaited(ctx, node) {
		return ErrSilent
	}
	var mu sync.Mutex
	isLate := false
	done := make(chan error, 1)
	go func() {
		err := p.ask(ctx, ask)
		mu.Lock()
		if !isLate {
			done <- err
		}
		mu.Unlock()
		if isLate {
			p.heard(node, err)
			late()
		}
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
	}
	mu.Lock()
	defer mu.Unlock()
	select {
	case err := <-done: // in this moment
		return err
	default:
	}
	isLate = true
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent == nil {
		p.silent = map[string]*silence{}
	}
	p.silent[node] = &silence{asking: true}
	return ErrSilent
}

func (p *Patience) ask(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Most)
	defer cancel()
	return ask(ctx)
}

// isAwaited is false for a silent node, which it has probed from time to time.
func (p *Patience) isAwaited(ctx context.Context, node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.silent[node]
	if of != nil && !of.asking && !time.Now().Before(of.next) {
		of.asking = true
		go func() {
			p.heard(node, p.ask(ctx, func(ctx context.Context) error { return p.Probe(ctx, node) }))
		}()
	}
	return of == nil
}

// heard takes the answer of a silent node.
func (p *Patience) heard(node string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of := p.silent[node]; err == nil {
		delete(p.silent, node)
	} else if of != nil {
		of.asking, of.next = false, time.Now().Add(probePause)
	}
}
