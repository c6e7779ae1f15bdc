package workflow

import "sync/atomic"

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
	queries := r.queries.Metrics()
	return Metrics{
		Awake:      int64(r.awake.Size()),
		AwakeBytes: r.awakeBytes(),
		InFlight:   r.inFlight.Load(),
		Woken:      r.metrics.woken.Load(),
		Slept:      r.metrics.slept.Load(),
		Refused:    r.metrics.refused.Load() + queries.Refused,
		OverQuota:  r.metrics.overQuota.Load(),
		Panics:     r.metrics.panics.Load(),
		Damaged:    r.metrics.damaged.Load() + queries.Damaged,
		Events:     r.metrics.events.Load(),
		Creates:    r.metrics.creates.Load(),
	}
}
