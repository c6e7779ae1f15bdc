package load

import (
	"encoding/json"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what a run measured.
type Result struct {
	// All are the requests that were answered as they should be.
	All Summary
	// Shed are answers 503 and 429: the server was busy and did nothing.
	Shed Summary
	// Missed are requests of an open loop for which no connection became free.
	// They are in no latency: if there are any, the rate was too high.
	Missed int64
	// Errors counts everything else, by its text.
	Errors map[string]int64
}

// Failed is the number of errors. Figures of a run that has any say little.
func (r *Result) Failed() int64 {
	var n int64
	for _, count := range r.Errors {
		n += count
	}
	return n
}

// Summary is a distribution of latencies.
type Summary struct {
	Count     int64    `json:"count"`
	PerSecond float64  `json:"perSecond"`
	Mean      Duration `json:"mean"`
	P50       Duration `json:"p50"`
	P90       Duration `json:"p90"`
	P99       Duration `json:"p99"`
	P999      Duration `json:"p999"`
	Max       Duration `json:"max"`
}

// Duration is written as milliseconds in JSON.
type Duration time.Duration

// Milliseconds returns the duration as a number.
func (d Duration) Milliseconds() float64 { return float64(d) / float64(time.Millisecond) }

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.Milliseconds()) }

// errorTextsMax bounds the different errors that are counted by themselves.
const errorTextsMax = 20

// tally is what one worker counts.
type tally struct {
	answered, shed Histogram
	errors         map[string]int64
}

func (t *tally) failed(text string) {
	if t.errors == nil {
		t.errors = map[string]int64{}
	}
	if _, known := t.errors[text]; !known && len(t.errors) >= errorTextsMax {
		text = "others"
	}
	t.errors[text]++
}

// summarize joins what the workers counted in a window.
func summarize(workers []*worker, window time.Duration) *Result {
	var all, shed Histogram
	r := &Result{Errors: map[string]int64{}}
	for _, w := range workers {
		all.Merge(&w.tally.answered)
		shed.Merge(&w.tally.shed)
		for text, n := range w.tally.errors {
			r.Errors[text] += n
		}
	}
	r.All, r.Shed = all.Summary(window), shed.Summary(window)
	return r
}

// Histogram counts durations from 1 µs to a minute with three digits. The zero
// value is empty and has no memory. One goroutine uses it at a time.
type Histogram struct{ of *hdrhistogram.Histogram }

const longest = int64(time.Minute / time.Microsecond)

// Record counts d once. A longer one counts as a minute.
func (h *Histogram) Record(d time.Duration) {
	if h.of == nil {
		h.of = hdrhistogram.New(1, longest, 3)
	}
	// It cannot fail for a value in the range.
	_ = h.of.RecordValue(min(max(int64(d/time.Microsecond), 1), longest))
}

// Merge adds what other counted.
func (h *Histogram) Merge(other *Histogram) {
	if other.of == nil {
		return
	}
	if h.of == nil {
		h.of = hdrhistogram.New(1, longest, 3)
	}
	h.of.Merge(other.of)
}

// Summary is the distribution; window is how long was counted.
func (h *Histogram) Summary(window time.Duration) Summary {
	if h.of == nil {
		return Summary{}
	}
	us := func(v int64) Duration { return Duration(v) * Duration(time.Microsecond) }
	return Summary{
		Count:     h.of.TotalCount(),
		PerSecond: float64(h.of.TotalCount()) / window.Seconds(),
		Mean:      Duration(h.of.Mean() * float64(time.Microsecond)),
		P50:       us(h.of.ValueAtQuantile(50)),
		P90:       us(h.of.ValueAtQuantile(90)),
		P99:       us(h.of.ValueAtQuantile(99)),
		P999:      us(h.of.ValueAtQuantile(99.9)),
		Max:       us(h.of.Max()),
	}
}
