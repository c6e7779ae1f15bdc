package overload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/bench/internal/harness"
)

type measurement struct {
	*harness.Harness
	loads       []phase
	rounds      int
	duration    time.Duration // of the measured window of each load
	warmUp      time.Duration // before it
	connections int           // of a load above the capacity
	idle        int           // idle connections
	share       float64       // processors that the server has; 0: all
	serve       []string      // arguments of troupe serve

	probeWaitMax time.Duration
	shared       string // what became of the share
}

type phase struct {
	name, what string
	// rate is what is sent, in capacities.
	rate float64
	hot  bool // to one instance
	// storm: beside it the second user repeats each request at once.
	storm bool
	idle  bool // beside connections that are only held
	deaf  bool // refused callers come again at once
}

// normal is a load that the server can do, in capacities.
const normal = 0.5

func phases() []phase {
	return []phase{
		{name: "0.5", what: "half of the capacity", rate: normal},
		{name: "1", what: "the capacity", rate: 1},
		{name: "2", what: "twice the capacity", rate: 2},
		{name: "5", what: "five times the capacity", rate: 5},
		{name: "10", what: "ten times the capacity", rate: 10},
		{name: "deaf", what: "ten times the capacity, by callers who do not heed Retry-After", rate: 10, deaf: true},
		{name: "hot", what: "ten times the capacity of one instance, for one instance", rate: 10, hot: true},
		{name: "storm", what: "half of the capacity, beside another user who repeats each request at once, refused or not", rate: normal, storm: true},
		{name: "idle", what: "half of the capacity, beside idle connections", rate: normal, idle: true},
	}
}

// choose returns the loads of the names, all without one.
func choose(names string) ([]phase, error) {
	all := phases()
	if names == "" {
		return all, nil
	}
	var chosen []phase
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(p phase) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no load %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// The figures of a load, each a number.
const (
	demanded       = iota // requests a second that were due
	offered               // that found a free connection
	useful                // answered as they should be, in usefulMax
	peakPart              // the same, of the most that any load of the round had
	accepted50            // ms
	accepted99            // ms
	refused               // a second
	refused50             // ms
	refused99             // ms
	politePart            // of the polite user's, answered as they should be in usefulMax
	polite99              // ms
	health99              // ms; of the slowest of what is probed
	processorCores        // that the server used
	peakMB                // memory
	recovered             // ms
	figures
)

type outcome struct {
	figures [figures]float64
	errors  map[string]int64
}

// usefulMax is the time after which nobody waits for an answer any more.
const usefulMax = time.Second
