// Package compare measures troupe beside the two ceilings of package ceiling, and beside other builds. The measurement
// is that of `troupe bench` (package trial), with more targets, once for each combination of connections and replies.
package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/bench/report"
	"troupe/bench/trial"
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

type plan struct {
	*harness.Harness
	targets []string
	rounds  int
	cells   []cell
	load    load.Options // of every run, except for what a cell says
	rate    float64
	against string // the program of the target "other"; "" without one
	cores   int    // that each server may use; 0: all
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

func isCeiling(name string) bool { return name == httpCeiling || name == durableCeiling }

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
	flags.Float64Var(&p.rate, "rate", 0, "requests per second in an open loop; 0: a closed loop")
	flags.StringVar(&p.against, "against", "", "another build of troupe, measured beside as the target \"other\"")
	flags.IntVar(&p.cores, "cores", 0, "processors that each server may use (GOMAXPROCS); 0 is all")
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
	if p.load.Mix[load.Query] > 0 && slices.ContainsFunc(p.targets, isCeiling) {
		return nil, harness.Wrong("the ceilings answer no queries: -targets troupe")
	}
	if p.against != "" {
		p.targets = append(p.targets, otherTarget)
	}
	if p.cores < 0 || p.rounds < 1 || p.load.Duration <= 0 || p.load.Instances < 1 || p.load.Preload < 0 || p.rate < 0 {
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

// run carries the plan out and returns the tables, also of runs with errors, which are not recorded.
func (p *plan) run(ctx context.Context) (text string, err error) {
	if slices.Contains(p.targets, troupeTarget) {
		if err := p.Build(ctx); err != nil {
			return "", err
		}
	}
	if p.cores > 0 { // NB: this process has read it at its start; those that it starts inherit it
		if err := os.Setenv("GOMAXPROCS", strconv.Itoa(p.cores)); err != nil {
			return "", err
		}
	}
	reports := map[cell]*report.Report{}
	for _, c := range p.cells {
		rep, err := p.measure(ctx, c)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c, err)
		}
		reports[c] = rep
	}
	loop := "closed loop"
	if p.rate > 0 {
		loop = fmt.Sprintf("open loop of %g requests/s", p.rate)
	}
	p.Title = "Comparison"
	p.Rows = [][2]string{{"Load", fmt.Sprintf(
		"%s, %s, %d new instances a run with %d events before, %d rounds of %s after %s",
		loop, p.load.Mix, p.load.Instances, p.load.Preload, p.rounds, p.load.Duration, p.load.WarmUp)}}
	return p.text(reports), failures(p.cells, reports)
}

// measure starts the targets of a cell and measures them in turn.
func (p *plan) measure(ctx context.Context, c cell) (*report.Report, error) {
	plan := &trial.Plan{Load: p.load, Rounds: p.rounds, Progress: func(at trial.Progress) {
		if at.Doing != "" {
			fmt.Fprintf(p.Errs, "%s, round %d of %d: %s: %s\n", c, at.Round, p.rounds, at.Target, at.Doing)
		}
	}}
	plan.Load.Scenario = load.BuiltIn()
	plan.Load.Connections, plan.Load.Minimal, plan.Load.Batch = c.connections, c.minimal, c.batch
	if p.rate > 0 {
		plan.Rates = []float64{p.rate}
	}
	for _, name := range p.targets {
		t := trial.Target{Name: name}
		switch {
		case name == troupeTarget:
			t.Program = p.Program
		case name == otherTarget:
			t.Program = p.against
		case c.batch > 0: // they take none
			continue
		default:
			t.Start = func(ctx context.Context, dir string) (*process.Process, error) { return startCeiling(ctx, name, dir) }
		}
		plan.Targets = append(plan.Targets, t)
	}
	return plan.Run(ctx)
}

func startCeiling(ctx context.Context, name, dir string) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	store := ""
	if name == durableCeiling {
		store = filepath.Join(dir, "store")
	}
	return process.Start(ctx, filepath.Join(dir, "log"), self, ceilingCommand, "-dir", store)
}

func failures(cells []cell, reports map[cell]*report.Report) (err error) {
	for _, c := range cells {
		for _, r := range reports[c].Runs {
			if r.ErrorsTotal > 0 {
				err = errors.Join(err, fmt.Errorf("%s, %s, round %d: %d errors: %v", r.Target, c, r.Round, r.ErrorsTotal, r.Errors))
			}
		}
	}
	return err
}
