package timer

import "sync/atomic"

type metrics struct{ fired, again, late atomic.Int64 }

// Metrics is a snapshot of a Service's counters.
type Metrics struct {
	// Fired and Again are counted since the start: events that came, and tries that were made again.
	Fired, Again int64
	// LateMilliseconds is by how much the last one was late.
	LateMilliseconds int64
}

// Metrics returns the counters as they are now.
func (s *Service) Metrics() Metrics {
	return Metrics{Fired: s.metrics.fired.Load(), Again: s.metrics.again.Load(), LateMilliseconds: s.metrics.late.Load()}
}
