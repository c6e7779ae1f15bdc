package report

import (
	"cmp"
	_ "embed" // for the page
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"troupe/gateway/hypertext"
)

//go:embed page.css
var style string

// milliseconds writes three digits that count.
func milliseconds(v float64) string {
	switch {
	case v >= 100:
		return grouped(int64(math.Round(v)))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func latencyCells(l Latency) []string {
	cells := []string{"–", "–", "–", "–", "–"}
	if l.Known() {
		for i, v := range []float64{l.P50Ms, l.P90Ms, l.P99Ms, l.P999Ms, l.MaxMs} {
			cells[i] = milliseconds(v)
		}
	}
	return cells
}

type pageContent struct {
	*Report
	Headline     *Run // the only run; nil when there are several
	RatePlot     hypertext.Raw
	Distribution hypertext.Raw
	Runs         []runContent
	AnyMissed    bool
	AnyCPU       bool
}

type runContent struct {
	*Run
	Name                             string
	LatencyPlot, ThroughputPlot      hypertext.Raw
	CPUPlot, MemoryPlot              hypertext.Raw
	ErrorBars                        []errorBar
	SeveralKinds                     bool
	ServerCPU, GeneratorCPU, ServMiB string
}

type errorBar struct {
	Text    string
	Count   int64
	Percent float64 // of the most frequent one
}

// distributionsMax is how many runs one plot of distributions shows: those of the first round.
const distributionsMax = 8

// WriteHTML writes the report as one page that needs nothing else: no script, no other file, no network.
func (r *Report) WriteHTML(w io.Writer) error {
	c := &pageContent{Report: r}
	if len(r.Runs) == 1 {
		c.Headline = r.Runs[0]
	}
	rates := r.ratePlot()
	if rates != nil {
		c.RatePlot = rates.svg()
	}
	shown := slices.DeleteFunc(slices.Clone(r.Runs), func(run *Run) bool { return len(run.Percentiles) == 0 || run.Round > 1 })
	if len(shown) > 0 {
		p := distributionPlot(shown[:min(len(shown), distributionsMax)], func(run *Run) string {
			if len(r.Runs) == 1 {
				return ""
			}
			return strings.TrimSuffix(run.Name(r), ", round 1")
		})
		p.wide = rates == nil
		c.Distribution = p.svg()
	}
	for _, run := range r.Runs {
		c.Runs = append(c.Runs, run.content(r))
		c.AnyMissed = c.AnyMissed || run.RatePerSecond > 0
		c.AnyCPU = c.AnyCPU || run.ServerCPUMicrosPerOperation != nil
	}
	var page hypertext.Writer
	c.write(&page)
	_, err := io.WriteString(w, string(page.Raw()))
	return err
}

func (r *Run) content(rep *Report) runContent {
	window := cmp.Or(r.DurationSeconds, rep.Load.DurationSeconds)
	latency, throughput := r.latencyPlot(window), r.throughputPlot(window)
	c := runContent{Run: r, Name: r.Name(rep), ThroughputPlot: throughput.svg(), SeveralKinds: len(r.Kinds) > 1}
	if r.Answered() {
		c.LatencyPlot = latency.svg()
	}
	if cpu, memory := r.resourcePlots(window); cpu != nil {
		c.CPUPlot, c.MemoryPlot = cpu.svg(), memory.svg()
	}
	_, most := r.MostFrequentError()
	for _, text := range r.ErrorTexts() {
		n := r.Errors[text]
		c.ErrorBars = append(c.ErrorBars, errorBar{text, n, 100 * float64(n) / float64(most)})
	}
	if v := r.ServerCPUMicrosPerOperation; v != nil {
		c.ServerCPU = milliseconds(*v)
	}
	if v := r.GeneratorCPUMicrosPerOperation; v != nil {
		c.GeneratorCPU = milliseconds(*v)
	}
	if v := r.ServerResidentBytes; v != nil {
		c.ServMiB = grouped(*v >> 20)
	}
	return c
}
