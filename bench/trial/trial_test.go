package trial

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/bench/load"
	"troupe/bench/report"
)

func TestThresholds(t *testing.T) {
	micros := 70.0
	run := &report.Run{
		Round: 2, Result: load.Result{
			RatePerSecond: 1000, Requests: 10, ErrorsTotal: 3, Missed: 4, Shed: 5, OperationsPerSecond: 900, LongestGapSeconds: 1.5,
			Latency: load.Latency{P50Ms: 1, P90Ms: 2, P99Ms: 20, P999Ms: 30, MaxMs: 40}, ServerCPUMicrosPerOperation: &micros,
		},
	}
	for _, c := range []struct {
		text, by string // by is empty when it holds
	}{
		{"p99>20ms", ""},
		{"p99>=20ms", "p99 was 20.00 ms at 1000/s in round 2"},
		{" p99 > 19.9ms ", "p99 was 20.00 ms at 1000/s in round 2"},
		{"p50>900us", "p50 was 1.00 ms at 1000/s in round 2"},
		{"p90>1s", ""},
		{"p99.9>29ms", "p99.9 was 30.00 ms at 1000/s in round 2"},
		{"max<40ms", ""},
		{"max<=40ms", "max was 40.00 ms at 1000/s in round 2"},
		{"errors>0", "errors was 3 at 1000/s in round 2"},
		{"missed>4", ""},
		{"shed>4", "shed was 5 at 1000/s in round 2"},
		{"rate<1000/s", "rate was 900/s at 1000/s in round 2"},
		{"rate<800", ""},
		{"gap>1s", "gap was 1500.00 ms at 1000/s in round 2"},
		{"gap>1501ms", ""},
		{"cpu>69.5us", "cpu was 70.00 µs at 1000/s in round 2"},
	} {
		all, err := ParseThresholds(c.text)
		if !assert.True(t, err == nil && len(all) == 1, "%s: got %v, %v", c.text, all, err) {
			continue
		}
		got := all[0].judge([]*report.Run{run}, 2)
		assert.True(t, got.By == c.by && got.Failed == (c.by != "") && got.Text == strings.ReplaceAll(c.text, " ", ""), "%s: got %+v, want %q", c.text, got, c.by)
	}
	all, err := ParseThresholds("p99>1ms,errors>0")
	require.True(t, err == nil && len(all) == 2, "got %v, %v", all, err)
	got := all[0].judge([]*report.Run{{}}, 1)
	assert.True(t, got.Failed && strings.Contains(got.By, "p99 is not known"), "without an answer: got %+v", got)
	assert.Equal(t, "p99 was 20.00 ms at 1000/s", all[0].judge([]*report.Run{{Result: load.Result{Latency: load.Latency{P50Ms: 1}}}, run}, 1).By)
}

// TestRequestsWithoutAnAnswerFail unless a condition is about them, or there is none at all.
func TestRequestsWithoutAnAnswerFail(t *testing.T) {
	for text, want := range map[string]string{
		"p99>1s":                      "errors>0: errors was 3, and no condition is about errors; missed>0: missed was 4, and no condition is about missed; ",
		"errors>3":                    "missed>0: missed was 4, and no condition is about missed; ",
		"errors>3,missed>=4":          "missed>=4: missed was 4; ",
		"p99>1s,errors>100,missed>10": "",
		"":                            "",
	} {
		p := &Plan{Targets: []Target{{Name: "mine"}}, Rounds: 1}
		if text != "" {
			p.Thresholds, _ = ParseThresholds(text)
		}
		rep := &report.Report{Runs: []*report.Run{{Target: "mine", Result: load.Result{Requests: 9, ErrorsTotal: 3, Missed: 4, Latency: load.Latency{P99Ms: 1}}}}}
		p.judge(rep)
		got := ""
		for i, judged := range rep.Thresholds {
			written := i < len(p.Thresholds)
			assert.NotEqual(t, written, judged.Implied, "%s: %s: got implied", text, judged.Text)
			if judged.Failed {
				got += judged.Text + ": " + judged.By + "; "
			}
		}
		assert.Equal(t, want, got, text)
		named := len(rep.Thresholds)
		assert.True(t, (text == "" || named >= 3) && (text != "" || named <= 0), "%s: got %d conditions, want those that hold too", text, named)
	}
}

func TestWrongThresholds(t *testing.T) {
	for text, want := range map[string]string{
		"":               `"": a condition is like p99>20ms`,
		"p99":            "a condition is like",
		"p99=1ms":        "a condition is like",
		"errors>0,":      `"errors>0,": a condition is like`,
		"p99>1ms, ,":     `"p99>1ms, ,": a condition is like`,
		"p95>1ms":        "p95 is not a figure of a run: did you mean p90?",
		"latency>1ms":    "one of p50, p90, p99, p99.9, max, errors",
		"p99>20":         "p99 needs a time with its unit",
		"p99>-1ms":       "p99 needs a time",
		"errors>few":     "errors needs a number",
		"errors>NaN":     "errors needs a number",
		"rate<10ms":      "rate needs a number",
		"errors>0 or up": "a condition is like",
	} {
		_, err := ParseThresholds(text)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%s: got %v, want %s", text, err, want)
	}
}

