package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/bench/load"
	"troupe/bench/record"
)

// example is a report with everything that one can have: two targets, two rates, errors, a
// gap, and a cause that would be markup.
func example() *Report {
	r := &Report{
		Format: Format, Command: `troupe bench --fail-if 'p99>1ms'`, Began: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC),
		Generator: Machine{Program: "troupe v1", OS: "linux", Arch: "amd64", Go: "go1.26", Kernel: "6.1", Processor: "A processor", Cores: 2, LoadAverage: "0.5"},
		Load:      Load{Workflow: "leave-request", Mix: "event=1", Connections: 64, Instances: 10_000, WarmUpSeconds: 2, DurationSeconds: 4, Rounds: 1},
		Targets:   []Target{{Name: "troupe", Address: "127.0.0.1:1", Build: "v1", Local: true}, {Name: "far", Address: "127.0.0.1:2"}},
		Ratios:    []Ratio{{RatePerSecond: 1000, Figure: "p99Ms", Spread: record.Spread{Least: 0.5, Middle: 0.75, Most: 1.25}}},
		Thresholds: []Threshold{
			{Text: "p99>1ms", Failed: true, By: "p99 was 9.00 ms at 1000/s"}, {Text: "errors>9999"}, {Text: "missed>0", Implied: true},
		},
		Warnings: []string{"1000/s: 1234 errors"},
	}
	for _, rate := range []float64{1000, 2000} {
		for _, t := range r.Targets {
			run := &Run{
				Target: t.Name, Round: 1, Result: load.Result{
					RatePerSecond: rate, Missed: 5678, Operations: 12_345, OperationsPerSecond: 3086.25, Requests: 12_345,
					Latency:     load.Latency{MeanMs: 2, P50Ms: 1.25, P90Ms: 3.5, P99Ms: 9, P999Ms: 44.4, MaxMs: 777},
					Kinds:       map[string]load.Summary{"event": {Count: 12_000}, "query": {Count: 345}},
					Percentiles: []load.Percentile{{Ms: 0.5}, {Percentile: 50, Ms: 1.25}, {Percentile: 90, Ms: 3.5}, {Percentile: 99, Ms: 9}, {Percentile: 100, Ms: 777}},
					Errors:      map[string]int64{}, LongestGapSeconds: 1.25, LongestGapAtSeconds: 1,
				},
			}
			for k := range 4 {
				i := load.Interval{BeganSeconds: float64(k), EndedSeconds: float64(k + 1), OperationsPerSecond: 3000, Requests: 3000, Latency: run.Latency}
				if k == 1 {
					i = load.Interval{BeganSeconds: 1, EndedSeconds: 2, Errors: 1234}
				}
				if t.Local {
					cores, bytes := 0.5, int64(200<<20)
					i.ServerCPUCores, i.ServerResidentBytes = &cores, &bytes
				}
				run.Series = append(run.Series, i)
			}
			if t.Local {
				micros, bytes := 66.6, int64(211<<20)
				run.ServerCPUMicrosPerOperation, run.ServerResidentBytes = &micros, &bytes
				run.Errors["connect: <connection> refused"], run.ErrorsTotal = 1234, 1234
			}
			r.Runs = append(r.Runs, run)
		}
	}
	return r
}

func pageOf(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteHTML(&b))
	return b.String()
}

// TestThePageIsWellFormedAndNeedsNothingElse reads it as XML, which is stricter than HTML.
func TestThePageIsWellFormedAndNeedsNothingElse(t *testing.T) {
	for name, r := range map[string]*Report{"everything": example(), "nothing": {Runs: []*Run{{}}}, "no run": {}} {
		text := pageOf(t, r)
		decoder := xml.NewDecoder(strings.NewReader(text))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			element, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			tag := element.Name.Local
			assert.True(t, tag != "script" && tag != "link" && tag != "img" && tag != "iframe", "%s: there is a %s", name, tag)
			for _, a := range element.Attr {
				n := a.Name.Local
				assert.True(t, n != "src" && n != "href" && !strings.HasPrefix(n, "on"), "%s: %s has %s=%q", name, element.Name.Local, n, a.Value)
			}
		}
		assert.Empty(t, regexp.MustCompile(`https?://|url\(|@import|NaN|Inf|ZgotmplZ|%!`).FindString(text), "%s: there", name)
	}
}

