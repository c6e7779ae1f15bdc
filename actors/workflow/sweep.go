package workflow

import (
	"sync/atomic"
	"time"

	"troupe/persistence"
)

// sweepEvery is the length of one round: the router's only clock.
const sweepEvery = time.Second

// every calls do again and again until the router stops. It is the body of a
// goroutine.
func (r *Router) every(interval time.Duration, do func()) {
	defer r.done.Done()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-ticker.C:
			do()
		}
	}
}

// sweep puts idle instances to sleep and wakes callers to look at their
// deadlines.
func (r *Router) sweep() {
	next := make(chan struct{})
	close(*r.tick.Swap(&next))
	r.feeds.sweep(time.Now())
	now := r.o.Clock()
	r.events.Sweep(now)
	r.creates.Sweep(now)
	round, idle := r.round.Add(1), r.idleRounds()
	r.awake.Range(func(_ persistence.ID, e *entry) bool {
		r.letSleep(e, round-idle)
		return true
	})
	r.relieve()
}

// letSleep ends an entry that was used last before a round, and owes nothing.
func (r *Router) letSleep(e *entry, before int64) {
	if e.touched.Load() < before && e.uncommitted.Load() == 0 && e.close() {
		r.remove(e)
	}
}

// idleRounds is how many rounds an instance stays awake that nobody asks for.
func (r *Router) idleRounds() int64 { return int64(r.o.IdleAfter / sweepEvery) }

// metrics are counted since the start.
type metrics struct {
	woken, slept, refused, panics, damaged, events, creates, overQuota atomic.Int64
}

// Metrics is a snapshot of the router's counters.
type Metrics struct {
	// Awake, AwakeBytes (about) and InFlight are what there is now.
	Awake, AwakeBytes, InFlight int64
	// The rest is counted since the start: Refused by limits of capacity, OverQuota
	// by Options.Quotas.
	Woken, Slept, Refused, OverQuota, Panics, Damaged, Events, Creates int64
}

// Metrics returns the counters as they are now.
func (r *Router) Metrics() Metrics {
	return Metrics{
		Awake:      int64(r.awake.Size()),
		AwakeBytes: r.awakeBytes(),
		InFlight:   r.inFlight.Load(),
		Woken:      r.metrics.woken.Load(),
		Slept:      r.metrics.slept.Load(),
		Refused:    r.metrics.refused.Load(),
		OverQuota:  r.metrics.overQuota.Load(),
		Panics:     r.metrics.panics.Load(),
		Damaged:    r.metrics.damaged.Load(),
		Events:     r.metrics.events.Load(),
		Creates:    r.metrics.creates.Load(),
	}
}
