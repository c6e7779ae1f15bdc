package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"troupe/bench/load"
	"troupe/bench/record"
)

func (r *Run) timeAxis() axis {
	end := 1.0
	if n := len(r.Series); n > 0 {
		end = r.Series[n-1].EndedSeconds
	}
	a := linear("seconds", 0, end, 8)
	a.to = end // not up to the next tick
	for len(a.ticks) > 0 && a.ticks[len(a.ticks)-1].at > end {
		a.ticks = a.ticks[:len(a.ticks)-1]
	}
	return a
}

func (r *Run) overTime(name string, colour int, of func(i *load.Interval) float64) line {
	l := line{name: name, colour: colour}
	for k := range r.Series {
		i := &r.Series[k]
		l.xs = append(l.xs, (i.BeganSeconds+i.EndedSeconds)/2)
		l.ys = append(l.ys, of(i))
	}
	return l
}

// answered is a latency of an interval in which something was answered.
func answered(of func(l *load.Latency) float64) func(i *load.Interval) float64 {
	return func(i *load.Interval) float64 {
		if i.Requests == 0 {
			return math.NaN()
		}
		return of(&i.Latency)
	}
}

// silent are the times without a right answer: intervals without one, and the longest gap
// when it is at least as long as an interval.
func (r *Run) silent(window float64) (spans []span) {
	shortest := math.Inf(1)
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
	return joined(spans)
}

// joined makes one of spans that touch, so that none is drawn twice.
func joined(spans []span) (all []span) {
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

func (r *Run) latencyPlot(window float64) plot {
	lines := []line{
		r.overTime("p50", 1, answered(func(l *load.Latency) float64 { return l.P50Ms })),
		r.overTime("p90", 3, answered(func(l *load.Latency) float64 { return l.P90Ms })),
		r.overTime("p99", 2, answered(func(l *load.Latency) float64 { return l.P99Ms })),
		r.overTime("max", 4, answered(func(l *load.Latency) float64 { return l.MaxMs })),
	}
	lines[3].dashed = true
	return plot{title: "Latency percentiles over time", x: r.timeAxis(), y: latencyAxis(lines), lines: lines, shaded: r.silent(window)}
}

// inWindow leaves out an interval behind the window, in which nothing was sent any more.
func inWindow(window float64, of func(i *load.Interval) float64) func(i *load.Interval) float64 {
	return func(i *load.Interval) float64 {
		if i.BeganSeconds >= window {
			return math.NaN()
		}
		return of(i)
	}
}

func (r *Run) throughputPlot(window float64) plot {
	done := r.overTime("answered", 1, inWindow(window, func(i *load.Interval) float64 { return i.OperationsPerSecond }))
	done.area = true
	lines := []line{done}
	most := 0.0
	for _, v := range done.ys {
		if v > most { // NB: not NaN
			most = v
		}
	}
	x := r.timeAxis()
	if r.RatePerSecond > 0 {
		lines = append(lines, line{name: "asked for", colour: 5, dashed: true, xs: []float64{0, math.Min(window, x.to)}, ys: []float64{r.RatePerSecond, r.RatePerSecond}})
		most = math.Max(most, r.RatePerSecond)
	}
	if r.ErrorsTotal+r.Shed > 0 {
		failed := r.overTime("errors and refusals", 2, func(i *load.Interval) float64 {
			return float64(i.Errors+i.Shed) / math.Max(i.EndedSeconds-i.BeganSeconds, 1e-9)
		})
		for _, v := range failed.ys {
			most = math.Max(most, v)
		}
		lines = append(lines, failed)
	}
	return plot{title: "Throughput over time", x: x, y: linear("operations per second", 0, most, 5), lines: lines, shaded: r.silent(window)}
}

// resourcePlots are processor and memory of the server; none when they are unknown.
func (r *Run) resourcePlots(window float64) (cpu, memory *plot) {
	known := false
	for k := range r.Series {
		known = known || r.Series[k].ServerCPUCores != nil && r.Series[k].ServerResidentBytes != nil
	}
	if !known {
		return nil, nil
	}
	one := func(title, label string, colour int, of func(i *load.Interval) float64) *plot {
		l := r.overTime("", colour, inWindow(window, func(i *load.Interval) float64 {
			if i.ServerCPUCores == nil || i.ServerResidentBytes == nil {
				return math.NaN()
			}
			return of(i)
		}))
		l.area = true
		most := 0.0
		for _, v := range l.ys {
			if v > most {
				most = v
			}
		}
		return &plot{title: title, x: r.timeAxis(), y: linear(label, 0, most, 5), lines: []line{l}}
	}
	cpu = one("Processor use of the server over time", "cores", 3, func(i *load.Interval) float64 { return *i.ServerCPUCores })
	memory = one("Memory of the server over time", "MiB resident", 5, func(i *load.Interval) float64 { return float64(*i.ServerResidentBytes) / (1 << 20) })
	return cpu, memory
}

// distributionPlot has the percentiles of runs on an axis on which each nine more takes the same room.
func distributionPlot(runs []*Run, name func(*Run) string) plot {
	var lines []line
	most := 1.0
	for n, r := range runs {
		l := line{name: name(r), colour: n%colours + 1, dashed: n >= colours}
		for _, p := range r.Percentiles {
			nines := float64(len(l.xs)) // of the last point, which is 100 %
			if p.Percentile < 100 {
				nines = -math.Log10(1 - p.Percentile/100)
			} else if len(l.xs) > 0 {
				nines = l.xs[len(l.xs)-1] + 0.1
			}
			l.xs, l.ys = append(l.xs, nines), append(l.ys, p.Ms)
			most = math.Max(most, nines)
		}
		lines = append(lines, l)
	}
	x := axis{label: "percentile", to: most, ticks: []tick{{0, "0"}, {-math.Log10(0.5), "50"}, {1, "90"}}}
	for k := 2; float64(k) <= most; k++ {
		text := "99"
		if k > 2 {
			text += "." + strings.Repeat("9", k-2)
		}
		x.ticks = append(x.ticks, tick{float64(k), text})
	}
	return plot{title: "Distribution of the latencies", x: x, y: latencyAxis(lines), lines: lines}
}

// ratePlot shows how latencies grow with the rate, as medians of the rounds; nil unless there are several rates.
func (r *Report) ratePlot() *plot {
	type column struct {
		name   string
		dashed bool
		of     func(l *load.Latency) float64
	}
	rates := map[float64]bool{}
	most := 0.0
	for _, run := range r.Runs {
		rates[run.RatePerSecond] = true
		most = math.Max(most, run.RatePerSecond)
	}
	if len(rates) < 2 {
		return nil
	}
	p := &plot{title: "Latency by rate", x: linear("requests per second asked for", 0, most, 6)}
	for n, t := range r.Targets {
		for _, c := range []column{{"p50", true, func(l *load.Latency) float64 { return l.P50Ms }}, {"p99", false, func(l *load.Latency) float64 { return l.P99Ms }}} {
			l := line{name: c.name, colour: n%colours + 1, dashed: c.dashed}
			if len(r.Targets) > 1 {
				l.name = t.Name + " " + c.name
			}
			for _, rate := range slices.Sorted(maps.Keys(rates)) {
				var rounds []float64
				for _, run := range r.Runs {
					if run.Target == t.Name && run.RatePerSecond == rate && run.Latency.Known() {
						rounds = append(rounds, c.of(&run.Latency))
					}
				}
				if len(rounds) > 0 {
					l.xs, l.ys = append(l.xs, rate), append(l.ys, record.SpreadOf(rounds).Middle)
				}
			}
			p.lines = append(p.lines, l)
		}
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