func TestThePageHasTheFigures(t *testing.T) {
	text := pageOf(t, example())
	for part, times := range map[string]int{
		"<svg ": 2 + 4*2 + 2*2, "Latency over time": 4, "Server memory": 2, "<h3>Latency by rate": 1, "troupe beside 127.0.0.1:2 under load": 1,
		"12,000": 4, "5,678": 4, "<td>1.25</td>": 5, "777": 4, "66.6": 2, "0.75": 1, "connect: &lt;connection&gt; refused": 2, `class="gap"`: 8,
		"Processor and memory of the server are not shown": 2, "p99 was 9.00 ms at 1000/s": 1, "passed": 2, "<code>missed&gt;0</code> <span class=\"soft\">(implied)</span>": 1, "(implied)": 1, "1000/s: 1234 errors": 1,
		"troupe bench --fail-if &#39;p99&gt;1ms&#39;": 1, "A processor, 2 cores": 1, "10,000 new instances": 1, "No errors.": 2,
	} {
		assert.Equal(t, times, strings.Count(text, part), "got %q", part)
	}
}

// TestTheJSONIsStable holds the names of the members: whoever reads them relies on them.
func TestTheJSONIsStable(t *testing.T) {
	text, err := json.Marshal(example())
	require.NoError(t, err)
	for _, member := range []string{
		`{"format":1,"command":`, `"began":"2026-11-23T10:00:00Z"`, `"generator":{"program":"troupe v1"`, `"cores":2`, `"warmUpSeconds":2,"durationSeconds":4`,
		`"targets":[{"name":"troupe","address":"127.0.0.1:1","build":"v1","local":true}`, `"operationsPerSecond":3086.25`,
		`"latency":{"meanMs":2,"p50Ms":1.25,"p90Ms":3.5,"p99Ms":9,"p999Ms":44.4,"maxMs":777}`, `"kinds":{"event":{"requests":12000,`,
		`"errorsTotal":1234`, `"longestGapSeconds":1.25,"longestGapAtSeconds":1`, `"serverCpuMicrosPerOperation":66.6`, `"serverCpuMicrosPerOperation":null`,
		`"series":[{"beganSeconds":0,"endedSeconds":1,`, `"percentiles":[{"percentile":0,"ms":0.5}`,
		`"spread":{"least":0.5,"median":0.75,"most":1.25}`, `"thresholds":[{"text":"p99\u003e1ms","failed":true,"implied":false,"by":"`, `"warnings":["`,
	} {
		assert.Contains(t, string(text), member, "the JSON lacks")
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, c := range []struct {
		axis axis
		want string
	}{
		{linear("", 7, 5), "0 2 4 6 8"},
		{linear("", 0.13, 5), "0 0.05 0.1 0.15"},
		{linear("", 0, 5), "0 0.2 0.4 0.6 0.8 1"},
		{linear("", 24_000, 5), "0 5000 10k 15k 20k 25k"},
		{logarithmic("", 0.3, 60), "0.2 0.5 1 2 5 10 20 50 100"},
		{logarithmic("", 0.02, 5000), "0.01 0.1 1 10 100 1000"},
		{logarithmic("", 1, 1), "1"},
	} {
		var got []string
		for _, tick := range c.axis.ticks {
			got = append(got, tick.text)
		}
		assert.Equal(t, c.want, strings.Join(got, " "))
		for _, tick := range c.axis.ticks {
			at := c.axis.part(tick.at)
			assert.True(t, !(at < -1e-9) && !(at > 1+1e-9), "%s: the tick %s is at %v", c.want, tick.text, at)
		}
	}
}

func TestALineIsBrokenWhereNothingIsKnown(t *testing.T) {
	p := plot{x: linear("", 3, 3), y: linear("", 1, 2), lines: []line{{colour: 1, xs: []float64{0, 1, 2, 3}, ys: []float64{1, math.NaN(), 0, 1}}}}
	if got := strings.Count(string(p.svg()), `class="line c1"`); got != 2 {
		t.Errorf("got %d parts, want 2: %s", got, p.svg())
	}
}

// TestTheRatePlotHasTheMedianOfTheRounds gives one of three rounds a latency that is far off.
func TestTheRatePlotHasTheMedianOfTheRounds(t *testing.T) {
	r := &Report{Targets: []Target{{Name: "troupe"}}}
	for round, p99 := range []float64{4, 900, 5} {
		for _, rate := range []float64{2000, 1000} {
			r.Runs = append(r.Runs, &Run{Target: "troupe", Round: round + 1, Result: load.Result{RatePerSecond: rate, Requests: 1, Latency: load.Latency{P50Ms: 1, P99Ms: p99}}})
		}
	}
	p := r.ratePlot()
	assert.True(t, p != nil && len(p.lines) == 2 && len(p.lines[1].xs) == 2 && p.lines[1].xs[0] == 1000 && p.lines[1].ys[0] == 5 && p.lines[1].ys[1] == 5, "got %+v", p)
	r.Runs = r.Runs[:1]
	assert.Nil(t, r.ratePlot(), "got a plot of one rate")
}

// TestAShortGapIsNotShaded, also when what came late took no longer than it.
func TestAShortGapIsNotShaded(t *testing.T) {
	r := &Run{Result: load.Result{LongestGapSeconds: 0.02, LongestGapAtSeconds: 0.3, Series: []load.Interval{
		{EndedSeconds: 0.5, Requests: 9}, {BeganSeconds: 0.5, EndedSeconds: 1, Requests: 9}, {BeganSeconds: 1, EndedSeconds: 1.002, Requests: 1},
	}}}
	got := r.silent(1)
	assert.Empty(t, got, "got %v", got)
	r.LongestGapSeconds = 0.5
	assert.Len(t, r.silent(1), 1, "a gap as long as an interval")
}

func TestSpansThatTouchAreJoined(t *testing.T) {
	r := &Run{Result: load.Result{LongestGapSeconds: 1.5, LongestGapAtSeconds: 1.5}}
	for _, requests := range []int64{9, 0, 0, 9, 0} {
		n := float64(len(r.Series))
		r.Series = append(r.Series, load.Interval{BeganSeconds: n, EndedSeconds: n + 1, Requests: requests})
	}
	assert.Equal(t, []span{{1, 3}, {4, 5}}, r.silent(5))
	r.LongestGapSeconds = 2.5
	assert.Equal(t, []span{{1, 5}}, r.silent(5), "a gap that touches both")
}

func TestNumbersHaveTheDigitsThatCount(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0512: "0.0512", 1.5: "1.5", 12.345: "12.35", 100: "100", 12_345: "12.3k", 2_500_000: "2.5M"} {
		assert.Equal(t, want, number(v), v)
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		assert.Equal(t, want, grouped(n), n)
	}
}

