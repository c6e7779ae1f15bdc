package compare

import (
	"fmt"
	"slices"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/record"
)

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
		"CPU is user and system time of the server with the processes that it started, and of the load generator, for each answered request. "+
		"Memory is theirs, too (PSS). "+
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
			cost := of(in(samples, name, c), func(s *sample) float64 { return s.shares[i] * s.serverCost() })
			row = append(row, fmt.Sprintf("%.1f", cost.Middle))
		}
		b.Row(row)
	}
}

// lost is what was not answered as it should be, over all rounds.
func lost(results []*load.Result) string {
	var shed, missed, failed int64
	for _, r := range results {
		shed, missed, failed = shed+r.Refused, missed+r.Missed, failed+r.Failed()
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
			results, memory = append(results, s.result), max(memory, s.memory)
		}
		b.Row(name, of(mine, (*sample).perSecond).Text("%.0f"), of(mine, (*sample).p50).Text("%.2f"), of(mine, (*sample).p99).Text("%.2f"),
			of(mine, (*sample).serverCost).Text("%.1f"), fmt.Sprintf("%.0f", of(mine, (*sample).clientCost).Middle), memory>>20,
			ratios(mine, base, (*sample).perSecond).Text("%.2f"), ratios(mine, base, (*sample).serverCost).Text("%.2f"),
			ratios(mine, base, (*sample).p99).Text("%.2f"), lost(results))
	}
}
