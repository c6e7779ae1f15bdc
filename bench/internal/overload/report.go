package overload

import (
	"errors"
	"fmt"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/report"
)

// result is what came of a phase: an open loop of due requests per second.
type result struct {
	*load.Result
	peak float64 // the most useful answers per second of the round
}

// usefulMax is the time after which nobody waits for an answer any more.
const usefulMax = time.Second

func (r *result) useful() float64 {
	return r.All.PerSecond * float64(r.Latencies.AtMost(usefulMax)) / float64(max(1, r.All.Count))
}

// peakBytes is the most memory that the server had.
func (r *result) peakBytes() (most int64) {
	for _, i := range r.Series {
		most = max(most, report.Known(i.ServerResidentBytes))
	}
	return most
}

// comparePeak notes the most useful answers of the round, those of the closed loop that found the capacity included. A
// load below the capacity can have no more than was due.
func comparePeak(all []*result, peak float64) {
	for _, r := range all {
		peak = max(peak, r.useful())
	}
	for _, r := range all {
		r.peak = peak
	}
}

var columns = []struct {
	heading, format string
	of              func(r *result) float64
}{
	{"due /s", "%.0f", func(r *result) float64 { return r.RatePerSecond }},
	{"offered /s", "%.0f", func(r *result) float64 { return r.All.PerSecond + r.Refused.PerSecond }},
	{"useful /s", "%.0f", (*result).useful},
	{"of the peak", "%.2f", func(r *result) float64 { return r.useful() / r.peak }},
	{"p50 ms", "%.0f", func(r *result) float64 { return r.Latency.P50Ms }},
	{"p99 ms", "%.0f", func(r *result) float64 { return r.Latency.P99Ms }},
	{"refused /s", "%.0f", func(r *result) float64 { return r.Refused.PerSecond }},
	{"refused p50 ms", "%.0f", func(r *result) float64 { return r.Refused.Latency.P50Ms }},
	{"refused p99 ms", "%.0f", func(r *result) float64 { return r.Refused.Latency.P99Ms }},
	{"server cores", "%.2f", func(r *result) float64 { return report.Known(r.ServerCPUCores) }},
	{"peak MB", "%.0f", func(r *result) float64 { return float64(r.peakBytes() >> 20) }},
}

// report writes the spread of all rounds. Figures with errors are not recorded.
func (m *measurement) report(rounds [][]*result) (text string, err error) {
	var b harness.Table
	heads := []string{"Load"}
	for _, c := range columns {
		heads = append(heads, c.heading)
	}
	b.WriteString("\n")
	b.Head(heads...)
	for i, p := range m.loads {
		row := []string{p.name}
		for _, c := range columns {
			var values []float64
			for _, r := range rounds {
				values = append(values, c.of(r[i]))
			}
			row = append(row, harness.Spread(values, c.format))
		}
		b.Row(row)
	}
	b.WriteString("\nEach figure is the least, the middle and the most of all rounds.\n\n")
	for i, p := range m.loads {
		b.WriteString("- " + p.name + ": " + p.what)
		for n, r := range rounds {
			if r[i].ErrorsTotal > 0 {
				b.Printf(". **Errors:** %s", harness.Counts(r[i].Errors))
				err = errors.Join(err, fmt.Errorf("load %s, round %d: %s", p.name, n+1, harness.Counts(r[i].Errors)))
			}
		}
		b.WriteString("\n")
	}
	b.Printf("\nDue is the rate of the open loop; offered is what found a free connection, because nothing is sent while all are busy. "+
		"Useful are right answers in %s, counted from when they were due; of the peak: beside the most of the round, the closed loop that found the capacity included. "+
		"p50 and p99 are those of right answers.\n", usefulMax)
	return b.String(), err
}