// TestALatencyOfNothingIsNull: a zero would be the best of all.
func TestALatencyOfNothingIsNull(t *testing.T) {
	for l, want := range map[load.Latency]string{
		{}:          "null",
		{MeanMs: 1}: `{"meanMs":1,"p50Ms":0,"p90Ms":0,"p99Ms":0,"p999Ms":0,"maxMs":0}`,
	} {
		got, err := json.Marshal(l)
		assert.True(t, string(got) == want && err == nil, "got %s, %v, want %s", got, err, want)
	}
}

// TestARunWithoutLatenciesHasNone: above the capacity all answers of a window may belong to requests of the warm-up.
func TestARunWithoutLatenciesHasNone(t *testing.T) {
	text := pageOf(t, &Report{Runs: []*Run{{Result: load.Result{RatePerSecond: 9, Requests: 5, Series: []load.Interval{{EndedSeconds: 1, Requests: 5, Latency: load.Latency{P50Ms: 70}}}}}}})
	if n := strings.Count(text, "<td>–</td>"); n != 6 || !strings.Contains(text, "<b>– ms</b><span>median latency") || strings.Contains(text, `class="gap"`) || !strings.Contains(text, "Latency over time") {
		t.Errorf("got %d empty cells, want 5 latencies and a CPU:\n%s", n, text)
	}
}

// TestAnInterruptedRunSaysHowLongItWas, and what failed nothing has a null for it.
func TestAnInterruptedRunSaysHowLongItWas(t *testing.T) {
	r := &Report{Load: Load{DurationSeconds: 4}, Thresholds: []Threshold{{Text: "a"}, {Text: "b", Failed: true, By: "errors was 1"}}}
	for _, measured := range []float64{1.25, 4} {
		r.Runs = append(r.Runs, &Run{Result: load.Result{Requests: 1, DurationSeconds: measured}})
	}
	var page strings.Builder
	require.NoError(t, r.WriteHTML(&page))
	n := strings.Count(page.String(), "Interrupted: 1.25 s were measured, of 4 s.")
	assert.True(t, n == 1 && strings.Count(page.String(), "Interrupted:") == 1, "the page says it %d times, want once", n)
	text, err := json.Marshal(r)
	for _, want := range []string{`"durationSeconds":1.25`, `{"text":"a","failed":false,"implied":false,"by":null}`, `{"text":"b","failed":true,"implied":false,"by":"errors was 1"}`} {
		assert.True(t, err == nil && strings.Contains(string(text), want), "got %v, %s, want %s", err, text, want)
	}
}
