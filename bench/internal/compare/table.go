package compare

import (
	"fmt"
	"maps"
	"slices"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/report"
)

type figure struct {
	name, format string
	of           func(*report.Run) float64
}

// figures are those of a run. With windows below a second processor times say little.
var figures = []figure{
	{"p50 ms", "%.2f", report.P50.Of},
	{"p99 ms", "%.2f", report.P99.Of},
	{"server CPU µs", "%.1f", report.ServerCPU.Of},
	{"generator CPU µs", "%.0f", func(r *report.Run) float64 { return report.Known(r.GeneratorCPUMicrosPerOperation) }},
	{"memory MB", "%.0f", func(r *report.Run) float64 { return float64(report.Known(r.ServerResidentBytes) >> 20) }},
}

// base is the target that the ratios are to: the durable ceiling, or the first.
func (p *plan) base() string {
	if slices.Contains(p.targets, durableCeiling) {
		return durableCeiling
	}
	return p.targets[0]
}

func (p *plan) text(reports map[cell]*report.Report) string {
	var b harness.Table
	for _, c := range p.cells {
		base, unit := reports[c].Of(p.base()), "requests"
		if c.batch > 0 {
			base, unit = reports[cell{c.connections, c.minimal, 0}].Of(troupeTarget), "events"
		}
		b.Printf("\n## %s\n\n", c)
		heads := []string{"Target", unit + "/s"}
		for _, f := range figures {
			heads = append(heads, f.name)
		}
		b.Head(append(heads, unit+"/s ratio", "CPU ratio", "p99 ratio", "shed, missed, errors")...)
		for _, t := range reports[c].Targets {
			mine := reports[c].Of(t.Name)
			row := []string{t.Name, harness.Figure(mine, report.PerSecond.Of, "%.0f")}
			for _, f := range figures {
				row = append(row, harness.Figure(mine, f.of, f.format))
			}
			for _, f := range []report.Figure{report.PerSecond, report.ServerCPU, report.P99} {
				row = append(row, harness.Spread(f.Ratios(mine, base), "%.2f"))
			}
			b.Row(row, lost(mine))
		}
		kindsTable(&b, reports[c])
	}
	b.Printf("\nFigures are least–median–most of %d rounds. Ratios are to %s in the same round. "+
		"CPU is user and system time of the server and of the load generator, for each answered request. "+
		"Of batches, ratios are to single events of %s, and CPU is for each event.\n", p.rounds, p.base(), troupeTarget)
	return b.String()
}

// kindsTable writes the latencies of each kind, when there are several.
func kindsTable(b *harness.Table, rep *report.Report) {
	kinds := slices.Sorted(maps.Keys(rep.Runs[0].Kinds))
	if len(kinds) < 2 {
		return
	}
	b.Printf("\n")
	b.Head("Target", "kind", "requests", "p50 ms", "p99 ms", "most ms")
	for _, t := range rep.Targets {
		for _, kind := range kinds {
			of := func(format string, get func(s load.Summary) float64) string {
				return harness.Figure(rep.Of(t.Name), func(r *report.Run) float64 { return get(r.Kinds[kind]) }, format)
			}
			b.Row(t.Name, kind, of("%.0f", func(s load.Summary) float64 { return float64(s.Count) }),
				of("%.2f", func(s load.Summary) float64 { return s.Latency.P50Ms }),
				of("%.2f", func(s load.Summary) float64 { return s.Latency.P99Ms }),
				of("%.2f", func(s load.Summary) float64 { return s.Latency.MaxMs }))
		}
	}
}

// lost is what was not answered as it should be, over all rounds.
func lost(runs []*report.Run) string {
	var shed, missed, failed int64
	for _, r := range runs {
		shed, missed, failed = shed+r.Shed, missed+r.Missed, failed+r.ErrorsTotal
	}
	return fmt.Sprintf("%d, %d, %d", shed, missed, failed)
}
