package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/record"
)

// measure puts the load on each target in turn. Every round begins with another
// target, so that none always follows the same.
func (p *plan) measure(ctx context.Context, all []*target) ([]*sample, error) {
	var samples []*sample
	for _, c := range p.cells {
		all := slices.DeleteFunc(slices.Clone(all), func(t *target) bool { return !t.takes(c) })
		for round := range p.rounds {
			for i := range all {
				t := all[(i+round)%len(all)]
				for _, asked := range p.variants(round) {
					s, err := p.measureOne(ctx, t, c, asked)
					if err != nil {
						return nil, fmt.Errorf("%s, %s, round %d: %w\n%s", t.name, c, round+1, err, t.LastWords())
					}
					s.round = round + 1
					samples = append(samples, s)
					fmt.Fprintf(p.Errs, "%s, round %d of %d: %-8s %7.0f/s, p99 %6.2f ms, %5.1f µs%s\n",
						c, s.round, p.rounds, t.name, perSecond(s), p99(s), serverCost(s), s.asked())
				}
			}
		}
	}
	return samples, nil
}

func (s *sample) asked() string {
	if s.queries == nil {
		return ""
	}
	return fmt.Sprintf("; %d queries, p50 %.1f ms, p99 %.1f ms", s.queries.All.Count, s.queries.Latency.P50Ms, s.queries.Latency.P99Ms)
}

// measureOne is one run: new instances, warm-up, window, with queries beside it or without. Processor times are read at
// the edges of the window, to a hundredth of a second, so windows below a second say little about them.
func (p *plan) measureOne(ctx context.Context, t *target, c cell, asked bool) (*sample, error) {
	s := &sample{target: t.name, cell: c}
	o := p.load
	o.Addr, o.PID, o.Token, o.Connections, o.Minimal, o.Batch = t.Addr, t.PID(), t.token, c.connections, c.minimal, c.batch
	var profiling sync.WaitGroup
	var fault error
	if p.profile {
		o.Began = func() {
			profiling.Go(func() { s.shares, fault = profileTarget(ctx, t, o.Duration) })
		}
	}
	loads := []load.Options{o}
	if asked {
		loads = append(loads, p.asking(t, o))
	}
	results, err := load.RunTogether(ctx, loads, func() {})
	profiling.Wait()
	if s.Result = results[0]; asked {
		s.queries = results[1]
	}
	return s, cmp.Or(err, fault)
}

// parked is how many instances stand in the node that is asked for. Events do not touch them.
const parked = 100

// parkedNode is where they stand, and movingNode one that all others enter and leave.
const (
	parkedNode = "approved"
	movingNode = "review"
)

// queryScenario is what the client of the queries does: its instances go to the parked
// node when they are prepared, and it lists those in a node.
const queryScenario = `definition: leave-request.yaml
users: {bench: [employee]}
query: {filter: {states.nodeId: %s}, limit: 100}
walk:
  draft: [{event: submit, data: {days: 3}}]
  review: [{event: approve}]
`

func (p *plan) readQueries() (err error) {
	if p.queries > 0 {
		p.scenario, err = load.ParseScenario("queries", fmt.Appendf(nil, queryScenario, p.node), func(string) ([]byte, error) { return []byte(load.Definition), nil })
	}
	return err
}

// asking returns the queries beside a load: an open loop for as long as that, over a
// connection of its own. The first one makes the instances that all find.
func (p *plan) asking(t *target, beside load.Options) load.Options {
	o := load.Options{
		Addr: t.Addr, Token: t.token, Scenario: p.scenario, Connections: 1, Instances: 1,
		Mix: load.Mix{load.Query: 1}, Rate: p.queries, WarmUp: beside.WarmUp, Duration: beside.Duration,
	}
	if !t.parked {
		t.parked, o.Instances, o.Preload = true, parked, 2
	}
	return o
}

// variants are the runs of one target in one round: without queries and, if there
// shall be any, with. The first changes from round to round.
func (p *plan) variants(round int) []bool {
	switch {
	case p.queries == 0:
		return []bool{false}
	case round%2 == 0:
		return []bool{false, true}
	}
	return []bool{true, false}
}

// besideTable writes what happened to the queries of one cell, and of the events beside them.
func (p *plan) besideTable(b *harness.Table, c cell, samples []*sample) {
	b.Printf("\n### Beside %g queries/s for what is in the node %s\n\n", p.queries, p.node)
	b.Head("Target", "events/s with", "ratio to without", "server CPU ratio", "queries", "p50 ms", "p99 ms", "most ms", "shed, missed, errors")
	for _, name := range p.targets {
		var with []*sample
		var queries []*load.Result
		var count int64
		for _, s := range samples {
			if s.target == name && s.cell == c && s.queries != nil {
				with, queries, count = append(with, s), append(queries, s.queries), count+s.queries.All.Count
			}
		}
		without := in(samples, name, c)
		figure := func(get func(*load.Latency) float64) string {
			return of(with, func(s *sample) float64 { return get(&s.queries.Latency) }).Text("%.1f")
		}
		b.Row(name, of(with, perSecond).Text("%.0f"), ratios(with, without, perSecond).Text("%.2f"),
			ratios(with, without, serverCost).Text("%.2f"), count,
			figure(func(l *load.Latency) float64 { return l.P50Ms }), figure(func(l *load.Latency) float64 { return l.P99Ms }),
			figure(func(l *load.Latency) float64 { return l.MaxMs }), lost(queries))
	}
}

