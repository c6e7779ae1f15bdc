package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Latency reads count and mean from Pebble's histogram, which is in nanoseconds.
func Latency(h prometheus.Histogram) (count uint64, mean time.Duration) {
	var m dto.Metric
	if h == nil || h.Write(&m) != nil || m.GetHistogram().GetSampleCount() == 0 {
		return 0, 0
	}
	count = m.GetHistogram().GetSampleCount()
	return count, time.Duration(m.GetHistogram().GetSampleSum() / float64(count))
}
