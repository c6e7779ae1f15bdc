// Package million builds a store with a million instances, below HTTP in this process, and measures what depends on
// their number: events beside a small store, starts, and queries with and without events (bench/README.md, "Many
// instances"). The workflow is an order with two declared indexes. A window is to be longer than some merges of
// flushed tables, which come every few seconds.
package million

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/bench/internal/harness"
	"troupe/bench/internal/service"
	"troupe/bench/load"
	"troupe/statemachine/data"
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

//go:embed order.yaml
var definition string

const workflowID = "order"

// inspectedEvery makes one instance in so many an inspected one: what the query
// by node looks for. One in three is paid.
const inspectedEvery = 10_000

var clerk = &identity.Principal{ID: "clerk", Roles: []string{"clerk"}, Privileges: []string{string(identity.Workflows)}}

type store struct {
	*service.Service
	// ready is how long it took from opening the store until it took requests.
	ready time.Duration
}

// open starts the service on a folder. Instances fall asleep as soon as they may, so
// that memory does not depend on how long filling took.
func open(dir string) (*store, error) {
	begun := time.Now()
	s, err := service.Open(dir, definition, workflow.Options{IdleAfter: time.Second})
	return &store{s, time.Since(begun)}, err
}

// public is svcPublic of the n-th instance: 100 orders a customer, due dates spread over a thousand days.
func public(n int) data.Value {
	return data.Value(fmt.Sprintf(
		`{"customer":"c-%06d","due":"%s","total":%d,"lines":[{"sku":"A-%03d","count":%d},{"sku":"B-%03d","count":1}],"note":"leave it at the door, please; the bell is broken"}`,
		n/100, day(n%1000), n%5000, n%250, 1+n%9, n%77))
}

func day(n int) string {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n).Format(time.DateOnly)
}

func (h *store) fill(ctx context.Context, count int, progress io.Writer) error {
	var done atomic.Int64
	return load.Each(ctx, 256, count, func(ctx context.Context, n int) error {
		if err := h.make(ctx, n); err != nil {
			return fmt.Errorf("instance %d: %w", n, err)
		}
		if made := done.Add(1); made%100_000 == 0 {
			fmt.Fprintf(progress, "%d instances\n", made)
		}
		return nil
	})
}

func (h *store) make(ctx context.Context, n int) error {
	reply, err := h.Create(ctx, &message.Create{Caller: clerk, WorkflowID: workflowID, Public: public(n)})
	if err != nil {
		return err
	}
	switch {
	case n%inspectedEvery == 0:
		return h.event(ctx, reply.InstanceID, "inspect")
	case n%3 == 0:
		return h.event(ctx, reply.InstanceID, "pay")
	}
	return nil
}

func (h *store) event(ctx context.Context, id, name string) error {
	_, err := h.Send(ctx, &message.Event{Caller: clerk, WorkflowID: workflowID, InstanceID: id, Name: name})
	return err
}

func (h *store) count(ctx context.Context) (int64, error) {
	end, err := h.Queries.Query(ctx, &query.Request{Caller: clerk, WorkflowID: workflowID, Limit: 1, Count: true}, func([]byte) error { return nil })
	if err != nil {
		return 0, err
	}
	return end.Count, nil
}

type measurement struct {
	*harness.Harness
	instances, small int
	rounds           int
	window           time.Duration

	text harness.Table // of the record
}

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
