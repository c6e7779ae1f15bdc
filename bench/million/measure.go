package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"troupe/actors/query"
)

const (
	// eventInstances is how many instances get the events, and senders how many
	// goroutines send them.
	eventInstances = 10_000
	senders        = 64
)

// asked is one query that is measured.
type asked struct {
	name string
	req  query.Request
	goal string
	// rate: the figure is records a second, not milliseconds.
	rate bool
}

// list is what is measured. The first is measured again beside events.
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

// queries measures the list on a quiet store, and then beside events.
func (m *measurement) queries(ctx context.Context, dir string) (err error) {
	h, err := open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	fmt.Fprintf(&m.text, "\n## Queries\n\nBelow HTTP, one at a time, least–median–most of %d. Read is index rows and records.\n\n", m.rounds)
	m.text.WriteString("| Query | given | plan | read | ms | records/s | goal |\n|---|---|---|---|---|---|---|\n")
	for _, a := range m.list() {
		var elapsed []time.Duration
		var end *query.End
		var given int
		for range m.rounds + 1 { // the first fills the caches and does not count
			var t time.Duration
			if given, t, end, err = h.ask(ctx, a.req); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			elapsed = append(elapsed, t)
		}
		elapsed = elapsed[1:]
		rate := ""
		if a.rate {
			rate = fmt.Sprintf("%.0f", float64(end.Explain.RecordsRead)/median(elapsed).Seconds())
		}
		plan := end.Explain.Plan
		if end.Explain.Index != nil {
			plan += " " + *end.Explain.Index
		}
		fmt.Fprintf(&m.text, "| %s | %d | %s | %d + %d | %s | %s | %s |\n",
			a.name, given, plan, end.Explain.KeysRead, end.Explain.RecordsRead, spread(elapsed), rate, a.goal)
	}
	return m.beside(ctx, h)
}

// ask runs one query and says how many instances it gave and how long it took.
func (h *harness) ask(ctx context.Context, req query.Request) (given int, elapsed time.Duration, end *query.End, err error) {
	req.Caller, req.WorkflowID, req.Explain = clerk, workflowID, true
	begun := time.Now()
	end, err = h.Query(ctx, &req, func([]byte) error { given++; return nil })
	return given, time.Since(begun), end, err
}

// beside measures events without and with a full scan that runs all the time,
// in turn, and the query by node while events arrive.
func (m *measurement) beside(ctx context.Context, h *harness) error {
	ids, err := h.some(ctx, eventInstances)
	if err != nil {
		return err
	}
	var alone, loaded, both []float64
	var byNode []time.Duration
	scan := m.list()[9].req
	for range m.rounds {
		for _, with := range []string{"nothing", "scan", "query"} {
			stop := func() error { return nil }
			switch with {
			case "scan":
				stop = h.again(ctx, scan, nil)
			case "query":
				stop = h.again(ctx, m.list()[0].req, &byNode)
			}
			rate, err := h.events(ctx, ids, m.window)
			if err = errors.Join(err, stop()); err != nil {
				return err
			}
			switch with {
			case "nothing":
				alone = append(alone, rate)
			case "scan":
				loaded = append(loaded, rate)
			case "query":
				both = append(both, rate)
			}
		}
	}
	fmt.Fprintf(&m.text, "\n## Beside events\n\n%d senders, %d cores, %s each, in turn, least–median–most of %d; ratios within a round.\n\n",
		senders, runtime.GOMAXPROCS(0), m.window, m.rounds)
	m.text.WriteString("| Events/s | | ratio | goal |\n|---|---|---|---|\n")
	fmt.Fprintf(&m.text, "| alone | %s | | |\n", rates(alone))
	fmt.Fprintf(&m.text, "| while one full scan after the other runs | %s | %s | 0.9 |\n", rates(loaded), ratios(loaded, alone))
	fmt.Fprintf(&m.text, "| while the query by node runs again and again | %s | %s | |\n", rates(both), ratios(both, alone))
	slices.Sort(byNode)
	fmt.Fprintf(&m.text, "\nThe query by node beside events: p50 %.1f ms, p99 %.1f ms, %d queries.\n",
		ms(byNode[len(byNode)/2]), ms(byNode[len(byNode)*99/100]), len(byNode))
	return nil
}

