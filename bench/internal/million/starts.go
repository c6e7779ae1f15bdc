package million

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"troupe/bench/internal/harness"
)

type measurement struct {
	*harness.Harness
	instances, small int
	rounds           int
	window           time.Duration

	text harness.Table // of the record
}

// killed is the command by which this program works on a folder until it is killed.
const killed = "until-killed"

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
