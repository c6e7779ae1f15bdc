package report

import (
	"cmp"
	_ "embed" // for the page
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"troupe/bench/load"
	h "troupe/gateway/hypertext"
)

//go:embed page.css
var style string

// unknown stands where nothing was measured.
const unknown = "–"

func rounded(v float64) string { return grouped(int64(math.Round(v))) }

// milliseconds writes three digits that count.
func milliseconds(v float64) string {
	switch {
	case v >= 100:
		return rounded(v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func micros(v *float64) string {
	if v == nil {
		return unknown
	}
	return milliseconds(*v)
}

func latencyCells(l load.Latency) []any {
	cells := []any{unknown, unknown, unknown, unknown, unknown}
	if l.Known() {
		for i, v := range []float64{l.P50Ms, l.P90Ms, l.P99Ms, l.P999Ms, l.MaxMs} {
			cells[i] = milliseconds(v)
		}
	}
	return cells
}

// bad is a number that is better 0.
func bad(n int64) any {
	if n == 0 {
		return "0"
	}
	return h.Raw(`<span class="bad">` + grouped(n) + `</span>`)
}

// table begins a table with a class and its heads; cells end a row of it, and end the table.
type table struct{ *h.Writer }

func tableOf(w *h.Writer, class string, heads ...string) table {
	w.Put("<div class=\"scroll\"><table class=\"%s\">\n", class)
	if len(heads) > 0 {
		w.Put("<tr>")
		for _, head := range heads {
			w.Put("<th>%s</th>", head)
		}
		w.Put("</tr>\n")
	}
	return table{w}
}

func (t table) row(cells ...any) {
	t.Put("<tr>")
	for _, c := range cells {
		t.Put("<td>%s</td>", c)
	}
	t.Put("</tr>\n")
}

func (t table) end() { t.Put("</table></div>\n") }

// WriteHTML writes the report as one page that needs nothing else: no script, no other file, no network.
func (r *Report) WriteHTML(to io.Writer) error {
	w := &h.Writer{}
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
<h1>`, r.Began.Format("2006-01-02 15:04 UTC"), h.Raw(style))
	for i, t := range r.Targets {
		if i > 0 {
			w.Put(" beside ")
		}
		if t.Local {
			w.Put("%s", t.Name)
		} else {
			w.Put("%s", t.Address)
		}
	}
	w.Put(" under load</h1>\n<p class=\"soft\">%s · %s · %d connections · %s", r.Began.Format("2 January 2006, 15:04 UTC"), r.Load.Workflow, r.Load.Connections, r.Load.Mix)
	if r.Load.Batch > 0 {
		w.Put(" · %d events a request", r.Load.Batch)
	}
	w.Put("</p>\n<code class=\"command\">%s</code>\n", r.Command)
	if len(r.Runs) == 1 {
		r.Runs[0].writeTiles(w)
	}
	if len(r.Warnings) > 0 {
		w.Put("<div class=\"warnings\"><b>Read these figures with care</b><ul>")
		for _, warning := range r.Warnings {
			w.Put("<li>%s</li>", warning)
		}
		w.Put("</ul></div>\n")
	}
	r.writeThresholds(w)
	r.writeFigures(w)
	r.writeRatios(w)
	distribution, rates := r.distributionPlot(), r.ratePlot()
	class := "plots"
	if rates == nil {
		class = "wide"
		if distribution != nil {
			distribution.width = wideWidth
		}
	}
	w.Put("<h2>Distribution</h2>\n<div class=\"%s\">\n", class)
	figure(w, "Latency by percentile", distribution)
	figure(w, "Latency by rate", rates)
	w.Put("</div>\n")
	for _, run := range r.Runs {
		run.write(w, r)
	}
	r.writeSetting(w)
	w.Put("</main>\n</body>\n</html>\n")
	_, err := io.WriteString(to, string(w.Raw()))
	return err
}

func figure(w *h.Writer, title string, p *plot) {
	if p != nil {
		w.Put("<figure><h3>%s</h3>%s</figure>\n", title, p.svg())
	}
}

func (r *Run) writeTiles(w *h.Writer) {
	tile := func(value any, what string) {
		w.Put("<div class=\"tile\"><b>%s</b><span>%s</span></div>\n", value, what)
	}
	latency := latencyCells(r.Latency)
	w.Put("<div class=\"tiles\">\n")
	tile(rounded(r.OperationsPerSecond), "operations per second")
	tile(fmt.Sprint(latency[0], " ms"), "median latency")
	tile(fmt.Sprint(latency[2], " ms"), "99th percentile")
	tile(fmt.Sprint(latency[4], " ms"), "slowest answer")
	tile(bad(r.ErrorsTotal), "errors")
	if cpu := r.ServerCPUMicrosPerOperation; cpu != nil {
		tile(micros(cpu)+" µs", "server CPU per operation")
	}
	w.Put("</div>\n")
}

func (r *Report) writeThresholds(w *h.Writer) {
	if len(r.Thresholds) == 0 {
		return
	}
	w.Put("<h2>Conditions</h2>\n")
	t := tableOf(w, "words", "Fails if", "Result")
	for _, c := range r.Thresholds {
		var text, result h.Writer
		text.Put("<code>%s</code>", c.Text)
		if c.Implied {
			text.Put(" <span class=\"soft\">(implied)</span>")
		}
		if c.Failed {
			result.Put("<b class=\"bad\">failed:</b> %s", c.By)
		} else {
			result.Put("<span class=\"good\">passed</span>")
		}
		t.row(text.Raw(), result.Raw())
	}
	t.end()
}

var latencyHeads = []string{"p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms"}

func (r *Report) writeFigures(w *h.Writer) {
	anyMissed := slices.ContainsFunc(r.Runs, func(run *Run) bool { return run.RatePerSecond > 0 })
	anyCPU := slices.ContainsFunc(r.Runs, func(run *Run) bool { return run.ServerCPUMicrosPerOperation != nil })
	heads := append([]string{"Run", "per second"}, latencyHeads...)
	if anyCPU {
		heads = append(heads, "server CPU µs", "server MiB")
	}
	heads = append(heads, "generator CPU µs", "errors", "shed")
	if anyMissed {
		heads = append(heads, "missed")
	}
	w.Put("<h2>Figures</h2>\n")
	t := tableOf(w, "", append(heads, "longest gap s")...)
	for _, run := range r.Runs {
		row := append([]any{run.Name(r), rounded(run.OperationsPerSecond)}, latencyCells(run.Latency)...)
		if anyCPU {
			memory := unknown
			if bytes := run.ServerResidentBytes; bytes != nil {
				memory = grouped(*bytes >> 20)
			}
			row = append(row, micros(run.ServerCPUMicrosPerOperation), memory)
		}
		row = append(row, micros(run.GeneratorCPUMicrosPerOperation), bad(run.ErrorsTotal), grouped(run.Shed))
		if anyMissed {
			row = append(row, bad(run.Missed))
		}
		t.row(append(row, fmt.Sprintf("%.3f", run.LongestGapSeconds))...)
	}
	t.end()
	w.Put("<p class=\"soft\">")
	if r.Load.Batch > 0 {
		w.Put("Each event of a batch is an operation; latencies are those of whole requests. ")
	}
	if anyMissed {
		w.Put("Latencies of an open loop count from when a request was due, so that waiting is not left out, and are those of what was due in the window; missed requests found no free connection and are in no latency. Throughput, gaps and CPU are counted by when the answers came. ")
	}
	w.Put("Shed are answers 429 and 503. CPU is processor time for each operation. A gap is a time in which no connection got a right answer.</p>\n")
}

func (r *Report) writeRatios(w *h.Writer) {
	if len(r.Ratios) == 0 {
		return
	}
	w.Put("<h2>%s / %s</h2>\n", r.Targets[0].Name, r.Targets[1].Name)
	t := tableOf(w, "", "Figure", "rate", "least", "median", "most")
	for _, ratio := range r.Ratios {
		rate := "closed loop"
		if ratio.RatePerSecond > 0 {
			rate = number(ratio.RatePerSecond) + "/s"
		}
		var middle h.Writer
		middle.Put("<b>%.2f</b>", ratio.Spread.Middle)
		t.row(ratio.Text(), rate, fmt.Sprintf("%.2f", ratio.Spread.Least), middle.Raw(), fmt.Sprintf("%.2f", ratio.Spread.Most))
	}
	t.end()
	w.Put("<p class=\"soft\">Ratios are taken within a round, of %d: what slows the machine slows both sides.</p>\n", r.Load.Rounds)
}

func (r *Run) write(w *h.Writer, rep *Report) {
	planned := rep.Load.DurationSeconds
	window := cmp.Or(r.DurationSeconds, planned)
	w.Put("\n<section>\n<h2>%s</h2>\n", r.Name(rep))
	if r.DurationSeconds > 0 && r.DurationSeconds < planned {
		w.Put("<p>Interrupted: %.2f s were measured, of %v s.</p>\n", r.DurationSeconds, planned)
	}
	w.Put("<div class=\"plots\">\n")
	if r.Answered() {
		figure(w, "Latency over time", r.latencyPlot(window))
	}
	figure(w, "Throughput over time", r.throughputPlot(window))
	cpu, memory := r.resourcePlots(window)
	figure(w, "Server CPU", cpu)
	figure(w, "Server memory", memory)
	w.Put("</div>\n")
	if cpu == nil {
		w.Put("<p class=\"soft\">Processor and memory of the server are not shown: they can be read only of a server that troupe bench starts itself, on Linux.</p>\n")
	}
	if len(r.Errors) > 0 {
		_, most := r.MostFrequentError()
		w.Put("<h3 style=\"margin-top:18px\">Errors by cause</h3>\n")
		t := tableOf(w, "words errors", "Cause", "Count", "")
		for _, text := range r.ErrorTexts() {
			var bar h.Writer
			bar.Put("<span class=\"bar\" style=\"width:%.1f%%\"></span>", 100*float64(r.Errors[text])/float64(most))
			t.row(text, grouped(r.Errors[text]), bar.Raw())
		}
		t.end()
	} else {
		w.Put("<p class=\"soft\">No errors.</p>\n")
	}
	if len(r.Kinds) > 1 {
		w.Put("<h3 style=\"margin-top:18px\">By kind</h3>\n")
		t := tableOf(w, "", append([]string{"Kind", "requests"}, latencyHeads...)...)
		for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
			t.row(append([]any{kind, grouped(r.Kinds[kind].Count)}, latencyCells(r.Kinds[kind].Latency)...)...)
		}
		t.end()
	}
	w.Put("</section>\n")
}

func (r *Report) writeSetting(w *h.Writer) {
	w.Put("\n<h2>What was run where</h2>\n")
	t := tableOf(w, "words")
	for _, target := range r.Targets {
		text := target.Address
		if target.Build != "" {
			text += " · " + target.Build
		}
		if target.Local {
			text += " · started for this measurement on an empty temporary home"
		}
		t.row(target.Name, text)
	}
	l, g := r.Load, r.Generator
	text := "workflow " + l.Workflow + ", the built-in walk"
	if l.Scenario != "" {
		text = fmt.Sprintf("workflow %s of %s", l.Workflow, l.Scenario)
	}
	text += fmt.Sprintf(" · mix %s · %d connections · %s new instances a run", l.Mix, l.Connections, grouped(int64(l.Instances)))
	if l.Preload > 0 {
		text += fmt.Sprintf(" with %d events before", l.Preload)
	}
	if l.Batch > 0 {
		text += fmt.Sprintf(" · batches of %d", l.Batch)
	}
	replies, rounds := "full", "rounds"
	if l.Minimal {
		replies = "minimal"
	}
	if l.Rounds == 1 {
		rounds = "round"
	}
	t.row("Load", fmt.Sprintf("%s · %s replies · %v s after %v s of warm-up · %d %s", text, replies, l.DurationSeconds, l.WarmUpSeconds, l.Rounds, rounds))
	t.row("Load generator", g.Program)
	t.row("Machine", fmt.Sprintf("%s, %d cores · %s/%s · kernel %s · %s · load average before %s", g.Processor, g.Cores, g.OS, g.Arch, g.Kernel, g.Go, g.LoadAverage))
	t.row("Began", r.Began.Format("2006-01-02 15:04:05 UTC"))
	t.end()
}
