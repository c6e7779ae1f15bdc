// Package compare measures troupe beside the two ceilings of package ceiling. It starts every server as a process of
// its own on this machine's loopback, and puts the same load on each in turn, in rounds, so that what disturbs the
// machine disturbs all of them. What counts are the ratios within a round, with their spread.
package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
)

// Commands are the measurement, and the ceilings as which the program starts itself.
var Commands = []harness.Command{
	{Name: "compare", About: "the program beside the ceilings and other builds", Run: run},
	{Name: ceilingCommand, Run: serveCeiling},
}

func run(ctx context.Context, h *harness.Harness) error {
	p, err := parsePlan(h)
	if err != nil {
		return err
	}
	return h.Measure(ctx, p.run)
}

func parsePlan(h *harness.Harness) (*plan, error) {
	p, flags := &plan{Harness: h}, h.Flags
	targets := flags.String("targets", strings.Join(targetNames, ","), "what is measured, in this order in the first round")
	connections := flags.String("connections", "64", "connections, or several numbers with commas")
	replies := flags.String("replies", "full", "full, minimal or full,minimal: whether replies carry the history")
	batches := flags.String("batch", "", "also batches of so many events, or of several numbers with commas; their ratios are to single events")
	mix := flags.String("mix", "event=1", "how often each kind is sent, like create=1,event=8,read=1")
	flags.IntVar(&p.rounds, "rounds", 3, "rounds")
	flags.DurationVar(&p.load.Duration, "duration", 5*time.Second, "measured time of each run")
	flags.DurationVar(&p.load.WarmUp, "warmup", time.Second, "time before it")
	flags.IntVar(&p.load.Instances, "instances", 10_000, "instances; each run makes new ones")
	flags.IntVar(&p.load.Preload, "preload", 0, "events that each instance gets beforehand")
	flags.Float64Var(&p.load.Rate, "rate", 0, "requests per second in an open loop; 0: a closed loop")
	flags.Float64Var(&p.queries, "queries", 0, "measure each run with so many queries by node a second beside it, too")
	flags.StringVar(&p.node, "node", parkedNode, fmt.Sprintf("what the queries ask for: %s, where %d instances stand, or %s, which all others enter and leave", parkedNode, parked, movingNode))
	flags.StringVar(&p.against, "against", "", "another build of troupe, measured beside as the target \"other\"")
	flags.IntVar(&p.cores, "cores", 0, "processors that each server may use (GOMAXPROCS); 0 is all")
	flags.BoolVar(&p.profile, "profile", false, "also say what the servers' processor time goes to; the profiler costs a few per cent itself")
	if err := h.Parse(""); err != nil {
		return nil, err
	}
	var err error
	if p.load.Mix, err = load.ParseMix(*mix); err != nil {
		return nil, harness.Wrong("%w", err)
	}
	p.targets = strings.Split(*targets, ",")
	for _, name := range p.targets {
		if !slices.Contains(targetNames, name) {
			return nil, harness.Wrong("target %q is none of %s", name, strings.Join(targetNames, ", "))
		}
	}
	if p.against != "" {
		p.targets = append(p.targets, otherTarget)
	}
	if p.queries < 0 || p.queries > 0 && (slices.Contains(p.targets, httpCeiling) || slices.Contains(p.targets, durableCeiling)) {
		return nil, harness.Wrong("-queries must not be negative, and the ceilings answer none: -targets troupe")
	}
	if p.cores < 0 || p.rounds < 1 || p.load.Duration <= 0 || p.load.Instances < 1 || p.load.Preload < 0 || p.load.Rate < 0 {
		return nil, harness.Wrong("numbers must be positive")
	}
	p.cells, err = parseCells(*connections, *replies, *batches)
	return p, err
}

func parseCells(connections, replies, batches string) ([]cell, error) {
	sizes, err := parseNumbers("batch", batches)
	if err != nil {
		return nil, err
	}
	counts, err := parseNumbers("connections", connections)
	if err != nil {
		return nil, err
	}
	var cells []cell
	for _, n := range counts {
		minimal := false
		for reply := range strings.SplitSeq(replies, ",") {
			if reply != "full" && reply != "minimal" {
				return nil, harness.Wrong("replies %q are neither full nor minimal", reply)
			}
			minimal = minimal || reply == "minimal"
			cells = append(cells, cell{n, reply == "minimal", 0})
		}
		for _, size := range sizes {
			cells = append(cells, cell{n, minimal, size})
		}
	}
	return cells, nil
}

func parseNumbers(name, text string) (numbers []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, harness.Wrong("%s %q", name, part)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// run carries the plan out and returns the tables, also of runs with errors; what they found out is an error all
// the same.
func (p *plan) run(ctx context.Context) (string, error) {
	if err := p.readQueries(); err != nil {
		return "", err
	}
	all, stop, err := p.startTargets(ctx)
	defer stop()
	if err != nil {
		return "", err
	}
	samples, err := p.measure(ctx, all)
	if err != nil {
		return "", err
	}
	p.describe()
	return p.report(samples), failures(samples)
}

// failures are the errors of all runs. Figures of which any has one are not recorded.
func failures(samples []*sample) (err error) {
	for _, s := range samples {
		if s.ErrorsTotal > 0 {
			err = errors.Join(err, fmt.Errorf("%s, %s, round %d: %d errors: %v", s.target, s.cell, s.round, s.ErrorsTotal, s.Errors))
		}
		if s.queries != nil && s.queries.ErrorsTotal > 0 {
			err = errors.Join(err, fmt.Errorf("%s, %s, round %d: queries: %v", s.target, s.cell, s.round, s.queries.Errors))
		}
	}
	return err
}

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
	otherTarget    = "other" // another build, see -against
)

var targetNames = []string{httpCeiling, durableCeiling, troupeTarget}

type target struct {
	*process.Process
	name  string
	token string // "" when it takes none
	admin string // where it has profiles
	// parked: the instances that queries find were made.
	parked bool
}

type sample struct {
	target string
	cell   cell
	round  int // from 1
	*load.Result
	// queries is what happened to the queries beside it; nil without any.
	queries *load.Result
	shares  costs // of the processor time, by part; nil without a profile
}

// figures of a sample. Processor times are in microseconds for each request that was answered, and for each event of a batch.
func perSecond(s *sample) float64  { return s.OperationsPerSecond }
func p50(s *sample) float64        { return s.Latency.P50Ms }
func p99(s *sample) float64        { return s.Latency.P99Ms }
func serverCost(s *sample) float64 { return known(s.ServerCPUMicrosPerOperation) }
func clientCost(s *sample) float64 { return known(s.GeneratorCPUMicrosPerOperation) }

func known(figure *float64) float64 {
	if figure == nil {
		return 0
	}
	return *figure
}
