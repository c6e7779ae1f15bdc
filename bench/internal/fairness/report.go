package fairness

import (
	"fmt"
	"strings"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
)

// worst is the kind whose p99 grew the most beside the baseline, and how many times.
// A kind without an answer has no p99: its errors speak.
func (p *phase) worst(base *phase) (name string, times float64) {
	for _, k := range kinds {
		if t := ratio(p.Kinds[k.name].Summary, base.Kinds[k.name].Summary); t > times {
			name, times = k.name, t
		}
	}
	return name, times
}

func ratio(o, base load.Summary) float64 {
	if base.P99 == 0 {
		return 0
	}
	return float64(o.P99) / float64(base.P99)
}

// sums are how many requests were answered, and how many were not.
func (p *phase) sums() (answered, failed int64) {
	for _, o := range p.Kinds {
		answered += o.Count
		failed += o.Failed()
	}
	return answered, failed
}

func (p *phase) line(base *phase) string {
	answered, failed := p.sums()
	name, times := p.worst(base)
	return fmt.Sprintf("%5d answered, %4d errors, p99 %5.1f times, worst %5.1f (%s), recovered in %.0f ms", answered, failed, ratio(p.All, base.All), times, name, p.Recovered.Milliseconds())
}

// report is one table of all attacks, and one for each, in Markdown. The first phase is the baseline.
func report(phases []*phase) string {
	base := phases[0]
	var b harness.Table
	b.Printf("\n## The polite user under each attack\n\n")
	b.Head("Attack", "answered", "errors", "p99 of all beside nobody", "worst p99 beside nobody", "of", "recovered ms", "server cores", "peak MB", "the hostile one got")
	for _, p := range phases {
		answered, failed := p.sums()
		name, times := p.worst(base)
		b.Printf("| %s | %d | %d | %.1f | %.1f | %s | %.0f | %.2f | %d | %s |\n", p.Attack, answered, failed, ratio(p.All, base.All), times, name,
			p.Recovered.Milliseconds(), p.Cores, p.PeakBytes>>20, harness.Counts(p.Hostile))
	}
	for _, p := range phases {
		p.table(&b, base)
	}
	b.WriteString("\nLatencies count from when a request was due, and are those of answers with 200; everything else is an error, " +
		"after " + answerWaitMax.String() + " in any case. Recovered: when, after the attack, a new connection and an event were answered again.\n")
	return b.String()
}

func (p *phase) table(b *harness.Table, base *phase) {
	b.Printf("\n### %s: %s\n\n", p.Attack, p.What)
	if p.Died != "" {
		b.Printf("**The server ended:** %s\n\n", strings.ReplaceAll(p.Died, "\n", " "))
	}
	b.Head("Request", "answered", "p50 ms", "p99 ms", "max ms", "p99 beside nobody", "errors")
	for _, k := range kinds {
		o := p.Kinds[k.name]
		b.Printf("| %s | %d | %.2f | %.2f | %.2f | %.1f | %s |\n", k.name, o.Count, o.P50.Milliseconds(), o.P99.Milliseconds(),
			o.Max.Milliseconds(), ratio(o.Summary, base.Kinds[k.name].Summary), harness.Counts(o.Errors))
	}
}