// again runs a query over and over until the returned function is called.
func (h *harness) again(ctx context.Context, req query.Request, elapsed *[]time.Duration) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for {
			_, t, _, err := h.ask(ctx, req)
			if ctx.Err() != nil {
				err = nil
			}
			if err != nil || ctx.Err() != nil {
				ended <- err
				return
			}
			if elapsed != nil {
				*elapsed = append(*elapsed, t)
			}
		}
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

// some returns ids of instances that are open: the first ones.
func (h *harness) some(ctx context.Context, n int) ([]string, error) {
	var ids []string
	errEnough := errors.New("enough")
	_, err := h.Query(ctx, &query.Request{Caller: clerk, WorkflowID: workflowID, Filter: `{"states.nodeId":"open"}`}, func(item []byte) error {
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
	if errors.Is(err, errEnough) {
		err = nil
	}
	return ids, err
}

// events sends events that change the state for a while and returns how many a
// second were acknowledged.
func (h *harness) events(ctx context.Context, ids []string, window time.Duration) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var sent atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for s := range senders {
		all.Go(func() {
			for n := s; ctx.Err() == nil && time.Since(begun) < window; n += senders {
				id := ids[n%len(ids)]
				// Each goes there and back, so that the store stays as it is but
				// for its histories.
				for _, name := range []string{"pay", "reopen"} {
					if err := h.event(context.WithoutCancel(ctx), id, name); err != nil {
						cancel(fmt.Errorf("event %s to %s: %w", name, id, err))
						return
					}
					sent.Add(1)
				}
			}
		})
	}
	all.Wait()
	return float64(sent.Load()) / time.Since(begun).Seconds(), context.Cause(ctx)
}

// growth measures events in the large store beside a small one.
func (m *measurement) growth(ctx context.Context, large string) error {
	small := filepath.Join(m.dir, "small")
	if err := m.build(ctx, small, m.small); err != nil {
		return err
	}
	var rate [2][]float64
	for round := range m.rounds {
		for k := range 2 {
			which := (round + k) % 2 // each goes first in turn
			h, err := open([]string{small, large}[which])
			if err != nil {
				return err
			}
			ids, err := h.some(ctx, min(eventInstances, m.small/2))
			var r float64
			if err == nil {
				if _, err = h.events(ctx, ids, m.window/2); err == nil { // to warm up
					r, err = h.events(ctx, ids, m.window)
				}
			}
			if err = errors.Join(err, h.close()); err != nil {
				return err
			}
			rate[which] = append(rate[which], r)
		}
	}
	fmt.Fprintf(&m.text, "\n## Growth\n\nEvents a second, %d senders, to the same number of instances, least–median–most of %d; ratios within a round.\n\n", senders, m.rounds)
	m.text.WriteString("| Store | events/s | ratio | goal |\n|---|---|---|---|\n")
	fmt.Fprintf(&m.text, "| %d instances | %s | | |\n| %d instances | %s | %s | 0.9 |\n",
		m.small, rates(rate[0]), m.instances, rates(rate[1]), ratios(rate[1], rate[0]))
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// spread is least–median–most in milliseconds.
func spread(all []time.Duration) string {
	return fmt.Sprintf("%.1f–%.1f–%.1f", ms(slices.Min(all)), ms(median(all)), ms(slices.Max(all)))
}

func rates(all []float64) string {
	all = slices.Sorted(slices.Values(all))
	return fmt.Sprintf("%.0f–%.0f–%.0f", all[0], all[len(all)/2], all[len(all)-1])
}

// ratios divides round by round.
func ratios(over, under []float64) string {
	all := make([]float64, len(over))
	for i := range over {
		all[i] = over[i] / under[i]
	}
	slices.Sort(all)
	return fmt.Sprintf("%.2f–%.2f–%.2f", all[0], all[len(all)/2], all[len(all)-1])
}
