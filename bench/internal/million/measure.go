package million

import (
	"context"
	"fmt"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/record"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

const (
	eventInstances = 1000 // get the events
	senders        = 64
)

// events sends events that change the state, for a while after as long to warm up.
func (m *measurement) events(ctx context.Context, s *server, window time.Duration) (*load.Result, error) {
	return load.Run(ctx, load.Options{
		Addr: s.Addr, Token: s.token, PID: s.PID(), Scenario: m.scenario, Minimal: true,
		Connections: senders, Instances: eventInstances, WarmUp: window, Duration: window,
	})
}

func (m *measurement) growth(ctx context.Context, large *server) error {
	small, err := m.open(ctx, "small", m.small)
	if err != nil {
		return err
	}
	defer small.Stop()
	var rate, cost, p99 [2][]float64 // cost in µs of processor time an event, p99 in ms
	for round := range m.rounds {
		for k := range 2 {
			which := (round + k) % 2 // each goes first in turn
			r, err := m.events(ctx, []*server{small, large}[which], m.window)
			if err != nil {
				return err
			}
			if r.ErrorsTotal > 0 {
				return fmt.Errorf("events: %v", r.Errors)
			}
			rate[which], p99[which] = append(rate[which], r.OperationsPerSecond), append(p99[which], r.Latency.P99Ms)
			if r.ServerCPUMicrosPerOperation != nil {
				cost[which] = append(cost[which], *r.ServerCPUMicrosPerOperation)
			}
		}
	}
	m.text.Printf("\n## Growth\n\nEvents per second, %d connections, %s after %s to warm up, to %d new instances, least–median–most of %d; ratios within a round. ",
		senders, m.window, m.window, eventInstances, m.rounds)
	m.text.WriteString("CPU is that of the server, in µs an event.\n\n")
	m.text.Head("Store", "events/s", "ratio", "goal", "p99 ms", "ratio", "goal", "CPU", "ratio")
	m.text.Row(fmt.Sprint(m.small, " instances"), harness.Spread(rate[0], "%.0f"), "", "", harness.Spread(p99[0], "%.2f"), "", "", harness.Spread(cost[0], "%.1f"), "")
	ratio := func(of [2][]float64) string { return harness.Spread(harness.Ratios(of[1], of[0]), "%.2f") }
	m.text.Row(fmt.Sprint(m.instances, " instances"), harness.Spread(rate[1], "%.0f"), ratio(rate), "0.9",
		harness.Spread(p99[1], "%.2f"), ratio(p99), "1.1", harness.Spread(cost[1], "%.1f"), ratio(cost))
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
			_, _ = m.events(loaded, s, time.Minute) // it is broken off
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

var queries = []struct {
	name, filter, sort string
	limit              int // 0: all that match, at most 1,000
	count              bool
	goal               string
	rate               bool // the figure is records a second, not milliseconds
}{
	{name: "by node, all that match", filter: `{"states.nodeId":"inspected"}`, goal: "5 ms"},
	{name: "by node and machine", filter: `{"states":{"$elemMatch":{"stateMachineId":"order","nodeId":"inspected"}}}`},
	{name: "by a declared index, 100 that match", filter: `{"svcPublic.customer":"c-000042"}`},
	{name: "by two conditions with an index each", filter: `{"svcPublic.customer":"c-000042","states.nodeId":"open"}`},
	{name: "a day's orders by range", filter: `{"svcPublic.due":{"$gte":"2026-02-01","$lt":"2026-02-02"}}`},
	{name: "first page of a node with a third of all", filter: `{"states.nodeId":"paid"}`, limit: 50},
	{name: "first page, sorted by a declared index", sort: "svcPublic.due", limit: 50},
	{name: "first page, sorted downwards, filtered", filter: `{"states.nodeId":"paid"}`, sort: "-svcPublic.due", limit: 50},
	{name: "count of all", limit: 1, count: true},
	{name: "full scan, a condition without an index, none match", filter: `{"svcPublic.total":-1}`, goal: "300,000 records/s", rate: true},
	{name: "full scan through an array, few match", filter: `{"svcPublic.lines.sku":"A-007","svcPublic.total":{"$lt":10}}`, rate: true},
}

const pageMax = 1000

func (m *measurement) queries(ctx context.Context, s *server) error {
	m.text.Printf("\n## Queries\n\nOver HTTP, one at a time, least–median–most of %d. Read is index rows and records.\n\n", m.rounds)
	m.text.Head("Query", "given", "plan", "read", "ms", "records/s", "goal")
	for _, q := range queries {
		r := client.ListRequest{Filter: q.filter, Sort: q.sort, Limit: q.limit, Count: q.count}
		if q.limit == 0 {
			r.Limit = pageMax
		}
		var elapsed []float64 // in ms
		var page *client.Page[client.Instance]
		var how api.Explain
		for range m.rounds + 1 { // the first fills the caches and does not count
			var took time.Duration
			var err error
			if page, how, took, err = s.ask(ctx, r); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			elapsed = append(elapsed, harness.Milliseconds(took))
		}
		elapsed = elapsed[1:]
		plan, rate := *how.Plan, ""
		if how.Index != nil {
			plan += " " + *how.Index
		}
		if q.rate {
			rate = fmt.Sprintf("%.0f", 1000*float64(*how.RecordsRead)/record.SpreadOf(elapsed).Middle)
		}
		m.text.Row(q.name, len(page.Items), plan, fmt.Sprintf("%d + %d", *how.KeysRead, *how.RecordsRead), harness.Spread(elapsed, "%.1f"), rate, q.goal)
	}
	return nil
}
