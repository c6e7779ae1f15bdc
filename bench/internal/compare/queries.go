package compare

import (
	"fmt"
	"os"
	"path/filepath"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
)

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

func (p *plan) readQueries(dir string) error {
	if p.queries == 0 {
		return nil
	}
	file := filepath.Join(dir, "queries.yaml")
	for name, text := range map[string]string{file: fmt.Sprintf(queryScenario, p.node), filepath.Join(dir, "leave-request.yaml"): load.Definition} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	scenario, err := load.ReadScenario(file)
	p.scenario = scenario
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

// besideTable writes what became of the queries of one cell, and of the events beside them.
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
		figure := func(get func(*load.Summary) load.Duration) string {
			return of(with, func(s *sample) float64 { return get(&s.queries.All).Milliseconds() }).Text("%.1f")
		}
		b.Row(name, of(with, (*sample).perSecond).Text("%.0f"), ratios(with, without, (*sample).perSecond).Text("%.2f"),
			ratios(with, without, (*sample).serverCost).Text("%.2f"), count,
			figure(func(s *load.Summary) load.Duration { return s.P50 }), figure(func(s *load.Summary) load.Duration { return s.P99 }),
			figure(func(s *load.Summary) load.Duration { return s.Max }), lost(queries))
	}
}
