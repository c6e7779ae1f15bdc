package load

import (
	"encoding/json"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram counts durations from 1 µs to a minute with three digits. The zero
// value is empty and has no memory. One goroutine uses it at a time.
type Histogram struct {
	of     *hdrhistogram.Histogram
	coarse bool // two digits, in an eighth of the memory
}

const longest = int64(time.Minute / time.Microsecond)

func (h *Histogram) ensure() {
	if h.of != nil {
		return
	}
	digits := 3
	if h.coarse {
		digits = 2
	}
	h.of = hdrhistogram.New(1, longest, digits)
}

// Record counts d once. A longer one counts as a minute.
func (h *Histogram) Record(d time.Duration) { h.recordTimes(d, 1) }

func (h *Histogram) recordTimes(d time.Duration, n int64) {
	h.ensure()
	// It cannot fail for a value in the range.
	_ = h.of.RecordValues(min(max(int64(d/time.Microsecond), 1), longest), n)
}

// Merge adds what other counted.
func (h *Histogram) Merge(other *Histogram) {
	if other.of == nil {
		return
	}
	h.ensure()
	h.of.Merge(other.of)
}

// Reset forgets everything and keeps the memory.
func (h *Histogram) Reset() {
	if h.of != nil && h.of.TotalCount() > 0 {
		h.of.Reset()
	}
}

func microseconds(v int64) Duration { return Duration(v) * Duration(time.Microsecond) }

// Summary is the distribution; window is how long was counted.
func (h *Histogram) Summary(window time.Duration) Summary {
	if h.of == nil {
		return Summary{}
	}
	return Summary{
		Count:     h.of.TotalCount(),
		PerSecond: float64(h.of.TotalCount()) / window.Seconds(),
		Mean:      Duration(h.of.Mean() * float64(time.Microsecond)),
		P50:       microseconds(h.of.ValueAtQuantile(50)),
		P90:       microseconds(h.of.ValueAtQuantile(90)),
		P99:       microseconds(h.of.ValueAtQuantile(99)),
		P999:      microseconds(h.of.ValueAtQuantile(99.9)),
		Max:       microseconds(h.of.Max()),
	}
}

// AtMost returns how many are at most d, as exactly as they are counted.
func (h *Histogram) AtMost(d time.Duration) (n int64) {
	if h.of == nil {
		return 0
	}
	for _, bar := range h.of.Distribution() {
		if microseconds(bar.From) > Duration(d) {
			break
		}
		n += bar.Count
	}
	return n
}

// Quantile says that a part of all latencies is at most so long.
type Quantile struct {
	Part    float64 // 0 to 1
	Latency Duration
}

// quantileSteps is how many quantiles there are until what is left has halved.
const quantileSteps = 4

// Distribution returns quantiles that come closer to 1 as far as the count carries, and the longest as the last.
func (h *Histogram) Distribution() (all []Quantile) {
	if h.of == nil || h.of.TotalCount() == 0 {
		return nil
	}
	for k := 0; ; k++ {
		left := math.Exp2(-float64(k) / quantileSteps)
		if left*float64(h.of.TotalCount()) < 1 {
			return append(all, Quantile{1, microseconds(h.of.Max())})
		}
		all = append(all, Quantile{1 - left, microseconds(h.of.ValueAtQuantile(100 * (1 - left)))})
	}
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

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var ms float64
	err := json.Unmarshal(text, &ms)
	*d = Duration(ms * float64(time.Millisecond))
	return err
}