func of(samples []*sample, figure func(*sample) float64) record.Spread {
	var values []float64
	for _, s := range samples {
		values = append(values, figure(s))
	}
	return record.SpreadOf(values)
}

// ratios divides a figure of each sample by that of the base in the same round.
func ratios(samples, base []*sample, figure func(*sample) float64) record.Spread {
	var values []float64
	for _, s := range samples {
		i := slices.IndexFunc(base, func(b *sample) bool { return b.round == s.round })
		if i >= 0 && figure(base[i]) > 0 {
			values = append(values, figure(s)/figure(base[i]))
		}
	}
	return record.SpreadOf(values)
}

func (p *plan) describe() {
	o := p.load
	loop := "closed loop"
	if o.Rate > 0 {
		loop = fmt.Sprintf("open loop of %g requests/s", o.Rate)
	}
	p.Title = "Comparison"
	p.Rows = [][2]string{{"Load", fmt.Sprintf(
		"%s, %s, %d new instances a run with %d events before, %d rounds of %s after %s",
		loop, o.Mix, o.Instances, o.Preload, p.rounds, o.Duration, o.WarmUp)}}
}

func (p *plan) report(samples []*sample) string {
	var b harness.Table
	for _, c := range p.cells {
		p.table(&b, c, samples)
		if p.profile {
			p.partsTable(&b, c, samples)
		}
		if p.queries > 0 {
			p.besideTable(&b, c, samples)
		}
	}
	b.Printf("\nFigures are least–median–most of %d rounds. Ratios are to %s in the same round. "+
		"CPU is user and system time of the server and of the load generator, for each answered request. "+
		"Of batches, ratios are to single events of %s, and CPU is for each event.\n", p.rounds, p.base(), troupeTarget)
	return b.String()
}

// base is the target that the ratios are to: the durable ceiling, or the first.
func (p *plan) base() string {
	if slices.Contains(p.targets, durableCeiling) {
		return durableCeiling
	}
	return p.targets[0]
}

// in returns the samples of a target in a cell, without those beside queries.
func in(samples []*sample, target string, c cell) (out []*sample) {
	for _, s := range samples {
		if s.target == target && s.cell == c && s.queries == nil {
			out = append(out, s)
		}
	}
	return out
}

// partsTable writes what the processor time of a request, or of an event of a batch, goes
// to: the part's share of the profile times that time, the middle one of the rounds.
func (p *plan) partsTable(b *harness.Table, c cell, samples []*sample) {
	what := "request"
	if c.batch > 0 {
		what = "event"
	}
	b.Printf("\n")
	b.Head(append([]string{"Server CPU µs of one " + what}, p.targets...)...)
	for i := range parts {
		row := []string{parts[i].name}
		for _, name := range p.targets {
			cost := of(in(samples, name, c), func(s *sample) float64 { return s.shares[i] * serverCost(s) })
			row = append(row, fmt.Sprintf("%.1f", cost.Middle))
		}
		b.Row(row)
	}
}

// lost is what was not answered as it should be, over all rounds.
func lost(results []*load.Result) string {
	var shed, missed, failed int64
	for _, r := range results {
		shed, missed, failed = shed+r.Shed, missed+r.Missed, failed+r.ErrorsTotal
	}
	return fmt.Sprintf("%d, %d, %d", shed, missed, failed)
}

// table writes the rows of one cell. Memory is the most: a server stays up for all cells, so that it grows
// from round to round.
func (p *plan) table(b *harness.Table, c cell, samples []*sample) {
	base, unit := in(samples, p.base(), c), "requests"
	if c.batch > 0 {
		base, unit = in(samples, troupeTarget, cell{c.connections, c.minimal, 0}), "events"
	}
	b.Printf("\n## %s\n\n", c)
	b.Head("Target", unit+"/s", "p50 ms", "p99 ms", "server CPU µs", "generator CPU µs", "memory MB", unit+"/s ratio", "CPU ratio", "p99 ratio", "shed, missed, errors")
	for _, name := range p.targets {
		mine := in(samples, name, c)
		if len(mine) == 0 {
			continue
		}
		var results []*load.Result
		var memory int64
		for _, s := range mine {
			results = append(results, s.Result)
			if s.ServerResidentBytes != nil {
				memory = max(memory, *s.ServerResidentBytes)
			}
		}
		b.Row(name, of(mine, perSecond).Text("%.0f"), of(mine, p50).Text("%.2f"), of(mine, p99).Text("%.2f"),
			of(mine, serverCost).Text("%.1f"), fmt.Sprintf("%.0f", of(mine, clientCost).Middle), memory>>20,
			ratios(mine, base, perSecond).Text("%.2f"), ratios(mine, base, serverCost).Text("%.2f"),
			ratios(mine, base, p99).Text("%.2f"), lost(results))
	}
}
