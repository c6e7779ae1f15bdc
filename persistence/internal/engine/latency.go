package engine

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Latency is how long something has taken, each time that it was done.
type Latency struct {
	Count   uint64
	Sum     time.Duration
	Buckets map[time.Duration]uint64 // Buckets count, for some bounds, those that took at most so long
}

// Mean is that over all of them.
func (l *Latency) Mean() time.Duration {
	return l.Sum / time.Duration(max(l.Count, 1)) //nolint:gosec // never so many
}

// LatencyOf reads a histogram of Pebble's, which is in nanoseconds.
func LatencyOf(h prometheus.Histogram) (l Latency) {
	var m dto.Metric
	if h == nil || h.Write(&m) != nil {
		return l
	}
	of := m.GetHistogram()
	l = Latency{Count: of.GetSampleCount(), Sum: time.Duration(of.GetSampleSum()), Buckets: map[time.Duration]uint64{}}
	for _, b := range of.GetBucket() {
		l.Buckets[time.Duration(b.GetUpperBound())] = b.GetCumulativeCount()
	}
	return l
}

// Levels are the tables of the database, and how they are merged.
type Levels struct {
	Tables      int64
	Compactions int64  // since the database was opened
	DebtBytes   uint64 // DebtBytes have to be compacted, about
}

// LevelsOf reads them.
func LevelsOf(m *pebble.Metrics) Levels {
	l := Levels{Compactions: m.Compact.Count, DebtBytes: m.Compact.EstimatedDebt}
	for _, level := range m.Levels {
		l.Tables += level.TablesCount
	}
	return l
}
