// Package wait has the ways in which the actors' services wait: for a time of a clock or a notice (Until, Notify), for
// a share in the next answer (Rounds), and for the readers of what was replaced (Period).
package wait

import (
	"context"
	"math"
	"time"
)

const (
	// Never is a time that does not come.
	Never = math.MaxInt64
	// LookMax is the longest wait for a time: the clock may be set meanwhile.
	LookMax = time.Second
)

// Notify has anyone who waits for ch go on; ch has room for one entry.
func Notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Until returns a channel that gets an entry at a time in Unix milliseconds, after LookMax at the latest, and never for
// Never. stop must be called.
func Until(ms int64, clock func() time.Time) (at <-chan time.Time, stop func() bool) {
	if ms == Never {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(max(min(time.UnixMilli(ms).Sub(clock()), LookMax), 0))
	return timer.C, timer.Stop
}

// Sleep returns after d, or when ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
