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

func milliseconds(micros int64) float64 { return float64(micros) / 1000 }

// Summary is the distribution; window is how long was counted.
func (h *Histogram) Summary(window time.Duration) Summary {
	if h.of == nil {
		return Summary{}
	}
	return Summary{
		Count:     h.of.TotalCount(),
		PerSecond: perSecond(h.of.TotalCount(), window),
		Latency: Latency{
			MeanMs: h.of.Mean() / 1000, P50Ms: milliseconds(h.of.ValueAtQuantile(50)), P90Ms: milliseconds(h.of.ValueAtQuantile(90)),
			P99Ms: milliseconds(h.of.ValueAtQuantile(99)), P999Ms: milliseconds(h.of.ValueAtQuantile(99.9)), MaxMs: milliseconds(h.of.Max()),
		},
	}
}

// AtMost returns how many are at most d, as exactly as they are counted.
func (h *Histogram) AtMost(d time.Duration) (n int64) {
	if h.of == nil {
		return 0
	}
	for _, bar := range h.of.Distribution() {
		if bar.From > int64(d/time.Microsecond) {
			break
		}
		n += bar.Count
	}
	return n
}

// Percentile says that so many of a hundred requests took at most so long.
type Percentile struct {
	Percentile float64 `json:"percentile"`
	Ms         float64 `json:"ms"`
}

// quantileSteps is how many quantiles there are until what is left has halved.
const quantileSteps = 4

// Distribution returns percentiles that come closer to 100 as far as the count carries, and the longest as the last.
func (h *Histogram) Distribution() (all []Percentile) {
	if h.of == nil || h.of.TotalCount() == 0 {
		return nil
	}
	for k := 0; ; k++ {
		left := math.Exp2(-float64(k) / quantileSteps)
		if left*float64(h.of.TotalCount()) < 1 {
			return append(all, Percentile{100, milliseconds(h.of.Max())})
		}
		part := 100 * (1 - left)
		all = append(all, Percentile{part, milliseconds(h.of.ValueAtQuantile(part))})
	}
}

// Summary is a distribution of the latencies of requests.
type Summary struct {
	Count     int64   `json:"requests"`
	PerSecond float64 `json:"-"`
	Latency   Latency `json:"latency"`
}

// Latency is a distribution. That of an open loop counts from when a request was due. All
// is zero when nothing was answered, which is null in JSON.
type Latency struct {
	MeanMs float64 `json:"meanMs"`
	P50Ms  float64 `json:"p50Ms"`
	P90Ms  float64 `json:"p90Ms"`
	P99Ms  float64 `json:"p99Ms"`
	P999Ms float64 `json:"p999Ms"`
	MaxMs  float64 `json:"maxMs"`
}

// Known is false when nothing was answered.
func (l *Latency) Known() bool { return *l != Latency{} }

// MarshalJSON implements json.Marshaler.
func (l Latency) MarshalJSON() ([]byte, error) {
	if !l.Known() {
		return []byte("null"), nil
	}
	type plain Latency
	return json.Marshal(plain(l))
}
