// Package million builds a store with a million instances, below HTTP in this process, and measures what depends on
// their number: events beside a small store, starts, and queries with and without events (bench/README.md, "Many
// instances"). The workflow is an order with two declared indexes. A window is to be longer than some merges of
// flushed tables, which come every few seconds.
package million

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"troupe/bench/internal/harness"
)

// Commands are the measurement, and what the program starts itself as: one that opens a folder, sends
// events, and never closes it, for the start after a kill.
var Commands = []harness.Command{
	{Name: "million", About: "a store of a million instances", Run: run},
	{Name: killed, Run: runUntilKilled},
}

const killed = "until-killed"

// measurement is one run of the command.
type measurement struct {
	*harness.Harness
	instances, small int
	rounds           int
	window           time.Duration

	text harness.Table // of the record
}

func run(ctx context.Context, h *harness.Harness) error {
	m := &measurement{Harness: h}
	h.Flags.IntVar(&m.instances, "instances", 1_000_000, "how many instances the large store has")
	h.Flags.IntVar(&m.small, "small", 10_000, "how many the small store has that events are compared with; 0 leaves that out")
	h.Flags.IntVar(&m.rounds, "rounds", 5, "how often each figure is measured")
	h.Flags.DurationVar(&m.window, "window", 5*time.Second, "how long events are measured each time")
	h.Flags.StringVar(&h.Dir, "dir", "", "where the store is made and kept; default: a temporary folder that is removed")
	if err := h.Parse(""); err != nil {
		return err
	}
	if m.instances < 1 || m.rounds < 1 {
		return harness.Wrong("-instances and -rounds are at least 1")
	}
	if h.Dir != "" {
		if err := os.MkdirAll(h.Dir, 0o700); err != nil {
			return err
		}
	}
	h.Title = fmt.Sprintf("A store of %d instances", m.instances)
	return h.Measure(ctx, m.run)
}

func (m *measurement) run(ctx context.Context) (string, error) {
	large := filepath.Join(m.Dir, "large")
	if err := m.build(ctx, large, m.instances); err != nil {
		return "", err
	}
	// NB: before the large store gets events that the small one does not get.
	if m.small > 0 {
		if err := m.growth(ctx, large); err != nil {
			return "", err
		}
	}
	if err := m.starts(ctx, large); err != nil {
		return "", err
	}
	err := m.queries(ctx, large)
	return m.text.String(), err
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
	err = h.fill(ctx, count, m.Errs)
	elapsed := time.Since(begun)
	if err = errors.Join(err, h.Close()); err == nil {
		m.text.Printf("\n%d instances were made in %.0f s.\n", count, elapsed.Seconds())
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
		clean = append(clean, harness.Milliseconds(h.ready))
		if err := h.Close(); err != nil {
			return err
		}
		if err := m.kill(ctx, dir); err != nil {
			return err
		}
		if h, err = open(dir); err != nil {
			return err
		}
		crashed = append(crashed, harness.Milliseconds(h.ready))
		if !h.Store.OpenedAfterCrash() {
			err = errors.New("the store was closed cleanly: nothing was killed")
		}
		if err := errors.Join(err, h.Close()); err != nil {
			return err
		}
	}
	m.text.Printf("\n## Start\n\nFrom opening the store to taking requests, least–median–most of %d:\n\n", m.rounds)
	m.text.Head("Start", "ms", "goal")
	m.text.Printf("| after a clean close | %s | 1000 |\n| after kill -9 under load | %s | 2000 |\n", harness.Spread(clean, "%.1f"), harness.Spread(crashed, "%.1f"))
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
	c.Stderr = m.Errs
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
func runUntilKilled(ctx context.Context, command *harness.Harness) error {
	h, err := open(command.Args[0])
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
	fmt.Fprintln(command.Out)
	_, _, err = h.events(ctx, ids, time.Minute)
	return err
}
