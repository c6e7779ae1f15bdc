package outbox

import "sync/atomic"

type metrics struct{ delivered, failed, dead atomic.Int64 }

// Metrics is a snapshot of a Service's counters, since the start.
type Metrics struct {
	// Delivered went out, Failed are attempts that are made again, and Dead are given up.
	Delivered, Failed, Dead int64
}

// Metrics returns the counters as they are now.
func (s *Service) Metrics() Metrics {
	return Metrics{Delivered: s.metrics.delivered.Load(), Failed: s.metrics.failed.Load(), Dead: s.metrics.dead.Load()}
}
