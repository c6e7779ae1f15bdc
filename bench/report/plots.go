package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"troupe/bench/load"
	"troupe/bench/record"
)

// overTime is a plot of the window; its ticks end with the window, and not with the next round number.
func (r *Run) overTime(title string, lines ...line) *plot {
	end := 1.0
	if n := len(r.Series); n > 0 {
		end = r.Series[n-1].EndedSeconds
	}
	x := linear("seconds", end, 8)
	x.to = end
	x.ticks = slices.DeleteFunc(x.ticks, func(t tick) bool { return t.at > end })
	return &plot{title: title, x: x, lines: lines}
}

// line has a point for each interval.
func (r *Run) line(name string, colour int, of func(i *load.Interval) float64) line {
	l := line{name: name, colour: colour}
	for k := range r.Series {
		i := &r.Series[k]
		l.xs = append(l.xs, (i.BeganSeconds+i.EndedSeconds)/2)
		l.ys = append(l.ys, of(i))
	}
	return l
}

// area is a line without the interval behind the window, in which nothing was sent any more.
func (r *Run) area(name string, colour int, window float64, of func(i *load.Interval) float64) line {
	l := r.line(name, colour, func(i *load.Interval) float64 {
		if i.BeganSeconds >= window {
			return math.NaN()
		}
		return of(i)
	})
	l.area = true
	return l
}

