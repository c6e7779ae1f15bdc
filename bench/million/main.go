package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"troupe/bench/process"
	"troupe/bench/record"
)

func main() { os.Exit(process.Main("million", run)) }

// killed is the word in front of a folder that makes this program open it, send
// events, and never close it: for the start after a kill.
const killed = "until-killed"

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	if len(args) == 2 && args[0] == killed {
		return runUntilKilled(ctx, args[1], out)
	}
	m := &measurement{args: args, out: out, errs: errs}
	flags := flag.NewFlagSet("million", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.IntVar(&m.instances, "instances", 1_000_000, "how many instances the large store has")
	flags.IntVar(&m.small, "small", 10_000, "how many the small store has that events are compared with; 0 leaves that out")
	flags.IntVar(&m.rounds, "rounds", 5, "how often each figure is measured")
	flags.DurationVar(&m.window, "window", 5*time.Second, "how long events are measured each time")
	flags.StringVar(&m.dir, "dir", "", "where the store is made and kept; default: a temporary folder that is removed")
	flags.StringVar(&m.record, "o", "", "the file for the record")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", process.ErrUsage, err)
	}
	if flags.NArg() > 0 || m.instances < 1 || m.rounds < 1 {
		return fmt.Errorf("%w: there are flags only, and -instances and -rounds are at least 1", process.ErrUsage)
	}
	return m.run(ctx)
}

// measurement is one run of the command.
type measurement struct {
	args             []string
	out, errs        io.Writer
	instances, small int
	rounds           int
	window           time.Duration
	dir, record      string

	text strings.Builder // of the record
}

func (m *measurement) run(ctx context.Context) (err error) {
	if m.dir == "" {
		if m.dir, err = os.MkdirTemp("", "million"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(m.dir)) }()
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	facts, err := record.Collect(m.dir)
	if err != nil {
		return err
	}
	m.text.WriteString(facts.Header(fmt.Sprintf("A store of %d instances", m.instances), "go run ./bench/million "+strings.Join(m.args, " ")))
	large := filepath.Join(m.dir, "large")
	if err := m.build(ctx, large, m.instances); err != nil {
		return err
	}
	// NB: before the large store gets events that the small one does not get.
	if m.small > 0 {
		if err := m.growth(ctx, large); err != nil {
			return err
		}
	}
	if err := m.starts(ctx, large); err != nil {
		return err
	}
	if err := m.queries(ctx, large); err != nil {
		return err
	}
	_, _ = io.WriteString(m.out, m.text.String())
	if m.record != "" {
		return os.WriteFile(m.record, []byte(m.text.String()), 0o644)
	}
	return nil
}

// build makes the store, or finds it.
func (m *measurement) build(ctx context.Context, dir string, count int) error {
	h, err := open(dir)
	if err != nil {
		return err
	}
	have, err := h.count(ctx)
	if err != nil || have == int64(count) {
		return errors.Join(err, h.Close())
	}
	if have != 0 {
		return errors.Join(fmt.Errorf("%s has %d instances, not %d: remove it or choose another folder", dir, have, count), h.Close())
	}
	begun := time.Now()
	err = h.fill(ctx, count, m.errs)
	elapsed := time.Since(begun)
	if err = errors.Join(err, h.Close()); err == nil {
		fmt.Fprintf(&m.text, "\n%d instances were made in %.0f s.\n", count, elapsed.Seconds())
	}
	return err
}

// starts measures opening: after a clean close, and after a kill under load.
func (m *measurement) starts(ctx context.Context, dir string) error {
	var clean, crashed []float64 // in ms
	for range m.rounds {
		h, err := open(dir)
		if err != nil {
			return err
		}
		clean = append(clean, ms(h.ready))
		if err := h.Close(); err != nil {
			return err
		}
		if err := m.kill(ctx, dir); err != nil {
			return err
		}
		if h, err = open(dir); err != nil {
			return err
		}
		crashed = append(crashed, ms(h.ready))
		if !h.Store.OpenedAfterCrash() {
			err = errors.New("the store was closed cleanly: nothing was killed")
		}
		if err := errors.Join(err, h.Close()); err != nil {
			return err
		}
	}
	fmt.Fprintf(&m.text, "\n## Start\n\nFrom opening the store to taking requests, least–median–most of %d:\n\n", m.rounds)
	m.text.WriteString("| Start | ms | goal |\n|---|---|---|\n")
	fmt.Fprintf(&m.text, "| after a clean close | %s | 1000 |\n| after kill -9 under load | %s | 2000 |\n", figures(clean, "%.1f"), figures(crashed, "%.1f"))
	return nil
}

// kill runs this program on the store and ends it in the middle of its work.
func (m *measurement) kill(ctx context.Context, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, self, killed, dir)
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	c.Stderr = m.errs
	if err := c.Start(); err != nil {
		return err
	}
	// It says a word when it has been working for a while.
	_, err = io.ReadFull(out, make([]byte, 1))
	_ = c.Process.Kill()
	_ = c.Wait() // it was killed: that is an error, and wanted
	if err != nil {
		return fmt.Errorf("the process to be killed ended early: %w", err)
	}
	return nil
}

// runUntilKilled sends events and says a word after a second.
func runUntilKilled(ctx context.Context, dir string, out io.Writer) error {
	h, err := open(dir)
	if err != nil {
		return err
	}
	ids, err := h.some(ctx, eventInstances)
	if err != nil {
		return err
	}
	if _, _, err := h.events(ctx, ids, time.Second); err != nil {
		return err
	}
	fmt.Fprintln(out)
	_, _, err = h.events(ctx, ids, time.Minute)
	return err
}
