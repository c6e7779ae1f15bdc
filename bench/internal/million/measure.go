package million

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"troupe/actors/query"
	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/bench/record"
)

const (
	// eventInstances is how many instances get the events, and senders how many goroutines send them.
	eventInstances = 10_000
	senders        = 64
)

type asked struct {
	name string
	req  query.Request
	goal string
	// rate: the figure is records a second, not milliseconds.
	rate bool
}

func (m *measurement) list() []asked {
	page := func(filter, sort string) query.Request {
		return query.Request{Filter: filter, Sort: sort, Limit: 50}
	}
	return []asked{
		{name: "by node, all that match", req: query.Request{Filter: `{"states.nodeId":"inspected"}`}, goal: "5 ms"},
		{name: "by node and machine", req: query.Request{Filter: `{"states":{"$elemMatch":{"stateMachineId":"order","nodeId":"inspected"}}}`}},
		{name: "by a declared index, 100 that match", req: query.Request{Filter: `{"svcPublic.customer":"c-000042"}`}},
		{name: "by two conditions with an index each", req: query.Request{Filter: `{"svcPublic.customer":"c-000042","states.nodeId":"open"}`}},
		{name: "a day's orders by range", req: query.Request{Filter: `{"svcPublic.due":{"$gte":"2026-02-01","$lt":"2026-02-02"}}`}},
		{name: "first page of a node with a third of all", req: page(`{"states.nodeId":"paid"}`, "")},
		{name: "first page, sorted by a declared index", req: page("", "svcPublic.due")},
		{name: "first page, sorted downwards, filtered", req: page(`{"states.nodeId":"paid"}`, "-svcPublic.due")},
		{name: "count of all", req: query.Request{Limit: 1, Count: true}},
		{name: "full scan, a condition without an index, none match", req: query.Request{Filter: `{"svcPublic.total":-1}`}, goal: "300,000 records/s", rate: true},
		{name: "full scan through an array, few match", req: query.Request{Filter: `{"svcPublic.lines.sku":"A-007","svcPublic.total":{"$lt":10}}`}, rate: true},
	}
}

func (m *measurement) queries(ctx context.Context, dir string) (err error) {
	h, err := open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	m.text.Printf("\n## Queries\n\nBelow HTTP, one at a time, least–median–most of %d. Read is index rows and records.\n\n", m.rounds)
	m.text.Head("Query", "given", "plan", "read", "ms", "records/s", "goal")
	for _, a := range m.list() {
		var elapsed []float64 // in ms
		var end *query.End
		var given int
		for range m.rounds + 1 { // the first fills the caches and does not count
			var t time.Duration
			if given, t, end, err = h.ask(ctx, a.req); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			elapsed = append(elapsed, harness.Milliseconds(t))
		}
		elapsed = elapsed[1:]
		rate := ""
		if a.rate {
			rate = fmt.Sprintf("%.0f", 1000*float64(end.Explain.RecordsRead)/record.SpreadOf(elapsed).Middle)
		}
		plan := end.Explain.Plan
		if end.Explain.Index != nil {
			plan += " " + *end.Explain.Index
		}
		m.text.Printf("| %s | %d | %s | %d + %d | %s | %s | %s |\n",
			a.name, given, plan, end.Explain.KeysRead, end.Explain.RecordsRead, harness.Spread(elapsed, "%.1f"), rate, a.goal)
	}
	return nil
}

func (h *store) ask(ctx context.Context, req query.Request) (given int, elapsed time.Duration, end *query.End, err error) {
	req.Caller, req.WorkflowID, req.Explain = clerk, workflowID, true
	begun := time.Now()
	end, err = h.Queries.Query(ctx, &req, func([]byte) error { given++; return nil })
	return given, time.Since(begun), end, err
}

