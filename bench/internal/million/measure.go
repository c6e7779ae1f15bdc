package million

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/bench/record"
	"troupe/bench/report"
	"troupe/bench/trial"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

const (
	eventInstances = 1000 // get the events
	senders        = 64
)

// load is events that change the state, for a while after as long to warm up.
func (m *measurement) load(window time.Duration) load.Options {
	return load.Options{
		Scenario: m.scenario, Minimal: true, Connections: senders, Instances: eventInstances, WarmUp: window, Duration: window,
	}
}

func (m *measurement) growth(ctx context.Context, large *server) error {
	small, err := m.open(ctx, "small", m.small)
	if err != nil {
		return err
	}
	defer small.Stop()
	plan := trial.Plan{Load: m.load(m.window), Rounds: m.rounds}
	for i, s := range []*server{small, large} {
		start := func(context.Context, string) (*process.Process, error) { return s.Process, nil } // it runs already
		plan.Targets = append(plan.Targets, trial.Target{Name: []string{"small", "large"}[i], Start: start, Token: s.token})
	}
	rep, err := plan.Run(ctx)
	if err != nil {
		return err
	}
	for _, r := range rep.Runs {
		if r.ErrorsTotal > 0 {
			return fmt.Errorf("events: %v", r.Errors)
		}
	}
	m.text.Printf("\n## Growth\n\nEvents per second, %d connections, %s after %s to warm up, to %d new instances, least–median–most of %d; ratios within a round. ",
		senders, m.window, m.window, eventInstances, m.rounds)
	m.text.WriteString("CPU is that of the server, in µs an event.\n\n")
	m.text.Head("Figure", fmt.Sprint(m.small, " instances"), fmt.Sprint(m.instances, " instances"), "ratio", "goal")
	less, more := rep.Of("small"), rep.Of("large")
	for _, f := range []struct {
		report.Figure
		name, format, goal string
	}{{report.PerSecond, "events/s", "%.0f", "0.9"}, {report.P99, "p99 ms", "%.2f", "1.1"}, {report.ServerCPU, "CPU", "%.1f", ""}} {
		m.text.Row(f.name, harness.Figure(less, f.Of, f.format), harness.Figure(more, f.Of, f.format),
			harness.Spread(f.Ratios(more, less), "%.2f"), f.goal)
	}
	return nil
}

func (m *measurement) starts(ctx context.Context, s *server) error {
	var clean, crashed []float64 // in ms
	for range m.rounds {
		s.Stop()
		ms, err := s.restart(ctx)
		if err != nil {
			return err
		}
		clean = append(clean, ms)
		loaded, end := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			o := m.load(time.Minute)
			o.Addr, o.Token = s.Addr, s.token
			_, _ = load.Run(loaded, o) // it is broken off
			close(ended)
		}()
		load.Sleep(ctx, time.Second)
		s.Kill()
		end()
		<-ended
		if ms, err = s.restart(ctx); err != nil {
			return err
		}
		crashed = append(crashed, ms)
	}
	m.text.Printf("\n## Start\n\nFrom starting the program to taking requests, least–median–most of %d:\n\n", m.rounds)
	m.text.Head("Start", "ms", "goal")
	m.text.Row("after a clean stop", harness.Spread(clean, "%.1f"), 1000)
	m.text.Row("after kill -9 under load", harness.Spread(crashed, "%.1f"), 2000)
	return nil
}

// queries are those that goals are about. A scan reads every record.
var queries = []struct {
	name, filter, goal string
	scan               bool
}{
	{name: "by node, all that match", filter: `{"states.nodeId":"inspected"}`, goal: "5 ms"},
	{name: "by a declared index, 100 that match", filter: `{"svcPublic.customer":"c-000042"}`},
	{name: "full scan, a condition without an index, none match", filter: `{"svcPublic.total":-1}`, goal: "300,000 records/s", scan: true},
}

const pageMax = 1000

func (m *measurement) queries(ctx context.Context, s *server) error {
	m.text.Printf("\n## Queries\n\nOver HTTP, one at a time, least–median–most of %d. Read is index rows and records.\n\n", m.rounds)
	m.text.Head("Query", "given", "plan", "read", "ms", "records/s", "goal")
	for _, q := range queries {
		var elapsed []float64 // in ms
		var page *client.Page[client.Instance]
		for range m.rounds + 1 { // the first fills the caches and does not count
			begun := time.Now()
			var err error
			page, err = s.client.Instances(ctx, client.ListRequest{WorkflowID: "order", Filter: q.filter, Limit: pageMax, Explain: true})
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			elapsed = append(elapsed, harness.Milliseconds(time.Since(begun)))
		}
		elapsed = elapsed[1:]
		var how api.Explain
		if err := json.Unmarshal(page.Explain, &how); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		plan, rate := *how.Plan, ""
		if how.Index != nil {
			plan += " " + *how.Index
		}
		if q.scan {
			rate = fmt.Sprintf("%.0f", 1000*float64(*how.RecordsRead)/record.SpreadOf(elapsed).Middle)
		}
		m.text.Row(q.name, len(page.Items), plan, fmt.Sprintf("%d + %d", *how.KeysRead, *how.RecordsRead), harness.Spread(elapsed, "%.1f"), rate, q.goal)
	}
	return nil
}
