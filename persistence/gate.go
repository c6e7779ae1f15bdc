package persistence

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// gate decides whether new writes are taken. Reading it is one atomic load; the
// reasons are set by those who notice them and summed up by update.
type gate struct {
	current atomic.Pointer[gateReason] // nil: open

	dead    atomic.Bool // the process is about to end
	stalled atomic.Bool // set by the watchdog

	mu struct {
		sync.Mutex
		closed     bool
		readOnly   bool
		full       error     // why the disk counts as full; nil when it does not
		fullSince  time.Time // when a write found no space; zero when only the free space was low
		background error     // the last failure of a flush or compaction; nil after a success
		failed     time.Time // when background was set
	}
}

type gateReason struct{ err error }

// refusal is why nothing is taken now, or nil.
func (g *gate) refusal() error {
	if r := g.current.Load(); r != nil {
		return r.err
	}
	return nil
}

// errEnding is the reason of a store whose process is about to end.
var errEnding = fmt.Errorf("%w: the process is ending", ErrStalled)

// update puts the most important reason in force.
func (g *gate) update() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.updateLocked()
}

func (g *gate) updateLocked() {
	var err error
	switch {
	case g.mu.closed:
		err = ErrClosed
	case g.mu.readOnly:
		err = ErrReadOnly
	case g.dead.Load():
		err = errEnding
	case g.mu.full != nil:
		err = g.mu.full
	case g.mu.background != nil:
		err = fmt.Errorf("%w: writing tables fails: %w", ErrStalled, g.mu.background)
	case g.stalled.Load():
		err = fmt.Errorf("%w: commits do not get through", ErrStalled)
	}
	if err == nil {
		g.current.Store(nil)
		return
	}
	g.current.Store(&gateReason{err: err})
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed = true
	g.updateLocked()
}

func (g *gate) setReadOnly() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.readOnly = true
	g.updateLocked()
}

// setFull records why the disk counts as full; nil opens the gate again. since is when a
// write found no space. It is zero for what the free space says, which counts for nothing
// until that has been spaceHold ago. It says whether the gate moved.
func (g *gate) setFull(reason error, since time.Time) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if since.IsZero() && time.Since(g.mu.fullSince) < spaceHold {
		return false
	}
	changed = (g.mu.full != nil) != (reason != nil)
	g.mu.full, g.mu.fullSince = reason, since
	g.updateLocked()
	return changed
}

func (g *gate) isFull() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.full != nil
}

// fullSince is how long ago a write found no space.
func (g *gate) fullSince(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Sub(g.mu.fullSince)
}

// setBackground records the outcome of a flush or compaction.
func (g *gate) setBackground(err error, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.background, g.mu.failed = err, now
	g.updateLocked()
}

// forgetBackground drops a background failure that has not come again for hold.
// Without it a store whose last compaction failed would stay shut, because
// without writes there may be none to succeed.
func (g *gate) forgetBackground(now time.Time, hold time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.background != nil && now.Sub(g.mu.failed) > hold {
		g.mu.background = nil
		g.updateLocked()
	}
}

// setStalled records whether commits get through. It says whether that changed
// anything.
func (g *gate) setStalled(stalled bool) (changed bool) {
	changed = g.stalled.Swap(stalled) != stalled
	if changed {
		g.update()
	}
	return changed
}

// Accepting returns nil while new writes are taken, else why not: it wraps
// ErrStalled, ErrDiskFull, ErrReadOnly or ErrClosed. It costs one atomic load,
// so it can be asked before every request.
func (s *Store) Accepting() error { return s.gate.refusal() }
