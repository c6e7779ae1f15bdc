package workflow

import (
	"troupe/actors/guard"
	"troupe/actors/outbox"
	"troupe/actors/timer"
)

// Metrics is a snapshot of the router's counters.
type Metrics struct {
	// Awake, AwakeBytes (about) and InFlight are what there is now.
	Awake, AwakeBytes, InFlight int64
	// The rest is counted since the start: Refused by limits of capacity, OverQuota
	// by Options.Quotas.
	Woken, Slept, Refused, OverQuota, Panics, Damaged, Events, Creates, Incidents int64
	// Restarts are those of instances that panicked, Rests how often one was not woken for a while behind too many, and DeadLetters
	// messages to actors that had ended.
	Restarts, Rests, DeadLetters int64
	// Recovered is how often a goroutine of the process panicked and went on (package guard).
	Recovered int64
	// Timers and Outbox are those of what happens by itself.
	Timers timer.Metrics
	Outbox outbox.Metrics
}

// Metrics returns the counters as they are now.
func (r *Router) Metrics() Metrics {
	queries := r.queries.Metrics()
	counts, shards, system := &r.env.Counts, r.shards.Metrics(), r.o.System.Metrics()
	m := Metrics{
		Awake: shards.Awake, AwakeBytes: shards.AwakeBytes, InFlight: shards.InFlight,
		Woken: shards.Woken, Slept: counts.Slept.Load(), Refused: shards.Refused + queries.Refused, OverQuota: counts.OverQuota.Load(),
		Panics: counts.Panics.Load(), Damaged: counts.Damaged.Load() + queries.Damaged,
		Events: counts.Events.Load(), Creates: counts.Creates.Load(), Incidents: counts.Incidents.Load(),
		Restarts: shards.Restarts, Rests: shards.Rests, DeadLetters: system.DeadLetters,
		Recovered: guard.Panics(), Timers: r.env.Timers.Metrics(),
	}
	if r.env.Outbox != nil {
		m.Outbox = r.env.Outbox.Metrics()
	}
	return m
}

// InFlightMax is Options.InFlightMax.
func (r *Router) InFlightMax() int { return r.o.InFlightMax }

// Backlog is how many bytes wait for the store.
func (r *Router) Backlog() int64 { return r.o.Store.Backlog() }