// silent are the times without a right answer: intervals without one, and the longest gap when it is at least as long as
// an interval. Those that touch are one, so that none is drawn twice.
func (r *Run) silent(window float64) (all []span) {
	shortest := math.Inf(1)
	var spans []span
	for k := range r.Series {
		i := &r.Series[k]
		if i.BeganSeconds >= window { // a late start tells nothing of gaps
			continue
		}
		shortest = math.Min(shortest, i.EndedSeconds-i.BeganSeconds)
		if i.Requests == 0 {
			spans = append(spans, span{i.BeganSeconds, i.EndedSeconds})
		}
	}
	if r.LongestGapSeconds >= shortest {
		spans = append(spans, span{r.LongestGapAtSeconds, r.LongestGapAtSeconds + r.LongestGapSeconds})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range spans {
		if n := len(all); n > 0 && s.from <= all[n-1].to {
			all[n-1].to = max(all[n-1].to, s.to)
			continue
		}
		all = append(all, s)
	}
	return all
}

func (r *Run) latencyPlot(window float64) *plot {
	p := r.overTime("Latency percentiles over time")
	for _, percentile := range []struct {
		name   string
		colour int
		of     func(l *load.Latency) float64
	}{
		{"p50", 1, func(l *load.Latency) float64 { return l.P50Ms }},
		{"p90", 3, func(l *load.Latency) float64 { return l.P90Ms }},
		{"p99", 2, func(l *load.Latency) float64 { return l.P99Ms }},
		{"max", 4, func(l *load.Latency) float64 { return l.MaxMs }},
	} {
		l := r.line(percentile.name, percentile.colour, func(i *load.Interval) float64 {
			if i.Requests == 0 {
				return math.NaN()
			}
			return percentile.of(&i.Latency)
		})
		l.dashed = l.name == "max"
		p.lines = append(p.lines, l)
	}
	p.y, p.shaded = latencyAxis(p.lines), r.silent(window)
	return p
}

func (r *Run) throughputPlot(window float64) *plot {
	p := r.overTime("Throughput over time", r.area("answered", 1, window, func(i *load.Interval) float64 { return i.OperationsPerSecond }))
	if r.RatePerSecond > 0 {
		p.lines = append(p.lines, line{
			name: "asked for", colour: 5, dashed: true, xs: []float64{0, math.Min(window, p.x.to)}, ys: []float64{r.RatePerSecond, r.RatePerSecond},
		})
	}
	if r.ErrorsTotal+r.Shed > 0 {
		p.lines = append(p.lines, r.line("errors and refusals", 2, func(i *load.Interval) float64 {
			return float64(i.Errors+i.Shed) / math.Max(i.EndedSeconds-i.BeganSeconds, 1e-9)
		}))
	}
	p.y, p.shaded = valueAxis("operations per second", p.lines), r.silent(window)
	return p
}

// resourcePlots are processor and memory of the server; none when they are unknown.
func (r *Run) resourcePlots(window float64) (cpu, memory *plot) {
	isKnown := func(i *load.Interval) bool { return i.ServerCPUCores != nil && i.ServerResidentBytes != nil }
	if !slices.ContainsFunc(r.Series, func(i load.Interval) bool { return isKnown(&i) }) {
		return nil, nil
	}
	one := func(title, label string, colour int, of func(i *load.Interval) float64) *plot {
		p := r.overTime(title, r.area("", colour, window, func(i *load.Interval) float64 {
			if !isKnown(i) {
				return math.NaN()
			}
			return of(i)
		}))
		p.y = valueAxis(label, p.lines)
		return p
	}
	cpu = one("Processor use of the server over time", "cores", 3, func(i *load.Interval) float64 { return *i.ServerCPUCores })
	memory = one("Memory of the server over time", "MiB resident", 5, func(i *load.Interval) float64 { return float64(*i.ServerResidentBytes) / (1 << 20) })
	return cpu, memory
}

// distributionsMax is how many runs one plot of distributions shows: those of the first round.
const distributionsMax = 8

// distributionPlot has the percentiles of runs on an axis on which each nine more takes the same room; nil without any.
func (r *Report) distributionPlot() *plot {
	p, most := &plot{title: "Distribution of the latencies"}, 1.0
	for _, run := range r.Runs {
		if len(run.Percentiles) == 0 || run.Round > 1 || len(p.lines) == distributionsMax {
			continue
		}
		l := line{colour: len(p.lines)%colours + 1, dashed: len(p.lines) >= colours}
		if len(r.Runs) > 1 {
			l.name = strings.TrimSuffix(run.Name(r), ", round 1")
		}
		nines := 0.0
		for _, at := range run.Percentiles {
			if at.Percentile < 100 {
				nines = -math.Log10(1 - at.Percentile/100)
			} else if len(l.xs) > 0 { // the last point
				nines += 0.1
			}
			l.xs, l.ys = append(l.xs, nines), append(l.ys, at.Ms)
			most = math.Max(most, nines)
		}
		p.lines = append(p.lines, l)
	}
	if len(p.lines) == 0 {
		return nil
	}
	p.x = axis{label: "percentile", to: most, ticks: []tick{{0, "0"}, {-math.Log10(0.5), "50"}, {1, "90"}, {2, "99"}}}
	for k := 3; float64(k) <= most; k++ {
		p.x.ticks = append(p.x.ticks, tick{float64(k), "99." + strings.Repeat("9", k-2)})
	}
	p.x.ticks = slices.DeleteFunc(p.x.ticks, func(t tick) bool { return t.at > most })
	p.y = latencyAxis(p.lines)
	return p
}

// ratePlot shows how latencies grow with the rate, as medians of the rounds; nil unless there are several rates.
func (r *Report) ratePlot() *plot {
	var rates []float64
	for _, run := range r.Runs {
		rates = append(rates, run.RatePerSecond)
	}
	slices.Sort(rates)
	if rates = slices.Compact(rates); len(rates) < 2 {
		return nil
	}
	p := &plot{title: "Latency by rate", x: linear("requests per second asked for", rates[len(rates)-1], 6)}
	for n, t := range r.Targets {
		p50, p99 := line{name: "p50", colour: n%colours + 1, dashed: true}, line{name: "p99", colour: n%colours + 1}
		for _, rate := range rates {
			var rounds50, rounds99 []float64
			for _, run := range r.Runs {
				if run.Target == t.Name && run.RatePerSecond == rate && run.Latency.Known() {
					rounds50, rounds99 = append(rounds50, run.Latency.P50Ms), append(rounds99, run.Latency.P99Ms)
				}
			}
			if len(rounds50) > 0 {
				p50.xs, p50.ys = append(p50.xs, rate), append(p50.ys, record.SpreadOf(rounds50).Middle)
				p99.xs, p99.ys = append(p99.xs, rate), append(p99.ys, record.SpreadOf(rounds99).Middle)
			}
		}
		if len(r.Targets) > 1 {
			p50.name, p99.name = t.Name+" p50", t.Name+" p99"
		}
		p.lines = append(p.lines, p50, p99)
	}
	p.y = latencyAxis(p.lines)
	return p
}

func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
