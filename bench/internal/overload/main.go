// Package overload offers a server more than it can do, and shows what it still does (bench/README.md, "More than it
// can do"). The server has a share of the processors, by a control group of Linux that only root can make: on a
// machine that server and load generator both use up, ten times the capacity cannot be offered.
package overload

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

func parse(h *harness.Harness) (*measurement, error) {
	m, flags := &measurement{Harness: h, probeWaitMax: probeWaitMax}, h.Flags
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
	var err error
	if m.loads, err = choose(*names); err != nil {
		return nil, harness.Wrong("%w", err)
	}
	return m, nil
}

func (m *measurement) run(ctx context.Context) (string, error) {
	if err := m.Build(ctx); err != nil {
		return "", err
	}
	var rounds [][]*outcome
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
	return m.report(rounds), m.failures(rounds)
}

var users = []string{load.UserID, "storm", "polite"}

func (m *measurement) start(ctx context.Context, home string) (*harness.Server, error) {
	scenario := load.BuiltIn()
	scenario.Users = nil
	for _, u := range users {
		scenario.Users = append(scenario.Users, load.User{Name: u, Roles: []string{"employee"}})
	}
	if err := scenario.WriteHome(home); err != nil {
		return nil, err
	}
	return harness.Serve(ctx, m.Program, home, users, append([]string{"--drain-max", "1s"}, m.serve...)...)
}

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
	demanded       = iota // requests per second that were due
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

// sharePeriodMicros is the time over which a share counts. Who has used up his part of it
// stands still for the rest: with the usual 100 ms that would be in every latency.
const sharePeriodMicros = 10_000

// limitShare lets a process use so many processors at most, by a control group of its own
// below root, of version 1 or 2. end removes the group once the process is gone.
func limitShare(root string, pid int, cores float64) (end func() error, err error) {
	quota, period := strconv.Itoa(int(cores*sharePeriodMicros)), strconv.Itoa(sharePeriodMicros)
	name := "troupe-overload-" + strconv.Itoa(pid)
	end, err = group(filepath.Join(root, "cpu", name), pid, [2]string{"cpu.cfs_period_us", period}, [2]string{"cpu.cfs_quota_us", quota})
	if err != nil {
		var err2 error
		if end, err2 = group(filepath.Join(root, name), pid, [2]string{"cpu.max", quota + " " + period}); err2 != nil {
			return nil, fmt.Errorf("make a control group: %w", errors.Join(err, err2))
		}
	}
	return end, nil
}

func group(dir string, pid int, settings ...[2]string) (end func() error, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	end = func() error { return os.Remove(dir) }
	for _, s := range append(settings, [2]string{"cgroup.procs", strconv.Itoa(pid)}) {
		if err := set(filepath.Join(dir, s[0]), s[1]); err != nil {
			return nil, errors.Join(err, end())
		}
	}
	return end, nil
}

// set writes a file that the kernel has made; a folder that is not a control group has none.
func set(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
