package report

import (
	"maps"
	"math"
	"slices"

	"troupe/bench/load"
	h "troupe/gateway/hypertext"
)

func rounded(v float64) string { return grouped(int64(math.Round(v))) }

const latencyHead = "<th>p50 ms</th><th>p90 ms</th><th>p99 ms</th><th>p99.9 ms</th><th>max ms</th>"

func (c *pageContent) write(w *h.Writer) {
	w.Put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>troupe bench, %s</title>
<style>
%s</style>
</head>
<body>
<main>
<h1>`, c.Began.Format("2006-01-02 15:04 UTC"), h.Raw(style))
	for i, t := range c.Targets {
		if i > 0 {
			w.Put(" beside ")
		}
		if t.Local {
			w.Put("%s", t.Name)
		} else {
			w.Put("%s", t.Address)
		}
	}
	w.Put(" under load</h1>\n<p class=\"soft\">%s · %s · %d connections · %s", c.Began.Format("2 January 2006, 15:04 UTC"), c.Load.Workflow, c.Load.Connections, c.Load.Mix)
	if c.Load.Batch > 0 {
		w.Put(" · %d events a request", c.Load.Batch)
	}
	w.Put("</p>\n<code class=\"command\">%s</code>\n", c.Command)
	if c.Headline != nil {
		c.Headline.writeTiles(w)
	}
	if len(c.Warnings) > 0 {
		w.Put("<div class=\"warnings\"><b>Read these figures with care</b><ul>")
		for _, warning := range c.Warnings {
			w.Put("<li>%s</li>", warning)
		}
		w.Put("</ul></div>\n")
	}
	c.writeThresholds(w)
	c.writeFigures(w)
	c.writeRatios(w)
	c.writePlots(w)
	for i := range c.Runs {
		c.Runs[i].write(w, c.Load.DurationSeconds)
	}
	c.writeSetting(w)
	w.Put("</main>\n</body>\n</html>\n")
}

func (r *Run) writeTiles(w *h.Writer) {
	latency, tone := latencyCells(r.Latency), "good"
	if r.ErrorsTotal > 0 {
		tone = "bad"
	}
	w.Put("<div class=\"tiles\">\n<div class=\"tile\"><b>%s</b><span>operations per second</span></div>\n", rounded(r.OperationsPerSecond))
	w.Put("<div class=\"tile\"><b>%s ms</b><span>median latency</span></div>\n<div class=\"tile\"><b>%s ms</b><span>99th percentile</span></div>\n<div class=\"tile\"><b>%s ms</b><span>slowest answer</span></div>\n", latency[0], latency[2], latency[4])
	w.Put("<div class=\"tile\"><b class=\"%s\">%s</b><span>errors</span></div>\n", tone, grouped(r.ErrorsTotal))
	if cpu := r.ServerCPUMicrosPerOperation; cpu != nil {
		w.Put("<div class=\"tile\"><b>%s µs</b><span>server CPU per operation</span></div>", milliseconds(*cpu))
	}
	w.Put("\n</div>\n")
}

func (c *pageContent) writeThresholds(w *h.Writer) {
	if len(c.Thresholds) == 0 {
		return
	}
	w.Put("<h2>Conditions</h2>\n<div class=\"scroll\"><table class=\"words\"><tr><th>Fails if</th><th>Result</th></tr>\n")
	for _, t := range c.Thresholds {
		w.Put("<tr><td><code>%s</code>", t.Text)
		if t.Implied {
			w.Put(" <span class=\"soft\">(implied)</span>")
		}
		if t.Failed {
			w.Put("</td><td><b class=\"bad\">failed:</b> %s</td></tr>", t.By)
		} else {
			w.Put("</td><td><span class=\"good\">passed</span></td></tr>")
		}
	}
	w.Put("\n</table></div>\n")
}

func cell(w *h.Writer, n int64) {
	if n > 0 {
		w.Put("<td class=\"bad\">%s</td>", grouped(n))
	} else {
		w.Put("<td>%s</td>", grouped(n))
	}
}

func (c *pageContent) writeFigures(w *h.Writer) {
	w.Put("<h2>Figures</h2>\n<div class=\"scroll\"><table>\n<tr><th>Run</th><th>per second</th>%s", h.Raw(latencyHead))
	if c.AnyCPU {
		w.Put("<th>server CPU µs</th><th>server MiB</th>")
	}
	w.Put("<th>generator CPU µs</th><th>errors</th><th>shed</th>")
	if c.AnyMissed {
		w.Put("<th>missed</th>")
	}
	w.Put("<th>longest gap s</th></tr>\n")
	for _, r := range c.Runs {
		w.Put("<tr><td>%s</td><td>%s</td>", r.Name, rounded(r.OperationsPerSecond))
		writeLatency(w, r.Latency)
		if c.AnyCPU {
			w.Put("<td>%s</td><td>%s</td>", known(r.ServerCPU), known(r.ServMiB))
		}
		w.Put("<td>%s</td>", known(r.GeneratorCPU))
		cell(w, r.ErrorsTotal)
		w.Put("<td>%s</td>", grouped(r.Shed))
		if c.AnyMissed {
			cell(w, r.Missed)
		}
		w.Put("<td>%.3f</td></tr>\n", r.LongestGapSeconds)
	}
	w.Put("</table></div>\n<p class=\"soft\">")
	if c.Load.Batch > 0 {
		w.Put("Each event of a batch is an operation; latencies are those of whole requests. ")
	}
	if c.AnyMissed {
		w.Put("Latencies of an open loop count from when a request was due, so that waiting is not left out, and are those of what was due in the window; missed requests found no free connection and are in no latency. Throughput, gaps and CPU are counted by when the answers came. ")
	}
	w.Put("Shed are answers 429 and 503. CPU is processor time for each operation. A gap is a time in which no connection got a right answer.</p>\n")
}

func known(figure string) string {
	if figure == "" {
		return "–"
	}
	return figure
}

func writeLatency(w *h.Writer, l load.Latency) {
	for _, figure := range latencyCells(l) {
		w.Put("<td>%s</td>", figure)
	}
}

func (c *pageContent) writeRatios(w *h.Writer) {
	if len(c.Ratios) == 0 {
		return
	}
	w.Put("<h2>%s / %s</h2>\n<div class=\"scroll\"><table><tr><th>Figure</th><th>rate</th><th>least</th><th>median</th><th>most</th></tr>\n", c.Targets[0].Name, c.Targets[1].Name)
	for _, r := range c.Ratios {
		rate := "closed loop"
		if r.RatePerSecond > 0 {
			rate = number(r.RatePerSecond) + "/s"
		}
		w.Put("<tr><td>%s</td><td>%s</td><td>%.2f</td><td><b>%.2f</b></td><td>%.2f</td></tr>\n", FigureName(r.Figure), rate, r.Spread.Least, r.Spread.Middle, r.Spread.Most)
	}
	w.Put("</table></div>\n<p class=\"soft\">Ratios are taken within a round, of %d: what slows the machine slows both sides.</p>\n", c.Load.Rounds)
}

func figure(w *h.Writer, title string, plot h.Raw) {
	if plot != "" {
		w.Put("<figure><h3>%s</h3>%s</figure>\n", title, plot)
	}
}

func (c *pageContent) writePlots(w *h.Writer) {
	class := "wide"
	if c.RatePlot != "" {
		class = "plots"
	}
	w.Put("<h2>Distribution</h2>\n<div class=\"%s\">\n", class)
	figure(w, "Latency by percentile", c.Distribution)
	figure(w, "Latency by rate", c.RatePlot)
	w.Put("</div>\n")
}

func (r *runContent) write(w *h.Writer, planned float64) {
	w.Put("\n<section>\n<h2>%s</h2>\n", r.Name)
	if r.DurationSeconds > 0 && r.DurationSeconds < planned {
		w.Put("<p>Interrupted: %.2f s were measured, of %v s.</p>\n", r.DurationSeconds, planned)
	}
	w.Put("<div class=\"plots\">\n")
	figure(w, "Latency over time", r.LatencyPlot)
	figure(w, "Throughput over time", r.ThroughputPlot)
	figure(w, "Server CPU", r.CPUPlot)
	figure(w, "Server memory", r.MemoryPlot)
	w.Put("</div>\n")
	if r.CPUPlot == "" {
		w.Put("<p class=\"soft\">Processor and memory of the server are not shown: they can be read only of a server that troupe bench starts itself, on Linux.</p>\n")
	}
	if len(r.ErrorBars) > 0 {
		w.Put("<h3 style=\"margin-top:18px\">Errors by cause</h3>\n<div class=\"scroll\"><table class=\"words errors\"><tr><th>Cause</th><th>Count</th><th></th></tr>\n")
		for _, e := range r.ErrorBars {
			w.Put("<tr><td>%s</td><td>%s</td><td><span class=\"bar\" style=\"width:%.1f%%\"></span></td></tr>", e.Text, grouped(e.Count), e.Percent)
		}
		w.Put("\n</table></div>\n")
	} else {
		w.Put("<p class=\"soft\">No errors.</p>\n")
	}
	if r.SeveralKinds {
		w.Put("<h3 style=\"margin-top:18px\">By kind</h3>\n<div class=\"scroll\"><table><tr><th>Kind</th><th>requests</th>%s</tr>\n", h.Raw(latencyHead))
		for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
			w.Put("<tr><td>%s</td><td>%s</td>", kind, grouped(r.Kinds[kind].Count))
			writeLatency(w, r.Kinds[kind].Latency)
			w.Put("</tr>")
		}
		w.Put("\n</table></div>\n")
	}
	w.Put("</section>\n")
}

func (c *pageContent) writeSetting(w *h.Writer) {
	w.Put("\n<h2>What was run where</h2>\n<div class=\"scroll\"><table class=\"words\">\n")
	for _, t := range c.Targets {
		w.Put("<tr><td>%s</td><td>%s", t.Name, t.Address)
		if t.Build != "" {
			w.Put(" · %s", t.Build)
		}
		if t.Local {
			w.Put(" · started for this measurement on an empty temporary home")
		}
		w.Put("</td></tr>\n")
	}
	l, g := c.Load, c.Generator
	w.Put("<tr><td>Load</td><td>workflow %s", l.Workflow)
	if l.Scenario != "" {
		w.Put(" of %s", l.Scenario)
	} else {
		w.Put(", the built-in walk")
	}
	w.Put(" · mix %s · %d connections · %s new instances a run", l.Mix, l.Connections, grouped(int64(l.Instances)))
	if l.Preload > 0 {
		w.Put(" with %d events before", l.Preload)
	}
	if l.Batch > 0 {
		w.Put(" · batches of %d", l.Batch)
	}
	replies, rounds := "full", "rounds"
	if l.Minimal {
		replies = "minimal"
	}
	if l.Rounds == 1 {
		rounds = "round"
	}
	w.Put(" · %s replies · %v s after %v s of warm-up · %d %s</td></tr>\n", replies, l.DurationSeconds, l.WarmUpSeconds, l.Rounds, rounds)
	w.Put("<tr><td>Load generator</td><td>%s</td></tr>\n", g.Program)
	w.Put("<tr><td>Machine</td><td>%s, %d cores · %s/%s · kernel %s · %s · load average before %s</td></tr>\n", g.Processor, g.Cores, g.OS, g.Arch, g.Kernel, g.Go, g.LoadAverage)
	w.Put("<tr><td>Began</td><td>%s</td></tr>\n</table></div>\n", c.Began.Format("2006-01-02 15:04:05 UTC"))
}
