// Package million builds a store with a million instances, below HTTP in this process, and measures what depends on
// their number: events beside a small store, starts, and queries with and without events (bench/README.md, "Many
// instances"). The workflow is an order with two declared indexes. A window is to be longer than some merges of
// flushed tables, which come every few seconds.
package million

import (
	"context"
	"fmt"
	"os"
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