// some returns ids of instances that are open: the first ones.
func (h *store) some(ctx context.Context, n int) ([]string, error) {
	var ids []string
	errEnough := errors.New("enough")
	_, err := h.Queries.Query(ctx, &query.Request{Caller: clerk, WorkflowID: workflowID, Filter: `{"states.nodeId":"open"}`}, func(item []byte) error {
		var entry struct {
			ID string `json:"_id"`
		}
		if err := json.Unmarshal(item, &entry); err != nil {
			return err
		}
		if ids = append(ids, entry.ID); len(ids) == n {
			return errEnough
		}
		return nil
	})
	if err == nil && len(ids) == 0 {
		err = errors.New("no instance is open, so nobody can get events: make more than two")
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return ids, err
}

// events sends events that change the state for a while and returns how many a
// second were acknowledged, and the p99 of their latency in ms.
func (h *store) events(ctx context.Context, ids []string, window time.Duration) (rate, p99 float64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	latencies := make([]load.Histogram, senders)
	var all sync.WaitGroup
	begun := time.Now()
	for s := range senders {
		all.Go(func() {
			for n := s; ctx.Err() == nil && time.Since(begun) < window; n += senders {
				id := ids[n%len(ids)]
				// Each goes there and back, so that the store stays as it is but for its histories.
				for _, name := range []string{"pay", "reopen"} {
					asked := time.Now()
					if err := h.event(context.WithoutCancel(ctx), id, name); err != nil {
						cancel(fmt.Errorf("event %s to %s: %w", name, id, err))
						return
					}
					latencies[s].Record(time.Since(asked))
				}
			}
		})
	}
	all.Wait()
	var sum load.Histogram
	for s := range latencies {
		sum.Merge(&latencies[s])
	}
	of := sum.Summary(time.Since(begun))
	return of.PerSecond, of.Latency.P99Ms, context.Cause(ctx)
}

func (m *measurement) growth(ctx context.Context, large string) error {
	small := filepath.Join(m.Dir, "small")
	if err := m.build(ctx, small, m.small); err != nil {
		return err
	}
	var rate, cost, p99 [2][]float64 // cost in µs of processor time an event, p99 in ms
	for round := range m.rounds {
		for k := range 2 {
			which := (round + k) % 2 // each goes first in turn
			r, c, l, err := m.eventsIn(ctx, []string{small, large}[which])
			if err != nil {
				return err
			}
			rate[which], cost[which], p99[which] = append(rate[which], r), append(cost[which], c), append(p99[which], l)
		}
	}
	m.text.Printf("\n## Growth\n\nEvents per second, %d senders, %s after %s to warm up, to the same number of instances, least–median–most of %d; ratios within a round. ",
		senders, m.window, m.window, m.rounds)
	m.text.WriteString("CPU is that of the process, senders included, in µs an event.\n\n")
	m.text.Head("Store", "events/s", "ratio", "goal", "p99 ms", "ratio", "goal", "CPU", "ratio")
	m.text.Printf("| %d instances | %s | | | %s | | | %s | |\n", m.small, harness.Spread(rate[0], "%.0f"), harness.Spread(p99[0], "%.2f"), harness.Spread(cost[0], "%.1f"))
	m.text.Printf("| %d instances | %s | %s | 0.9 | %s | %s | 1.1 | %s | %s |\n", m.instances, harness.Spread(rate[1], "%.0f"), harness.Spread(harness.Ratios(rate[1], rate[0]), "%.2f"),
		harness.Spread(p99[1], "%.2f"), harness.Spread(harness.Ratios(p99[1], p99[0]), "%.2f"), harness.Spread(cost[1], "%.1f"), harness.Spread(harness.Ratios(cost[1], cost[0]), "%.2f"))
	return nil
}

// eventsIn opens a store, warms it up, and measures events per second, the processor
// time of one in µs and the p99 of their latency in ms.
func (m *measurement) eventsIn(ctx context.Context, dir string) (rate, cost, p99 float64, err error) {
	h, err := open(dir)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	ids, err := h.some(ctx, min(eventInstances, m.small/2))
	if err != nil {
		return 0, 0, 0, err
	}
	if _, _, err := h.events(ctx, ids, m.window); err != nil {
		return 0, 0, 0, err
	}
	before, err := process.ProcessorTime(os.Getpid())
	if err != nil {
		return 0, 0, 0, err
	}
	begun := time.Now()
	if rate, p99, err = h.events(ctx, ids, m.window); err != nil {
		return 0, 0, 0, err
	}
	elapsed := time.Since(begun)
	after, err := process.ProcessorTime(os.Getpid())
	return rate, float64((after - before).Microseconds()) / (rate * elapsed.Seconds()), p99, err
}
