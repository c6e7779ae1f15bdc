package report

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/bench/load"
	"troupe/bench/record"
)

// Format is the version of the JSON of a Report. It is raised when a member changes its
// meaning or goes; new members may come.
const Format = 1

// Report is what a measurement found out. Units stand in the names of the members.
type Report struct {
	Format    int       `json:"format"`
	Command   string    `json:"command"` // without secrets
	Began     time.Time `json:"began"`
	Generator Machine   `json:"generator"`
	Load      Load      `json:"load"`
	Targets   []Target  `json:"targets"`
	Runs      []*Run    `json:"runs"`
	// Ratios are the first target's figures divided by the second's of the same round; empty without a second one.
	Ratios     []Ratio     `json:"ratios,omitempty"`
	Thresholds []Threshold `json:"thresholds,omitempty"`
	// Warnings say why figures may be wrong.
	Warnings []string `json:"warnings"`
}

// Machine is where the load generator ran.
type Machine struct {
	Program     string `json:"program"` // its version
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Go          string `json:"go"`
	Kernel      string `json:"kernel"`
	Processor   string `json:"processor"`
	Cores       int    `json:"cores"`
	LoadAverage string `json:"loadAverage"` // of 1, 5 and 15 minutes, when it began
}

// Load is what was sent.
type Load struct {
	Workflow        string  `json:"workflow"`
	Scenario        string  `json:"scenario"` // the file; empty: the built-in one
	Mix             string  `json:"mix"`
	Connections     int     `json:"connections"`
	Instances       int     `json:"instances"`
	Preload         int     `json:"preload"`
	Batch           int     `json:"batch"` // events of a request; 0: no batches
	Minimal         bool    `json:"minimal"`
	WarmUpSeconds   float64 `json:"warmUpSeconds"`
	DurationSeconds float64 `json:"durationSeconds"`
	Rounds          int     `json:"rounds"`
}

// Target is a server that was measured.
type Target struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Build   string `json:"build"` // what it says of itself; empty: nothing
	// Local says that the program started it, so that its processor time is known.
	Local bool `json:"local"`
}

// Run is one window on one target.
type Run struct {
	Target string `json:"target"`
	Round  int    `json:"round"` // from 1
	load.Result
}

// Ratio is a figure of the first target divided by that of the second, over the rounds.
type Ratio struct {
	RatePerSecond float64       `json:"ratePerSecond"`
	Figure        string        `json:"figure"`
	Spread        record.Spread `json:"spread"`
}

// Threshold is a condition under which the measurement counts as failed.
type Threshold struct {
	Text   string `json:"text"`
	Failed bool   `json:"failed"`
	// Implied says that nobody wrote it: it holds where there are others.
	Implied bool `json:"implied"`
	// By says which run failed it first, and with what.
	By string `json:"by"` // empty: nothing did, which is null in JSON
}

// MarshalJSON implements json.Marshaler.
func (t Threshold) MarshalJSON() ([]byte, error) {
	type plain Threshold
	out := struct {
		plain
		By *string `json:"by"`
	}{plain: plain(t)}
	if t.By != "" {
		out.By = &t.By
	}
	return json.Marshal(out)
}

// Of returns the runs of a target.
func (r *Report) Of(target string) []*Run {
	return slices.DeleteFunc(slices.Clone(r.Runs), func(run *Run) bool { return run.Target != target })
}

// Ratios divides the figure of each run by that of the run of the same round in under. Where one of both has none, there
// is no ratio.
func (f Figure) Ratios(over, under []*Run) (all []float64) {
	for _, r := range over {
		i := slices.IndexFunc(under, func(u *Run) bool { return u.Round == r.Round })
		if i >= 0 && f.Of(r) > 0 && f.Of(under[i]) > 0 {
			all = append(all, f.Of(r)/f.Of(under[i]))
		}
	}
	return all
}

// Name says which run of the report it is, as far as there are several.
func (r *Run) Name(rep *Report) string {
	var parts []string
	if len(rep.Targets) > 1 {
		parts = append(parts, r.Target)
	}
	if r.RatePerSecond > 0 {
		parts = append(parts, strconv.FormatFloat(r.RatePerSecond, 'f', -1, 64)+"/s")
	} else {
		parts = append(parts, "closed loop")
	}
	if rep.Load.Rounds > 1 {
		parts = append(parts, "round "+strconv.Itoa(r.Round))
	}
	return strings.Join(parts, ", ")
}

// InLatencies is how many requests the latencies are about.
func (r *Run) InLatencies() (n int64) {
	for _, k := range r.Kinds {
		n += k.Count
	}
	return n
}

// Answered reports whether anything was answered as it should be, in the window or to what was due in it.
func (r *Run) Answered() bool { return r.Requests > 0 || r.InLatencies() > 0 }

// ErrorTexts returns the causes of errors, the most frequent first.
func (r *Run) ErrorTexts() []string {
	return slices.SortedFunc(maps.Keys(r.Errors), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Errors[b], r.Errors[a]), cmp.Compare(a, b))
	})
}

// MostFrequentError returns a cause and its count; the cause is empty without errors.
func (r *Run) MostFrequentError() (text string, n int64) {
	if texts := r.ErrorTexts(); len(texts) > 0 {
		text = texts[0]
	}
	return text, r.Errors[text]
}

// Figure is one of a run: its name in the JSON of ratios, what people call it, and how to get it; 0: it is not known.
type Figure struct {
	Name, Text string
	Of         func(*Run) float64
}

// Figures that ratios are taken of.
var (
	PerSecond = Figure{"operationsPerSecond", "operations per second", func(r *Run) float64 { return r.OperationsPerSecond }}
	P50       = Figure{"p50Ms", "p50", func(r *Run) float64 { return r.Latency.P50Ms }}
	P99       = Figure{"p99Ms", "p99", func(r *Run) float64 { return r.Latency.P99Ms }}
	ServerCPU = Figure{"serverCpuMicrosPerOperation", "server CPU per operation", func(r *Run) float64 { return Known(r.ServerCPUMicrosPerOperation) }}

	Figures = []Figure{PerSecond, P50, P99, ServerCPU}
)

// Known is a figure that may not be known, which is 0 then.
func Known[T int64 | float64](figure *T) (value T) {
	if figure != nil {
		value = *figure
	}
	return value
}

// Text is what people call the figure.
func (r *Ratio) Text() string {
	return Figures[slices.IndexFunc(Figures, func(f Figure) bool { return f.Name == r.Figure })].Text
}
