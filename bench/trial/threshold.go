package trial

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/bench/load"
	"troupe/bench/report"
	"troupe/statemachine/document"
)

// Threshold is a condition under which a measurement counts as failed, such as p99>20ms.
type Threshold struct {
	metric *metric
	sign   string
	bound  float64 // in the unit of the metric
	text   string
}

type metric struct {
	name string
	unit string // ms, µs: a time is required; /s or "": a number
	of   func(r *report.Run) (value float64, known bool)
}

func known(of func(r *report.Run) float64) func(r *report.Run) (float64, bool) {
	return func(r *report.Run) (float64, bool) { return of(r), true }
}

// latencyOf is a figure that a run does not have without answers to what belongs to it.
func latencyOf(of func(l *load.Latency) float64) func(r *report.Run) (float64, bool) {
	return func(r *report.Run) (float64, bool) { return of(&r.Latency), r.Latency.Known() }
}

var metrics = []*metric{
	{"p50", "ms", latencyOf(func(l *load.Latency) float64 { return l.P50Ms })},
	{"p90", "ms", latencyOf(func(l *load.Latency) float64 { return l.P90Ms })},
	{"p99", "ms", latencyOf(func(l *load.Latency) float64 { return l.P99Ms })},
	{"p99.9", "ms", latencyOf(func(l *load.Latency) float64 { return l.P999Ms })},
	{"max", "ms", latencyOf(func(l *load.Latency) float64 { return l.MaxMs })},
	{"errors", "", known(func(r *report.Run) float64 { return float64(r.ErrorsTotal) })},
	{"missed", "", known(func(r *report.Run) float64 { return float64(r.Missed) })},
	{"shed", "", known(func(r *report.Run) float64 { return float64(r.Shed) })},
	{"rate", "/s", known(func(r *report.Run) float64 { return r.OperationsPerSecond })},
	{"gap", "ms", known(func(r *report.Run) float64 { return 1000 * r.LongestGapSeconds })},
	{"cpu", "µs", func(r *report.Run) (float64, bool) {
		if r.ServerCPUMicrosPerOperation == nil {
			return 0, false
		}
		return *r.ServerCPUMicrosPerOperation, true
	}},
}

// MetricNames are the figures that thresholds can be set for.
func MetricNames() []string {
	names := make([]string, len(metrics))
	for i, m := range metrics {
		names[i] = m.name
	}
	return names
}

var condition = regexp.MustCompile(`^\s*([a-z0-9.]+)\s*(>=|<=|>|<)\s*(\S+)\s*$`)

// ParseThresholds reads conditions with commas between them, such as "p99>20ms,errors>0,rate<1000/s".
func ParseThresholds(text string) (all []Threshold, err error) {
	for part := range strings.SplitSeq(text, ",") {
		t, err := parseThreshold(part)
		if err != nil {
			if strings.TrimSpace(part) == "" {
				part = text // there is nothing to show of it alone
			}
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		all = append(all, t)
	}
	return all, nil
}

func parseThreshold(text string) (t Threshold, err error) {
	parts := condition.FindStringSubmatch(text)
	if parts == nil {
		return t, fmt.Errorf("a condition is like p99>20ms or errors>0")
	}
	at := slices.IndexFunc(metrics, func(m *metric) bool { return m.name == parts[1] })
	if at < 0 {
		advice := "one of " + strings.Join(MetricNames(), ", ")
		if near := document.Closest(parts[1], MetricNames()); near != "" {
			advice = "did you mean " + near + "?"
		}
		return t, fmt.Errorf("%s is not a figure of a run: %s", parts[1], advice)
	}
	t = Threshold{metric: metrics[at], sign: parts[2], text: strings.Join(parts[1:], "")}
	t.bound, err = t.metric.parse(parts[3])
	return t, err
}

func (m *metric) parse(text string) (float64, error) {
	if unit, isTime := map[string]time.Duration{"ms": time.Millisecond, "µs": time.Microsecond}[m.unit]; isTime {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return 0, fmt.Errorf("%s needs a time with its unit, such as 20ms, 500us or 1.5s", m.name)
		}
		return float64(d) / float64(unit), nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, m.unit), 64)
	if err != nil || !(n >= 0) || math.IsInf(n, 0) {
		return 0, fmt.Errorf("%s needs a number from 0 on", m.name)
	}
	return n, nil
}

// NeedsProcess reports whether the threshold is about something that is only known of a server that is started here.
func (t *Threshold) NeedsProcess() bool { return t.metric.name == "cpu" }

// Text is the threshold as it was written.
func (t *Threshold) Text() string { return t.text }

// evaluate holds the threshold against the runs. A figure that is not known fails, because
// nobody can say that it is within the bound.
func (t *Threshold) judge(runs []*report.Run, rounds int) report.Threshold {
	out := report.Threshold{Text: t.text}
	for _, r := range runs {
		value, ok := t.metric.of(r)
		if ok && !t.broken(value) {
			continue
		}
		out.Failed = true
		out.By = fmt.Sprintf("%s was %s", t.metric.name, t.metric.show(value))
		if !ok {
			out.By = t.metric.name + " is not known, because no request of the window was answered"
		}
		if r.RatePerSecond > 0 {
			out.By += fmt.Sprintf(" at %g/s", r.RatePerSecond)
		}
		if rounds > 1 {
			out.By += fmt.Sprintf(" in round %d", r.Round)
		}
		break
	}
	return out
}

// unmentioned are conditions that nobody wrote and that hold all the same: where there are thresholds, requests that
// were not answered as they should be are a failure unless a threshold says how many may be. Otherwise a server that is
// gone would be within every bound on latencies.
func unmentioned(thresholds []Threshold) (all []Threshold) {
	for _, name := range []string{"errors", "missed", "shed"} {
		mentions := func(t Threshold) bool { return t.metric.name == name }
		if len(thresholds) == 0 || slices.ContainsFunc(thresholds, mentions) {
			continue
		}
		t, err := parseThreshold(name + ">0")
		if err != nil {
			panic(err) // the names above are metrics
		}
		all = append(all, t)
	}
	return all
}

func (t *Threshold) broken(value float64) bool {
	switch t.sign {
	case ">":
		return value > t.bound
	case ">=":
		return value >= t.bound
	case "<":
		return value < t.bound
	}
	return value <= t.bound
}

func (m *metric) show(value float64) string {
	switch m.unit {
	case "":
		return strconv.FormatFloat(value, 'f', 0, 64)
	case "/s":
		return strconv.FormatFloat(value, 'f', 0, 64) + "/s"
	}
	return strconv.FormatFloat(value, 'f', 2, 64) + " " + m.unit
}
