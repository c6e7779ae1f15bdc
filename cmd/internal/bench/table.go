package bench

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"troupe/bench/report"
	"troupe/bench/trial"
	"troupe/cmd/internal/cli"
)

func benchTables(o *cli.Output, rep *report.Report) error {
	rows := [][]string{{"RUN", "PER SECOND", "P50 MS", "P90 MS", "P99 MS", "P99.9 MS", "MAX MS", "CPU µS", "ERRORS", "SHED", "MISSED", "LONGEST GAP S"}}
	kinds := [][]string{{"RUN", "KIND", "REQUESTS", "P50 MS", "P90 MS", "P99 MS", "P99.9 MS", "MAX MS"}}
	for _, r := range rep.Runs {
		cpu := "-"
		if r.ServerCPUMicrosPerOperation != nil {
			cpu = decimals(*r.ServerCPUMicrosPerOperation, 1)
		}
		row := append([]string{r.Name(rep), decimals(r.OperationsPerSecond, 0)}, latencyCells(&r.Latency)...)
		rows = append(rows, append(row, cpu, strconv.FormatInt(r.ErrorsTotal, 10), strconv.FormatInt(r.Shed, 10),
			strconv.FormatInt(r.Missed, 10), decimals(r.LongestGapSeconds, 3)))
		for _, name := range []string{"create", "event", "read", "query"} {
			if k, ok := r.Kinds[name]; ok && len(r.Kinds) > 1 {
				kinds = append(kinds, append([]string{r.Name(rep), name, strconv.FormatInt(k.Requests, 10)}, latencyCells(&k.Latency)...))
			}
		}
	}
	ratios := [][]string{{"RATE", "RATIO", "LEAST", "MEDIAN", "MOST"}}
	for _, r := range rep.Ratios {
		rate := "closed loop"
		if r.RatePerSecond > 0 {
			rate = strconv.FormatFloat(r.RatePerSecond, 'f', -1, 64) + "/s"
		}
		ratios = append(ratios, []string{
			rate, rep.Targets[0].Name + " / " + rep.Targets[1].Name + ", " + report.FigureName(r.Figure),
			decimals(r.Spread.Least, 2), decimals(r.Spread.Middle, 2), decimals(r.Spread.Most, 2),
		})
	}
	for i, table := range [][][]string{rows, kinds, ratios} {
		if len(table) == 1 {
			continue
		}
		if i > 0 {
			if _, err := fmt.Fprintln(o.To); err != nil {
				return err
			}
		}
		if err := o.Table(table); err != nil {
			return err
		}
	}
	return nil
}

func latencyCells(l *report.Latency) []string {
	if !l.Known() {
		return []string{"-", "-", "-", "-", "-"}
	}
	return []string{decimals(l.P50Ms, 2), decimals(l.P90Ms, 2), decimals(l.P99Ms, 2), decimals(l.P999Ms, 2), decimals(l.MaxMs, 2)}
}

func decimals(f float64, n int) string { return strconv.FormatFloat(f, 'f', n, 64) }

// progressLine is a live line on a terminal; elsewhere there is a line for each part of a measurement.
type progressLine struct {
	live  *cli.LiveLine
	parts io.Writer
	last  string // of the parts
}

func (l *progressLine) show(p trial.Progress) {
	if l.live.IsLive() {
		l.live.Say(liveText(&p))
		return
	}
	if p.Doing == "" {
		p.Doing = fmt.Sprintf("measuring for %v", p.Total)
	}
	if text := liveText(&p); text != l.last {
		l.last = text
		_, _ = fmt.Fprintln(l.parts, text)
	}
}

func liveText(p *trial.Progress) string {
	where := p.Target
	if p.RatePerSecond > 0 {
		where += fmt.Sprintf(" %g/s", p.RatePerSecond)
	}
	if p.Rounds > 1 {
		where += fmt.Sprintf(" %d/%d", p.Round, p.Rounds)
	}
	if p.Doing != "" {
		return where + ": " + p.Doing
	}
	perSecond := 0.0
	if d := p.Now.Ended - p.Now.Began; d > 0 {
		perSecond = float64(p.Now.Operations) / d.Seconds()
	}
	grain := 100 * time.Millisecond
	if p.Total >= time.Minute {
		grain = time.Second
	}
	return fmt.Sprintf("%s: %.0f/s  p50 %.1f ms  p99 %.1f ms  errors %d  %s of %s", where, perSecond,
		p.Now.Latency.P50.Milliseconds(), p.Now.Latency.P99.Milliseconds(), p.Failed,
		p.Now.Ended.Round(grain), p.Total)
}
