package load

import (
	"time"
)

// Result is what a run measured.
type Result struct {
	// Window is how long was measured: Options.Duration, or less when ctx ended before.
	Window time.Duration
	// Requests are those that were answered as they should be while the window was open, and Operations what was
	// carried out by them: each event of a batch counts. PerSecond is the number of operations a second.
	Requests, Operations int64
	PerSecond            float64
	// All are the latencies of the requests that were answered as they should be, and Kinds those of each kind. In a
	// closed loop they are those of Requests. In an open one they are those of what was due in the window, also when it
	// was answered later: at a rate that is too high, fewer than Requests, and none if the window was over before what
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

// Interval is what happened in a part of the window.
type Interval struct {
	// Began and Ended count from the begin of the window. What happened is counted by when
	// the answers came. There may be one more interval behind the window: for answers of an
	// open loop to what was due in it, and for requests that had no answer.
	Began, Ended time.Duration
	// Operations are those that were answered as they should be, each event of a batch one.
	Operations int64
	// Latency is that of the requests that were answered as they should be.
	Latency Summary
	Shed    int64 // each event of a batch one, as in Errors
	Errors  map[string]int64
}

// Failed is the number of errors.
func (i *Interval) Failed() int64 { return total(i.Errors) }

func total(errors map[string]int64) (n int64) {
	for _, count := range errors {
		n += count
	}
	return n
}
