package compare

import (
	"fmt"
	"time"

	"troupe/bench/fleet"
	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
)

type plan struct {
	*harness.Harness
	targets []string
	rounds  int
	cells   []cell
	load    load.Options // of every run, except for what a cell says
	against string       // the program of the target "other"; "" without one
	profile bool         // also take processor profiles
	cores   int          // that each server may use; 0: all

	queries  float64 // a second, beside the load; 0: none
	node     string  // that they ask for
	scenario *load.Scenario
}

// cell is one combination of settings that all targets are measured with.
type cell struct {
	connections int
	minimal     bool
	batch       int // events in a request; 0: requests are single
}

func (c cell) String() string {
	if c.batch > 0 {
		return fmt.Sprintf("%d connections, batches of %d", c.connections, c.batch)
	}
	reply := "full"
	if c.minimal {
		reply = "minimal"
	}
	return fmt.Sprintf("%d connections, %s replies", c.connections, reply)
}

// The names of the targets.
const (
	httpCeiling    = "http"
	durableCeiling = "durable"
	troupeTarget   = "troupe"
	clusterTarget  = "cluster" // three nodes of it
	otherTarget    = "other"   // another build, see -against
)

var targetNames = []string{httpCeiling, durableCeiling, troupeTarget}

type target struct {
	*process.Process
	name  string
	token string   // "" when it takes none
	admin []string // where its processes have profiles; none without
	// cluster has the nodes, of which Process is the first; nil for other targets.
	cluster *fleet.Fleet
	// parked: the instances that queries find were made.
	parked bool
}

type sample struct {
	target string
	cell   cell
	round  int // from 1
	result *load.Result
	// queries is what became of the queries beside it; nil without any.
	queries *load.Result
	// server and client are the processor times of the measured window. Of the server they
	// and memory are with the processes below it.
	server, client time.Duration
	memory         int64 // bytes that the server had after it
	shares         costs // of the processor time, by part; nil without a profile
}

func (s *sample) perSecond() float64 { return s.result.PerSecond }

// p50 and p99 are latencies in milliseconds.
func (s *sample) p50() float64 { return s.result.All.P50.Milliseconds() }
func (s *sample) p99() float64 { return s.result.All.P99.Milliseconds() }

// serverCost and clientCost are processor time in microseconds for each request
// that was answered, and for each event of a batch.
func (s *sample) serverCost() float64 { return cost(s.server, s.result) }
func (s *sample) clientCost() float64 { return cost(s.client, s.result) }

func cost(used time.Duration, r *load.Result) float64 {
	return float64(used.Microseconds()) / float64(max(1, r.Operations))
}
