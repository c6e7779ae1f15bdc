package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/bench/record"
)

func main() { os.Exit(process.Main("overload", run)) }

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	m, err := parse(args, errs)
	if err != nil {
		return fmt.Errorf("%w: %w", process.ErrUsage, err)
	}
	return m.run(ctx, out)
}

// measurement is what is asked for on the command line.
type measurement struct {
	args        []string
	errs        io.Writer
	loads       []phase
	rounds      int
	duration    time.Duration // of the measured window of each load
	warmUp      time.Duration // before it
	connections int           // of a load above the capacity
	idle        int           // idle connections
	share       float64       // processors that the server has; 0: all
	program     string        // "" is built from this tree
	serve       []string      // arguments of troupe serve
	dir, record string

	probeWaitMax time.Duration
	shared       string // what became of the share
}

func parse(args []string, errs io.Writer) (*measurement, error) {
	m := &measurement{args: args, errs: errs, probeWaitMax: probeWaitMax}
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintln(errs, "Usage: overload [flags] [-- flags of troupe serve]")
		flags.PrintDefaults()
	}
	names := flags.String("loads", "", "names of loads with commas; empty is all")
	flags.IntVar(&m.rounds, "rounds", 3, "how often each load is measured, each round on a new server")
	flags.DurationVar(&m.duration, "duration", 2*time.Second, "measured time of each load, at most 1m")
	flags.DurationVar(&m.warmUp, "warmup", time.Second, "time under load before it")
	flags.IntVar(&m.connections, "connections", 2048, "connections of a load above the capacity, at most 8000")
	flags.IntVar(&m.idle, "idle", 10_000, "connections that are only held, at most 15000")
	flags.Float64Var(&m.share, "share", 0.3, "processors that the server may use; 0 is all")
	flags.StringVar(&m.program, "program", "", "the build that is measured; empty builds this tree")
	flags.StringVar(&m.dir, "dir", "", "folder for the home; empty is the system's temporary one")
	flags.StringVar(&m.record, "o", "", "write a record to this file")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	m.serve = flags.Args()
	if m.rounds < 1 || m.duration <= 0 || m.duration > time.Minute || m.warmUp <= 0 || m.share < 0 ||
		m.connections < 1 || m.connections > 8000 || m.idle < 1 || m.idle > 15_000 {
		return nil, errors.New("numbers must be positive and within their bounds")
	}
	var err error
	m.loads, err = choose(*names)
	return m, err
}

func (m *measurement) run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp(m.dir, "troupe-overload-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	facts, err := record.Collect(dir)
	if err != nil {
		return err
	}
	if m.program == "" {
		if m.program, err = process.Build(ctx, dir); err != nil {
			return err
		}
	}
	var rounds [][]*outcome
	for n := range m.rounds {
		r, err := m.round(ctx, filepath.Join(dir, fmt.Sprint("home", n)))
		if err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		rounds = append(rounds, r)
	}
	text := m.report(rounds)
	fmt.Fprint(out, text)
	if err := m.failures(rounds); err != nil || m.record == "" {
		return err
	}
	header := facts.Header("Overload", "go run ./bench/overload "+strings.Join(m.args, " "),
		[2]string{"Server", strings.TrimSpace("`troupe serve "+strings.Join(m.serve, " ")) + "`"},
		[2]string{"Its share of the processors", m.shared},
		[2]string{"Load", fmt.Sprintf("events with minimal replies, %s after %s for each load, %d rounds, each on a new server; %d connections above the capacity",
			m.duration, m.warmUp, m.rounds, m.connections)})
	return os.WriteFile(m.record, []byte(header+text), 0o644)
}

// users are those who put load on the server.
var users = []string{load.UserID, "storm", "polite"}

// target is a server with what its users need.
type target struct {
	*process.Process
	admin  string
	tokens map[string]string
}

// start makes a home and serves it.
func (m *measurement) start(ctx context.Context, home string) (*target, error) {
	scenario := load.BuiltIn()
	scenario.Users = nil
	for _, u := range users {
		scenario.Users = append(scenario.Users, load.User{Name: u, Roles: []string{"employee"}})
	}
	if err := scenario.WriteHome(home); err != nil {
		return nil, err
	}
	t := &target{}
	var err error
	if t.tokens, err = process.Tokens(ctx, m.program, home, users); err != nil {
		return nil, err
	}
	if t.admin, err = process.FreeAddr(); err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--home", home, "--admin", t.admin, "--drain-max", "1s"}, m.serve...)
	t.Process, err = process.Start(ctx, home+".log", m.program, args...)
	return t, err
}
