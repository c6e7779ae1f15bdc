// Package byitself measures what instances do by themselves, in a server that is a process of its own, and ends with an
// error when something is missing, out of order or there twice (bench/README.md, "What instances do by themselves").
package byitself

import (
	"context"

	"troupe/bench/internal/harness"
)

// Commands are the measurement.
var Commands = []harness.Command{{Name: "byitself", About: "timers, deliveries, children and tasks", Run: run}}

func run(ctx context.Context, h *harness.Harness) error {
	m := &measurement{Harness: h}
	h.Flags.IntVar(&m.pending, "pending", 1_000_000, "timers that are not due; 0 leaves that out")
	h.Flags.IntVar(&m.storm, "storm", 100_000, "timers that are due at once; 0 leaves that out")
	h.Flags.IntVar(&m.rows, "rows", 100_000, "deliveries; 0 leaves that out")
	h.Flags.IntVar(&m.children, "children", 20_000, "instances with a child each; 0 leaves that out")
	h.Flags.IntVar(&m.tasks, "tasks", 1_000_000, "open tasks; 0 leaves that out")
	h.Flags.IntVar(&m.kills, "kills", 5, "how often the server is killed while deliveries leave, and while there are children")
	if err := h.Parse(""); err != nil {
		return err
	}
	h.Title = "What instances do by themselves"
	return h.Measure(ctx, m.run)
}

func (m *measurement) run(ctx context.Context) (string, error) {
	if err := m.Build(ctx); err != nil {
		return "", err
	}
	for _, part := range []struct {
		count int
		run   func(context.Context) error
	}{{m.pending, m.runPending}, {m.storm, m.runStorm}, {m.rows, m.runOutbox}, {m.children, m.runChildren}, {m.tasks, m.runTasks}} {
		if part.count > 0 {
			if err := part.run(ctx); err != nil {
				return "", err
			}
		}
	}
	return m.text.String(), nil
}
