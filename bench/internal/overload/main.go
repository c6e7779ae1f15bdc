// Package overload offers a server more than it can do, and shows what it still does (bench/README.md, "More than it
// can do"). The server has a share of the processors, by a control group of Linux that only root can make: on a
// machine that server and load generator both use up, ten times the capacity cannot be offered.
package overload

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
)

// Commands are the measurement.
var Commands = []harness.Command{{Name: "overload", About: "more than the program can do, and what it still does", Run: run}}

func run(ctx context.Context, h *harness.Harness) error {
	m, err := parse(h)
	if err != nil {
		return err
	}
	return h.Measure(ctx, m.run)
}

type measurement struct {
	*harness.Harness
	loads       []*phase
	rounds      int
	duration    time.Duration // of the measured window of each load
	warmUp      time.Duration // before it
	connections int           // of a load above the capacity
	share       float64       // processors that the server has; 0: all
	serve       []string      // arguments of troupe serve

	shared string // what happened to the share
}

type phase struct {
	name, what string
	rate       float64 // what is sent, in capacities
	deaf       bool    // refused callers come again at once
}

var phases = []*phase{
	{name: "0.5", what: "half of the capacity", rate: 0.5},
	{name: "1", what: "the capacity", rate: 1},
	{name: "2", what: "twice the capacity", rate: 2},
	{name: "5", what: "five times the capacity", rate: 5},
	{name: "10", what: "ten times the capacity", rate: 10},
	{name: "deaf", what: "ten times the capacity, by callers who do not heed Retry-After", rate: 10, deaf: true},
}

func parse(h *harness.Harness) (*measurement, error) {
	m, flags := &measurement{Harness: h, loads: phases}, h.Flags
	names := flags.String("loads", "", "names of loads with commas; empty is all")
	flags.IntVar(&m.rounds, "rounds", 3, "how often each load is measured, each round on a new server")
	flags.DurationVar(&m.duration, "duration", 2*time.Second, "measured time of each load, at most 1m")
	flags.DurationVar(&m.warmUp, "warmup", time.Second, "time under load before it")
	flags.IntVar(&m.connections, "connections", 2048, "connections of a load above the capacity, at most 8000")
	flags.Float64Var(&m.share, "share", 0.3, "processors that the server may use; 0 is all")
	flags.StringVar(&m.Program, "program", "", "the build that is measured; empty builds this tree")
	if err := h.Parse("[-- flags of troupe serve]"); err != nil {
		return nil, err
	}
	m.serve = flags.Args()
	if m.rounds < 1 || m.duration <= 0 || m.duration > time.Minute || m.warmUp <= 0 || m.share < 0 || m.connections < 1 || m.connections > 8000 {
		return nil, harness.Wrong("numbers must be positive and within their bounds")
	}
	if *names == "" {
		return m, nil
	}
	m.loads = nil
	for name := range strings.SplitSeq(*names, ",") {
		i := slices.IndexFunc(phases, func(p *phase) bool { return p.name == name })
		if i < 0 {
			return nil, harness.Wrong("there is no load %q", name)
		}
		m.loads = append(m.loads, phases[i])
	}
	return m, nil
}

func (m *measurement) run(ctx context.Context) (string, error) {
	if err := m.Build(ctx); err != nil {
		return "", err
	}
	var rounds [][]*result
	for n := range m.rounds {
		r, err := m.round(ctx, filepath.Join(m.Dir, fmt.Sprint("home", n)))
		if err != nil {
			return "", fmt.Errorf("round %d: %w", n+1, err)
		}
		rounds = append(rounds, r)
	}
	m.Title = "Overload"
	m.Rows = [][2]string{
		{"Server", strings.TrimSpace("`troupe serve "+strings.Join(m.serve, " ")) + "`"},
		{"Its share of the processors", m.shared},
		{"Load", fmt.Sprintf("events with minimal replies, %s after %s for each load, %d rounds, each on a new server; %d connections above the capacity",
			m.duration, m.warmUp, m.rounds, m.connections)},
	}
	return m.report(rounds)
}

// limit gives a server its share of the processors. end is for when it has ended.
func (m *measurement) limit(pid int) (end func() error) {
	end = func() error { return nil }
	if m.share == 0 {
		m.shared = "all of them: no share was asked for"
	} else if limited, err := limitShare(pid, m.share); err != nil {
		m.shared = "**all of them: it could not be limited**: " + err.Error()
	} else {
		end, m.shared = limited, fmt.Sprintf("%g of a processor in each period of %d ms", m.share, sharePeriodMicros/1000)
	}
	return end
}

// errNoEvent ends a round: without a capacity there is no load.
var errNoEvent = errors.New("no event was answered")

// capacityConnections are those of the closed loop that finds the capacity, and of a load below it.
const capacityConnections = 256

func (m *measurement) round(ctx context.Context, home string) (all []*result, err error) {
	if err := load.BuiltIn().WriteHome(home); err != nil {
		return nil, err
	}
	server, tokens, err := process.Serve(ctx, m.Program, home, []string{load.UserID}, append([]string{"--drain-max", "1s"}, m.serve...)...)
	if err != nil {
		return nil, err
	}
	end := m.limit(server.PID())
	defer func() {
		server.Stop()
		err = errors.Join(err, end())
	}()
	o := load.Options{
		Addr: server.Addr, Token: tokens[load.UserID], PID: server.PID(), Minimal: true, WarmUp: m.warmUp, Duration: m.duration,
		Every: 50 * time.Millisecond, QueueMax: -1, Connections: min(capacityConnections, m.connections), Instances: m.connections,
	}
	closed, err := load.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	capacity := closed.OperationsPerSecond
	if capacity == 0 {
		return nil, fmt.Errorf("%w: %v", errNoEvent, closed.Errors)
	}
	fmt.Fprintf(m.Errs, "capacity %.0f/s, p50 %.0f ms\n", capacity, closed.Latency.P50Ms)
	for _, p := range m.loads {
		o.Rate, o.Heed = p.rate*capacity, !p.deaf
		if p.rate >= 1 {
			o.Connections = m.connections
		}
		loaded, err := load.Run(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", p.name, err)
		}
		r := &result{Result: loaded}
		all = append(all, r)
		fmt.Fprintf(m.Errs, "load %s: %.0f/s due, %.0f/s useful, %.0f/s refused; %s\n", p.name, r.RatePerSecond, r.useful(), r.Refused.PerSecond, harness.Counts(r.Errors))
	}
	comparePeak(all, capacity)
	return all, nil
}
