package load

import (
	"encoding/json"
	"time"
)

// Result is what a run measured.
type Result struct {
	// Window is how long was measured: Options.Duration, or less when ctx ended before.
	Window time.Duration
	// Requests are those that were answered as they should be while the window was open, and
	// Operations what was carried out by them: each event of a batch counts. PerSecond is the
	// number of operations a second.
	Requests, Operations int64
	PerSecond            float64
	// All are the latencies of the requests that were answered as they should be, and Kinds
	// those of each kind. In a closed loop they are those of Requests. In an open one they
	// are those of what was due in the window, also when it was answered later: at a rate
	// that is too high, fewer than Requests, and none if the window was over before what
	// had waited since the warm-up was sent.
	All   Summary
	Kinds map[Kind]Summary
	// Shed are answers 503 and 429, of the requests that All is about: the server was busy
	// and did nothing. Refused also has those of an open loop that came in the window and
	// were due before it. Each event of a batch counts, here and in Errors.
	Shed    Summary
	Refused int64
	// Missed are requests of an open loop that were due in the window and for which no
	// connection became free. They are in no latency: if there are any, the rate was too high.
	Missed int64
	// Errors counts everything else that was due or came in the window, and requests that
	// had no answer until its end, by its text.
	Errors map[string]int64
	// Gap is the longest time of the window without a right answer, to the millisecond.
	Gap Gap
	// Latencies are those of All.
	Latencies Histogram
	// Series is the window in intervals, if Options.Every asked for it.
	Series []Interval
}

// Failed is the number of errors. Figures of a run that has any say little.
func (r *Result) Failed() int64 { return total(r.Errors) }

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

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var ms float64
	err := json.Unmarshal(text, &ms)
	*d = Duration(ms * float64(time.Millisecond))
	return err
}

// summarize joins what the workers counted in a window.
func summarize(workers []*worker, window time.Duration) *Result {
	var shed Histogram
	var errors causes
	r := &Result{Window: window, Kinds: map[Kind]Summary{}}
	for k := range kinds {
		var one Histogram
		for _, w := range workers {
			one.Merge(&w.tally.answered[k])
		}
		r.Latencies.Merge(&one)
		if s := one.Summary(window); s.Count > 0 {
			r.Kinds[k] = s
		}
	}
	for _, w := range workers {
		shed.Merge(&w.tally.shed)
		r.Requests += w.tally.requests
		r.Operations += w.tally.operations
		r.Refused += w.tally.refused
		for text, n := range w.tally.errors.of {
			errors.add(text, n)
		}
	}
	r.PerSecond = float64(r.Operations) / window.Seconds()
	r.All, r.Shed, r.Errors = r.Latencies.Summary(window), shed.Summary(window), errors.of
	return r
}
