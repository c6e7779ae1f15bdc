package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"troupe/bench/process"
	"troupe/bench/record"
)

func main() { os.Exit(process.Main("fairness", run)) }

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == politeCommand:
		return bePolite(ctx, os.Stdin, out)
	case len(args) == 3 && args[0] == refuseCommand:
		return refuse(ctx, args[2])
	}
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
	attacks     []attack
	duration    time.Duration // of the measured window of each attack
	warmUp      time.Duration // before it, already under attack
	rate        float64       // of the polite user's requests
	loops       int           // hostile requests at a time
	connections int           // hostile connections that are only held
	records     int           // hostile instances that are there before
	tasks       int           // hostile tasks, and events of a long history
	link        float64       // megabits a second of the hostile one's network; 0 is loopback
	bare        bool          // the hostile one attacks a server that only refuses
	program     string        // "" is built from this tree
	serve       []string      // arguments of troupe serve
	dir, record string
}

func parse(args []string, errs io.Writer) (*measurement, error) {
	m := &measurement{args: args, errs: errs}
	flags := flag.NewFlagSet("fairness", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintln(errs, "Usage: fairness [flags] [-- flags of troupe serve]")
		flags.PrintDefaults()
	}
	names := flags.String("attacks", "", "names of attacks with commas; empty is all. The first is always nobody")
	flags.DurationVar(&m.duration, "duration", 5*time.Second, "measured time of each attack, at most 1m")
	flags.DurationVar(&m.warmUp, "warmup", time.Second, "time under attack before it")
	flags.Float64Var(&m.rate, "rate", 100, "the polite user's requests a second")
	flags.IntVar(&m.loops, "loops", 32, "hostile requests at a time")
	flags.IntVar(&m.connections, "connections", 300, "hostile connections that are held, at most 2000")
	flags.IntVar(&m.records, "records", 3000, "hostile instances of 4 KiB that are made before")
	flags.IntVar(&m.tasks, "tasks", 50_000, "tasks that the polite user may not read, and events of a long history")
	flags.Float64Var(&m.link, "link", 1000, "the hostile one's network in megabits a second each way; 0 is loopback as it is")
	flags.BoolVar(&m.bare, "bare", false, "the hostile one attacks a server beside it that refuses everything: what its client alone takes from the polite user")
	flags.StringVar(&m.program, "program", "", "the build that is measured; empty builds this tree")
	flags.StringVar(&m.dir, "dir", "", "folder for the home; empty is the system's temporary one")
	flags.StringVar(&m.record, "o", "", "write a record to this file, and its figures to the same name with .json")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	m.serve = append([]string{"--connections-max", "200", "--drain-max", "1s"}, flags.Args()...)
	if m.duration <= 0 || m.duration > time.Minute || m.warmUp < 0 || m.rate <= 0 || m.loops < 1 || m.records < 1 || m.tasks < 1 || m.link < 0 ||
		m.connections < 1 || m.connections > 2000 {
		return nil, errors.New("numbers must be positive and within their bounds")
	}
	all := attacks()
	m.attacks = all
	if *names != "" {
		m.attacks = all[:1]
		for name := range strings.SplitSeq(*names, ",") {
			i := slices.IndexFunc(all, func(a attack) bool { return a.name == name })
			if i < 0 {
				return nil, fmt.Errorf("there is no attack %q", name)
			}
			if i > 0 {
				m.attacks = append(m.attacks, all[i])
			}
		}
	}
	return m, nil
}

func (m *measurement) run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp(m.dir, "troupe-fairness-")
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
	h, err := m.newHome(ctx, filepath.Join(dir, "shared"))
	if err != nil {
		return err
	}
	var phases []*phase
	for _, a := range m.attacks {
		p, err := m.measureAt(ctx, h, a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		phases = append(phases, p)
		fmt.Fprintf(m.errs, "%-24s %s\n", a.name, p.line(phases[0]))
	}
	text := report(phases)
	fmt.Fprint(out, text)
	if m.record == "" {
		return nil
	}
	figures, err := json.MarshalIndent(phases, "", "\t")
	if err != nil {
		return err
	}
	header := facts.Header("Fairness", "go run ./bench/fairness "+strings.Join(m.args, " "),
		[2]string{"Server", "`troupe serve " + strings.Join(m.serve, " ") + "`"},
		[2]string{"Load", fmt.Sprintf("open loop, %g requests/s of the polite user, %s after %s for each attack; %d hostile requests at a time, %d connections held, %d hostile records of 4 KiB; %s",
			m.rate, m.duration, m.warmUp, m.loops, m.connections, m.records, m.aim())})
	return errors.Join(
		os.WriteFile(m.record, []byte(header+text), 0o644),
		os.WriteFile(strings.TrimSuffix(m.record, ".md")+".json", append(figures, '\n'), 0o644))
}

// aim says what the hostile one attacks, and over what.
func (m *measurement) aim() string {
	over, at := "loopback", ""
	if m.link > 0 {
		over = fmt.Sprintf("%g Mbit/s each way", m.link)
	}
	if m.bare {
		at = ", to a server that refuses everything, and not to this one"
	}
	return "the hostile one comes over " + over + at
}
