package workflow

import (
	"sync/atomic"

	"troupe/actors/guard"
	"troupe/actors/outbox"
	"troupe/actors/timer"
)

// metrics are counted since the start.
type metrics struct {
	woken, slept, refused, panics, damaged, events, creates, overQuota, incidents atomic.Int64
}

// Metrics is a snapshot of the router's counters.
type Metrics struct {
	// Awake, AwakeBytes (about) and InFlight are what there is now.
	Awake, AwakeBytes, InFlight int64
	// The rest is counted since the start: Refused by limits of capacity, OverQuota
	// by Options.Quotas.
	Woken, Slept, Refused, OverQuota, Panics, Damaged, Events, Creates, Incidents int64
	// Recovered is how often a goroutine of the process panicked and went on (package guard).
	Recovered int64
	// Timers and Outbox are those of what happens by itself.
	Timers timer.Metrics
	Outbox outbox.Metrics
}

// Metrics returns the counters as they are now.
func (r *Router) Metrics() Metrics {
	queries := r.queries.Metrics()
	m := Metrics{
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
		Incidents:  r.metrics.incidents.Load(),
		Recovered:  guard.Panics(),
		Timers:     r.timers.Metrics(),
	}
	if r.outbox != nil {
		m.Outbox = r.outbox.Metrics()
	}
	return m
}

// InFlightMax is Options.InFlightMax.
func (r *Router) InFlightMax() int { return r.o.InFlightMax }

// Backlog is how many bytes wait for the store.
func (r *Router) Backlog() int64 { return r.store.Backlog() }
