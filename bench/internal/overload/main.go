// Package overload offers a server more than it can do, and shows what it still does (bench/README.md, "More than it
// can do"). The server has a share of the processors, by a control group of Linux that only root can make: on a
// machine that server and load generator both use up, ten times the capacity cannot be offered.
package overload

import (
	"context"
	"fmt"
	"path/filepath"
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

// users are those who put load on the server.
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