// TestRatiosAreOfTheSameRound plants a second round that is slow for both.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	rep := &report.Report{Targets: []report.Target{{Name: "mine"}, {Name: "other"}}}
	for _, r := range []struct {
		target    string
		round     int
		rate, p99 float64
	}{{"mine", 1, 1000, 4}, {"other", 1, 500, 8}, {"other", 2, 50, 0}, {"mine", 2, 50, 3}, {"mine", 3, 100, 5}} {
		rep.Runs = append(rep.Runs, &report.Run{Target: r.target, Round: r.round, Result: load.Result{OperationsPerSecond: r.rate, Latency: load.Latency{P99Ms: r.p99}}})
	}
	got := ratios(rep, 0)
	if len(got) != 2 || got[0].Figure != "operationsPerSecond" || got[0].Spread.Least != 1 || got[0].Spread.Middle != 1.5 || got[0].Spread.Most != 2 ||
		got[1].Figure != "p99Ms" || got[1].Spread.Middle != 0.5 {
		t.Errorf("got %+v", got)
	}
}

func TestWarnings(t *testing.T) {
	number := func(f float64) *float64 { return &f }
	rep := &report.Report{Generator: report.Machine{Cores: 2}, Load: report.Load{Connections: 8}}
	for want, r := range map[string]load.Result{
		"":                                    {Requests: 9, GeneratorCPUCores: number(0.9), ServerCPUCores: number(1.1)},
		"7 requests were due":                 {Missed: 7},
		"those of the 12 that were due in it": {Missed: 8, Kinds: map[string]load.Summary{"event": {Count: 9}, "read": {Count: 3}}},
		`3 errors, most often "b" (2 times)`:  {ErrorsTotal: 3, Errors: map[string]int64{"a": 1, "b": 2}},
		"5 requests or events of batches were refused": {Shed: 5},
		"was itself the bottleneck":                    {GeneratorCPUCores: number(1.7)},
		"more of the processors":                       {GeneratorCPUCores: number(1.2), ServerCPUCores: number(0.7)},
		"for 2.00 s, from second 1.0 on":               {Requests: 9, LongestGapSeconds: 2, LongestGapAtSeconds: 1, Latency: load.Latency{P50Ms: 900}},
		"the server could not be reached, or 8":        {Missed: 7, LongestGapSeconds: 2, Requests: 9, Latency: load.Latency{P50Ms: 1500}},
	} {
		got := warnings(&report.Run{Result: r}, rep)
		assert.True(t, (want != "" || len(got) <= 0) && !(want != "" && (len(got) != 1 || !strings.Contains(got[0], want))), "got %q, want %q", got, want)
	}
	got := warnings(&report.Run{Result: load.Result{Requests: 1, RatePerSecond: 1, LongestGapSeconds: 1, Latency: load.Latency{P50Ms: 3}}}, rep)
	assert.Empty(t, got, "one request a second: got %q", got)
}

func TestAddresses(t *testing.T) {
	for text, ok := range map[string]bool{
		"http://127.0.0.1:8080": true, "https://example.org/platform/": true, "127.0.0.1:8080": false, "ftp://x": false,
		"http://": false, "http://u:p@x": false, "http://x?a": false, "http://x y": false,
	} {
		_, err := ParseAddress(text)
		assert.Equal(t, ok, err == nil, "%s: got %v", text, err)
	}
	for text, want := range map[string][3]string{
		"http://127.0.0.1:8080": {"127.0.0.1:8080", "127.0.0.1:8080", ""}, "https://example.org/platform/": {"example.org:443", "example.org", "/platform"},
		"http://[::1]": {"[::1]:80", "[::1]", ""},
	} {
		at, err := ParseAddress(text)
		require.NoError(t, err)
		var o load.Options
		(&server{Target: &Target{}, at: at}).aim(&o)
		got := [3]string{o.Addr, o.Host, o.BasePath}
		assert.True(t, got == want && (o.TLS != nil) == strings.HasPrefix(text, "https"), "%s: got %v, want %v", text, got, want)
	}
}

// TestAnAddressWithoutAScheme is told what to type.
func TestAnAddressWithoutAScheme(t *testing.T) {
	_, err := ParseAddress("127.0.0.1:8080")
	assert.True(t, err != nil && err.Error() == "must be a URL such as http://127.0.0.1:8080", "got %v", err)
}

func TestIntervals(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{
		time.Second: 100 * time.Millisecond, 10 * time.Second: 200 * time.Millisecond, 5 * time.Minute: time.Second, time.Hour: 6 * time.Second,
	} {
		assert.Equal(t, want, intervalOf(window), window)
	}
}
