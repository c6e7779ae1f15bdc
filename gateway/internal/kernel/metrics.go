package kernel

import "sync/atomic"

// Metrics is a snapshot of what a Server counts since it was made.
type Metrics struct {
	// InFlight is the number of requests, Watchers of streams and Connections of open
	// connections at present.
	InFlight, Watchers, Connections int64
	// Places is how many requests may be in flight at present: Options.InFlightMax, and
	// fewer while goroutines wait long for a processor.
	Places int64
	// ConnectionsEvicted counts those that were closed at Options.ConnectionsMax
	// for new ones, and ConnectionsFull the times that a new one had to wait,
	// because all had a request.
	ConnectionsEvicted, ConnectionsFull uint64
	// Shed counts requests refused because all places were taken, or half of them
	// by their user or their address, and WatchersFull watchers likewise.
	Shed, WatchersFull uint64
	// Panics counts handlers that panicked.
	Panics uint64
	// Cut counts answers that were aborted in the middle.
	Cut uint64
	// Forwarded counts requests that another node has answered, ForwardRepeated tries that were
	// made again because the node did not lead, was not reached or did not answer.
	// ForwardRefused counts requests that were refused with 503 because they found no leader in
	// time or too many waited for one, and ForwardUnknown those whose outcome is not known.
	Forwarded, ForwardRepeated, ForwardRefused, ForwardUnknown uint64
	// LeaderWaits counts the times that a request had to wait for a leader, and LeaderWaiting
	// those that do so at present.
	LeaderWaits   uint64
	LeaderWaiting int64
	// Taken counts requests that other nodes have forwarded to this one.
	Taken uint64
	// Routes counts answers, in the order of the table; the last one stands for
	// everything outside it.
	Routes []RouteMetrics
}

// RouteMetrics counts the answers of one route.
type RouteMetrics struct {
	Name string
	// Answers counts by the first digit of the status; 0 counts answers that
	// were aborted.
	Answers [6]uint64
}

// metrics is where a Server counts. The list of routes is complete before the
// first request.
type metrics struct {
	shed, watchersFull, panics, aborted, taken atomic.Uint64

	routes    []*routeMetrics
	unmatched routeMetrics
}

type routeMetrics struct {
	name    string
	answers [6]atomic.Uint64
}

func (m *metrics) add(name string) *routeMetrics {
	route := &routeMetrics{name: name}
	m.routes = append(m.routes, route)
	return route
}

func (m *routeMetrics) count(status int) {
	class := 0
	if status > 0 {
		class = status / 100 % len(m.answers)
	}
	m.answers[class].Add(1)
}

func (m *routeMetrics) snapshot() RouteMetrics {
	r := RouteMetrics{Name: m.name}
	for i := range m.answers {
		r.Answers[i] = m.answers[i].Load()
	}
	return r
}
