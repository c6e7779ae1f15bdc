package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/bench/load"
	"troupe/bench/record"
	"troupe/bench/report"
)

// Plan says what is measured.
type Plan struct {
	// Command is what the report shows as the command line. It must have no secrets.
	Command string
	// Build is the version of this program.
	Build string
	// Targets are the servers; the ratios of the report are the first's to the second's.
	Targets []Target
	// Load is what each run does, but for where it goes and its rate. Its Scenario must be set.
	Load load.Options
	// ScenarioFile is what the report shows; empty: the built-in one.
	ScenarioFile string
	// Rates are the steps of an open loop. Empty: a closed one.
	Rates []float64
	// Rounds is how often everything is measured. Default 1.
	Rounds     int
	Thresholds []Threshold
	// Progress is called before each part and at each interval of a window. It must not block.
	Progress func(Progress)
}

// Progress says how far a measurement is.
type Progress struct {
	Target        string
	RatePerSecond float64 // 0: a closed loop
	Round, Rounds int
	// Doing is what happens before a window; empty inside it.
	Doing string
	// Now is the interval that has just ended, Total the length of the window, and Failed the errors so far.
	Now    load.Interval
	Total  time.Duration
	Failed int64
}

// Run carries the plan out. A run with errors or failed thresholds is not an error: the
// report says so. When ctx ends, what was measured until then comes with the error.
func (p *Plan) Run(ctx context.Context) (rep *report.Report, err error) {
	p.ensureDefaults()
	dir, err := os.MkdirTemp("", "troupe-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	rep = p.newReport()
	var servers []*server
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	for i := range p.Targets {
		p.Progress(Progress{Target: p.Targets[i].Name, Doing: "starting"})
		own := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, err
		}
		s, err := p.Targets[i].start(ctx, own, p.Load.Scenario)
		if err != nil {
			return nil, p.at(p.Targets[i].Name, err)
		}
		servers = append(servers, s)
		if err := s.try(ctx, p.Load); err != nil {
			return nil, p.at(s.Name, err)
		}
		rep.Targets = append(rep.Targets, s.describe(ctx))
	}
	err = p.measure(ctx, servers, rep)
	if err != nil && (ctx.Err() == nil || len(rep.Runs) == 0) {
		return nil, err
	}
	p.judge(rep)
	if err != nil {
		rep.Warnings = append(rep.Warnings, "The measurement was interrupted: the last run may be shorter than the others, and some may be missing.")
	}
	return rep, err
}

func (p *Plan) at(target string, err error) error {
	if len(p.Targets) == 1 {
		return err
	}
	return fmt.Errorf("%s: %w", target, err)
}

// Check reports what is wrong with the plan before anything is started.
func (p *Plan) Check() error {
	p.ensureDefaults()
	return p.Load.Validate()
}

func (p *Plan) ensureDefaults() {
	p.Rounds = max(p.Rounds, 1)
	if len(p.Rates) == 0 {
		p.Rates = []float64{0}
	}
	if p.Progress == nil {
		p.Progress = func(Progress) {}
	}
	p.Load.Addr = cmp.Or(p.Load.Addr, "each-run-has-its-own")
	p.Load.EnsureDefaults()
	p.Load.Every = intervalOf(p.Load.Duration)
}

// intervalOf is how long an interval of a window is: fifty of them, but not so short that
// the processor time of one tells nothing, nor so many that nobody can see them.
func intervalOf(window time.Duration) time.Duration {
	return max(100*time.Millisecond, min(window/50, time.Second), window/600)
}

func (p *Plan) newReport() *report.Report {
	here, o := record.Here(), &p.Load
	return &report.Report{
		Format: report.Format, Command: p.Command, Began: here.At, Warnings: []string{},
		Generator: report.Machine{
			Program: p.Build, OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(),
			Kernel: here.Kernel, Processor: here.Processor, Cores: runtime.NumCPU(), LoadAverage: loadAverage(here.Load),
		},
		Load: report.Load{
			Workflow: o.Scenario.WorkflowID, Scenario: p.ScenarioFile, Mix: o.Mix.String(), Connections: o.Connections,
			Instances: o.Instances, Preload: o.Preload, Batch: o.Batch, Minimal: o.Minimal,
			WarmUpSeconds: max(0, o.WarmUp).Seconds(), DurationSeconds: o.Duration.Seconds(), Rounds: p.Rounds,
		},
	}
}

// loadAverage leaves out what follows the three averages, such as the last process.
func loadAverage(line string) string {
	fields := strings.Fields(line)
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// measure puts the load on each target in turn. Every round begins with another one, so
// that none always follows the same.
func (p *Plan) measure(ctx context.Context, servers []*server, rep *report.Report) error {
	for _, rate := range p.Rates {
		for round := range p.Rounds {
			for i := range servers {
				s := servers[(i+round)%len(servers)]
				at := Progress{Target: s.Name, RatePerSecond: rate, Round: round + 1, Rounds: p.Rounds, Total: p.Load.Duration}
				r, err := s.measure(ctx, p, at)
				if r != nil {
					rep.Runs = append(rep.Runs, r)
				}
				if err != nil {
					return p.at(s.Name, err)
				}
			}
		}
	}
	return nil
}

func (p *Plan) judge(rep *report.Report) {
	for _, r := range rep.Runs {
		rep.Warnings = append(rep.Warnings, warnings(r, rep)...)
	}
	if len(p.Targets) > 1 {
		for _, rate := range p.Rates {
			rep.Ratios = append(rep.Ratios, ratios(rep, rate)...)
		}
	}
	mine := rep.Of(p.Targets[0].Name)
	for _, t := range p.Thresholds {
		rep.Thresholds = append(rep.Thresholds, t.judge(mine, p.Rounds))
	}
	for _, t := range unmentioned(p.Thresholds) {
		judged := t.judge(mine, p.Rounds)
		judged.Implied = true
		if judged.Failed {
			judged.By += ", and no condition is about " + t.metric.name
		}
		rep.Thresholds = append(rep.Thresholds, judged)
	}
}

func ratios(rep *report.Report, rate float64) (all []report.Ratio) {
	at := func(target int) []*report.Run {
		return slices.DeleteFunc(rep.Of(rep.Targets[target].Name), func(r *report.Run) bool { return r.RatePerSecond != rate })
	}
	for _, f := range report.Figures {
		if values := f.Ratios(at(0), at(1)); len(values) > 0 {
			all = append(all, report.Ratio{RatePerSecond: rate, Figure: f.Name, Spread: record.SpreadOf(values)})
		}
	}
	return all
}
