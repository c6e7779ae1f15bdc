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
	idle        int           // idle connections
	share       float64       // processors that the server has; 0: all
	serve       []string      // arguments of troupe serve

	probeWaitMax time.Duration
	shared       string // what happened to the share
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

var phases = []*phase{
	{name: "0.5", what: "half of the capacity", rate: 0.5},
	{name: "1", what: "the capacity", rate: 1},
	{name: "2", what: "twice the capacity", rate: 2},
	{name: "5", what: "five times the capacity", rate: 5},
	{name: "10", what: "ten times the capacity", rate: 10},
	{name: "deaf", what: "ten times the capacity, by callers who do not heed Retry-After", rate: 10, deaf: true},
	{name: "hot", what: "ten times the capacity of one instance, for one instance", rate: 10, hot: true},
	{name: "storm", what: "half of the capacity, beside another user who repeats each request at once, refused or not", rate: 0.5, storm: true},
	{name: "idle", what: "half of the capacity, beside idle connections", rate: 0.5, idle: true},
}

func parse(h *harness.Harness) (*measurement, error) {
	m, flags := &measurement{Harness: h, loads: phases, probeWaitMax: probeWaitMax}, h.Flags
	names := flags.String("loads", "", "names of loads with commas; empty is all")
	flags.IntVar(&m.rounds, "rounds", 3, "how often each load is measured, each round on a new server")
	flags.DurationVar(&m.duration, "duration", 2*time.Second, "measured time of each load, at most 1m")
	flags.DurationVar(&m.warmUp, "warmup", time.Second, "time under load before it")
	flags.IntVar(&m.connections, "connections", 2048, "connections of a load above the capacity, at most 8000")
	flags.IntVar(&m.idle, "idle", 10_000, "connections that are only held, at most 15000")
	flags.Float64Var(&m.share, "share", 0.3, "processors that the server may use; 0 is all")
	flags.StringVar(&m.Program, "program", "", "the build that is measured; empty builds this tree")
	if err := h.Parse("[-- flags of troupe serve]"); err != nil {
		return nil, err
	}
	m.serve = flags.Args()
	if m.rounds < 1 || m.duration <= 0 || m.duration > time.Minute || m.warmUp <= 0 || m.share < 0 ||
		m.connections < 1 || m.connections > 8000 || m.idle < 1 || m.idle > 15_000 {
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

var users = []string{load.UserID, "storm", "polite"}

// start starts a server with its share of the processors. end stops it.
func (m *measurement) start(ctx context.Context, home string) (t *harness.Server, end func() error, err error) {
	scenario := load.BuiltIn()
	scenario.Users = nil
	for _, u := range users {
		scenario.Users = append(scenario.Users, load.User{Name: u, Roles: []string{"employee"}})
	}
	if err := scenario.WriteHome(home); err != nil {
		return nil, nil, err
	}
	t, err = harness.Serve(ctx, m.Program, home, users, append([]string{"--drain-max", "1s"}, m.serve...)...)
	if err != nil {
		return nil, nil, err
	}
	remove := func() error { return nil }
	if m.shared = "all of them: no share was asked for"; m.share > 0 {
		if limited, err := limitShare("/sys/fs/cgroup", t.PID(), m.share); err != nil {
			m.shared = "**all of them: it could not be limited**: " + err.Error()
		} else {
			remove, m.shared = limited, fmt.Sprintf("%g of a processor in each period of %d ms", m.share, sharePeriodMicros/1000)
		}
	}
	return t, func() error { t.Stop(); return remove() }, nil
}

// errNoEvent ends a round: without a capacity there is no load.
var errNoEvent = errors.New("no event was answered")

func (m *measurement) round(ctx context.Context, home string) (all []*result, err error) {
	t, end, err := m.start(ctx, home)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	capacity := map[bool]float64{} // of all instances, and of one
	for _, p := range m.loads {
		if capacity[p.hot] == 0 {
			o := m.options(t, load.UserID)
			if p.hot {
				o.Connections, o.Instances = hotConnections, 1
			}
			r, err := load.Run(ctx, o)
			if err != nil {
				return nil, err
			}
			if capacity[p.hot] = r.OperationsPerSecond; r.OperationsPerSecond == 0 {
				return nil, fmt.Errorf("%w: %v", errNoEvent, r.Errors)
			}
			fmt.Fprintf(m.Errs, "capacity %.0f/s (one instance: %v), p50 %.0f ms\n", r.OperationsPerSecond, p.hot, r.Latency.P50Ms)
		}
		r, err := m.measure(ctx, t, p, capacity[p.hot])
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", p.name, err)
		}
		all = append(all, r)
		fmt.Fprintln(m.Errs, r.line())
	}
	comparePeak(all, capacity)
	return all, nil
}
