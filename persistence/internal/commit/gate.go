package commit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Gate decides whether new writes are accepted. Reading it is one atomic load; the
// reasons are set by those who notice them and summed up by update.
type Gate struct {
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

// FullHold is how long the gate stays shut after a write that found no space although the file
// system says that there is some: a quota, or no more inodes.
const FullHold = 2 * time.Second

type gateReason struct{ err error }

// Refusal is why nothing is taken now, or nil.
func (g *Gate) Refusal() error {
	if r := g.current.Load(); r != nil {
		return r.err
	}
	return nil
}

// Ending is the reason of a process that is about to end, or nil.
func (g *Gate) Ending() error {
	if g.dead.Load() {
		return errEnding
	}
	return nil
}

var errEnding = fmt.Errorf("%w: the process is ending", ErrStalled)

// update puts the most important reason in force.
func (g *Gate) update() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.updateLocked()
}

func (g *Gate) updateLocked() {
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

func (g *Gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed = true
	g.updateLocked()
}

// SetReadOnly shuts the gate for good.
func (g *Gate) SetReadOnly() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.readOnly = true
	g.updateLocked()
}

// SetFull records why the disk counts as full; nil opens the gate again. since is when a
// write found no space. It is zero for what the free space says, which counts for nothing
// until that has been FullHold ago. It says whether the gate moved.
func (g *Gate) SetFull(reason error, since time.Time) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if since.IsZero() && time.Since(g.mu.fullSince) < FullHold {
		return false
	}
	changed = (g.mu.full != nil) != (reason != nil)
	g.mu.full, g.mu.fullSince = reason, since
	g.updateLocked()
	return changed
}

// IsFull says whether the disk counts as full.
func (g *Gate) IsFull() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.full != nil
}

// FullFor is how long ago a write found no space.
func (g *Gate) FullFor(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Sub(g.mu.fullSince)
}

// SetBackground records the outcome of a flush or compaction.
func (g *Gate) SetBackground(err error, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.background, g.mu.failed = err, now
	g.updateLocked()
}

// forgetBackground drops a background failure that has not come again for hold. Without it a store whose last
// compaction failed would stay shut, because without writes there may be none to succeed.
func (g *Gate) forgetBackground(now time.Time, hold time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.background != nil && now.Sub(g.mu.failed) > hold {
		g.mu.background = nil
		g.updateLocked()
	}
}

// setStalled records whether commits get through. It says whether that changed anything.
func (g *Gate) setStalled(stalled bool) (changed bool) {
	changed = g.stalled.Swap(stalled) != stalled
	if changed {
		g.update()
	}
	return changed
}
