package overload

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
)

// result is what came of a phase.
type result struct {
	*phase
	// loads are what the load generator got, the first from an open loop of due requests per second; polite is the polite
	// user's part.
	loads  []*load.Result
	polite *load.Result
	due    float64
	peak   float64          // the most useful answers per second of the round
	health float64          // the p99 of the slowest probe, in ms
	failed map[string]int64 // probes without a right answer
	// recovered is how long after the phase everything was quick again.
	recovered time.Duration
	peakBytes int64 // of the server's memory
}

// usefulMax is the time after which nobody waits for an answer any more.
const usefulMax = time.Second

func usefulOf(r *load.Result) float64 {
	return r.All.PerSecond * float64(r.Latencies.AtMost(usefulMax)) / float64(max(1, r.All.Count))
}

func offeredOf(r *load.Result) float64 { return r.All.PerSecond + r.Refused.PerSecond }

func (r *result) sum(of func(*load.Result) float64) (sum float64) {
	for _, l := range r.loads {
		sum += of(l)
	}
	return sum
}

func (r *result) most(of func(*load.Latency) float64) (most float64) {
	for _, l := range r.loads {
		most = max(most, of(&l.Refused.Latency))
	}
	return most
}

func (r *result) useful() float64 { return r.sum(usefulOf) }

// comparePeak notes the most useful answers that any phase to as many instances had, the closed loop included. A load
// below the capacity can have no more than was due.
func comparePeak(all []*result, capacity map[bool]float64) {
	peak := maps.Clone(capacity)
	for _, r := range all {
		peak[r.hot] = max(peak[r.hot], r.useful())
	}
	for _, r := range all {
		r.peak = peak[r.hot]
	}
}

type column struct {
	heading, format string
	of              func(r *result) float64
}

var tables = []struct {
	title   string
	columns []column
}{
	{"The load", []column{
		{"due /s", "%.0f", func(r *result) float64 {
			if !r.storm {
				return r.due
			}
			return r.due + offeredOf(r.loads[1]) // a closed loop: as many as are answered
		}},
		{"offered /s", "%.0f", func(r *result) float64 { return r.sum(offeredOf) }},
		{"useful /s", "%.0f", (*result).useful},
		{"of the peak", "%.2f", func(r *result) float64 { return r.useful() / r.peak }},
		{"p50 ms", "%.0f", func(r *result) float64 { return r.loads[0].Latency.P50Ms }},
		{"p99 ms", "%.0f", func(r *result) float64 { return r.loads[0].Latency.P99Ms }},
		{"refused /s", "%.0f", func(r *result) float64 { return r.sum(func(l *load.Result) float64 { return l.Refused.PerSecond }) }},
		{"refused p50 ms", "%.0f", func(r *result) float64 { return r.most(func(l *load.Latency) float64 { return l.P50Ms }) }},
		{"refused p99 ms", "%.0f", func(r *result) float64 { return r.most(func(l *load.Latency) float64 { return l.P99Ms }) }},
	}},
	{"Beside it, and after it", []column{
		{"polite user", "%.2f", func(r *result) float64 { return usefulOf(r.polite) / politeRate }},
		{"polite p99 ms", "%.0f", func(r *result) float64 { return r.polite.Latency.P99Ms }},
		{"health p99 ms", "%.0f", func(r *result) float64 { return r.health }},
		{"server cores", "%.2f", func(r *result) float64 {
			if cores := r.loads[0].ServerCPUCores; cores != nil {
				return *cores
			}
			return 0
		}},
		{"peak MB", "%.0f", func(r *result) float64 { return float64(r.peakBytes >> 20) }},
		{"recovered ms", "%.0f", func(r *result) float64 { return harness.Milliseconds(r.recovered) }},
	}},
}

// faults are the errors of a phase; refusals are none.
func (r *result) faults() map[string]int64 {
	all := maps.Clone(r.failed)
	for _, l := range append(slices.Clone(r.loads), r.polite) {
		for text, n := range l.Errors {
			all[text] += n
		}
	}
	return all
}

// line says what happened while the run goes on.
func (r *result) line() string {
	text := fmt.Sprintf("%-6s", r.name)
	for _, t := range tables {
		for _, c := range t.columns {
			if of := c.of(r); !math.IsNaN(of) && !math.IsInf(of, 0) { // the peak is not known yet
				text += fmt.Sprintf(" %s "+c.format+";", c.heading, of)
			}
		}
	}
	return text + " " + harness.Counts(r.faults())
}

// report writes the spread of all rounds. Figures with errors are not recorded.
func (m *measurement) report(rounds [][]*result) (text string, err error) {
	var b harness.Table
	for _, t := range tables {
		heads := []string{"Load"}
		for _, c := range t.columns {
			heads = append(heads, c.heading)
		}
		b.Printf("\n## %s\n\n", t.title)
		b.Head(heads...)
		for i, p := range m.loads {
			row := []string{p.name}
			for _, c := range t.columns {
				var values []float64
				for _, r := range rounds {
					values = append(values, c.of(r[i]))
				}
				row = append(row, harness.Spread(values, c.format))
			}
			b.Row(row)
		}
	}
	b.WriteString("\nEach figure is the least, the middle and the most of all rounds.\n\n")
	for i, p := range m.loads {
		b.WriteString("- " + p.name + ": " + p.what)
		for n, r := range rounds {
			if faults := r[i].faults(); len(faults) > 0 {
				b.Printf(". **Errors:** %s", harness.Counts(faults))
				err = errors.Join(err, fmt.Errorf("load %s, round %d: %s", p.name, n+1, harness.Counts(faults)))
			}
		}
		b.WriteString("\n")
	}
	b.Printf("\nDue is the rate of the open loop; offered is what found a free connection, because nothing is sent while all are busy. "+
		"Useful are right answers in %[1]s, counted from when they were due; of the peak: beside the most of the round, the closed loop that found the capacity included. "+
		"p50 and p99 are those of right answers. The polite user sends %[2]d events per second: the part that was answered in %[1]s. "+
		"Health is the slowest of /livez on new connections, /readyz, and /metrics of the operations listener. "+
		"Recovered: when, after the load, a create and a new connection took at most %[3]s each.\n",
		usefulMax, politeRate, quickMax)
	return b.String(), err
}
