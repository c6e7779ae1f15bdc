package kernel

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
)

// Metrics is a snapshot of what a Server counts since it was made.
type Metrics struct {
	// InFlight is the number of requests, Watchers of streams and waits, and Connections of open connections at present.
	InFlight, Watchers, Connections int64
	// Places is how many requests may be in flight at present: Options.InFlightMax, and
	// fewer while goroutines wait long for a processor.
	Places int64
	// ConnectionsEvicted counts those that were closed at Options.ConnectionsMax for new ones, and ConnectionsFull the
	// times that a new one had to wait, because all had a request.
	ConnectionsEvicted, ConnectionsFull uint64
	// Shed counts requests refused because all places were taken, or half of them
	// by their user or their address, and WatchersFull watchers likewise.
	Shed, WatchersFull uint64
	Panics             uint64 // Panics counts handlers that panicked
	Cut                uint64 // Cut counts answers that were aborted in the middle
	// Forwarded counts requests that another node has answered, ForwardRepeated tries that were
	// made again because the node did not lead, was not reached or did not answer.
	// ForwardRefused counts requests that were refused with 503 because they found no leader in
	// time or too many waited for one, and ForwardUnknown those whose outcome is not known.
	Forwarded, ForwardRepeated, ForwardRefused, ForwardUnknown uint64
	// LeaderWaits counts the times that a request had to wait for a leader, and LeaderWaiting
	// those that do so at present.
	LeaderWaits   uint64
	LeaderWaiting int64
	Taken         uint64 // Taken counts requests that other nodes have forwarded to this one
	// Answers counts the answers of each route, in the order of the table, by method and status.
	Answers []Answers
}

// Outside is the route of requests for paths that are not in the table, and for those of the table with another method.
const Outside = "outside"

// otherMethod stands for all methods that no route has: callers may send any word.
const otherMethod = "other"

// Answers counts those of one route to one method with one status.
type Answers struct {
	Route  string // Route is the path of the table, or Outside
	Method string
	Status int // Status is 0 of answers that were aborted
	Count  uint64
}

// Observer takes how long answers took, in seconds.
type Observer interface{ Observe(seconds float64) }

// metrics is where a Server counts. The list of routes is complete before the first request.
type metrics struct {
	shed, watchersFull, panics, aborted, taken atomic.Uint64

	routes []*routeMetrics // the last one is that of Outside
}

// routeMetrics counts the answers of a route.
type routeMetrics struct {
	name, path string
	observer   func(route, method string) Observer // nil: nobody wants to know how long they took
	kinds      *xsync.Map[answerKind, *answerMetrics]
}

type answerKind struct {
	method string
	status int
}

type answerMetrics struct {
	count   atomic.Uint64
	latency Observer
}

func (s *Kernel) newRouteMetrics(name, path string) *routeMetrics {
	return &routeMetrics{name, path, s.Options.Latency, xsync.NewMap[answerKind, *answerMetrics]()}
}

func (m *routeMetrics) count(method string, status int, took time.Duration) {
	of, known := m.kinds.Load(answerKind{method, status})
	if !known {
		kind := answerKind{strings.Clone(method), status}
		of, _ = m.kinds.LoadOrCompute(kind, func() (*answerMetrics, bool) {
			of := &answerMetrics{}
			if m.observer != nil {
				of.latency = m.observer(m.path, kind.method)
			}
			return of, false
		})
	}
	of.count.Add(1)
	if of.latency != nil {
		of.latency.Observe(took.Seconds())
	}
}

func (m *routeMetrics) snapshot(to []Answers) []Answers {
	for kind, of := range m.kinds.Range {
		to = append(to, Answers{m.path, kind.method, max(kind.status, 0), of.count.Load()})
	}
	return to
}

// Snapshot returns the counters but for those of forwarding.
func (s *Kernel) Snapshot() Metrics {
	m := Metrics{
		InFlight:           s.Working(),
		Places:             s.Pressure.Limit.Load(),
		Watchers:           s.watchers.Load() + s.waits.Load(),
		Connections:        s.Connections.Open.Load(),
		ConnectionsFull:    s.Connections.Full.Load(),
		ConnectionsEvicted: s.Connections.Evicted.Load(),
		Shed:               s.metrics.shed.Load(),
		WatchersFull:       s.metrics.watchersFull.Load(),
		Panics:             s.metrics.panics.Load(),
		Cut:                s.metrics.aborted.Load(),
		Taken:              s.metrics.taken.Load(),
	}
	for _, route := range s.metrics.routes {
		m.Answers = route.snapshot(m.Answers)
	}
	return m
}
