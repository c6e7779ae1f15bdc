// Package bell has a bell: many wait for the next time that something happens.
package bell

import (
	"sync"
	"sync/atomic"
)

// Bell tells those who wait that something has happened. It costs next to nothing while nobody waits.
type Bell struct {
	asked atomic.Bool
	mu    sync.Mutex
	rung  chan struct{} // guarded by mu; nil while nobody waits
}

// Await returns a channel that is closed when the bell is rung next.
func (b *Bell) Await() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
		b.asked.Store(true)
	}
	return b.rung
}

// Ring tells everybody who waits.
func (b *Bell) Ring() {
	if !b.asked.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
	}
	b.rung = nil
	b.asked.Store(false)
}
