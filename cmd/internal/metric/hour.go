package metric

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/gateway/api"
	"troupe/statemachine"
)

// minutesKept is how many minutes an Hour has.
const minutesKept = 60

// Hour is what the server did in each of the last minutes: without a Prometheus, all that is known of the time before now.
type Hour struct {
	readings func() *Readings
	latency  *Latency
	cancel   context.CancelFunc
	done     sync.WaitGroup

	mu      sync.Mutex
	minutes []api.Minute // the oldest first
}

// StartHour begins to read once a minute.
func StartHour(read func() *Readings, l *Latency) *Hour {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Hour{readings: read, latency: l, cancel: cancel}
	before := h.read()
	h.done.Go(func() {
		ticker := time.NewTicker(time.Minute)
		defer ticker.Stop()
		for {
			select {
			case at := <-ticker.C:
				now := h.read()
				h.add(at, &before, &now)
				before = now
			case <-ctx.Done():
				return
			}
		}
	})
	return h
}

// Stop ends the readings.
func (h *Hour) Stop(context.Context) error {
	h.cancel()
	h.done.Wait()
	return nil
}

// Minutes returns at most the last 60, the oldest first.
func (h *Hour) Minutes() []api.Minute {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.minutes)
}

// tally is what was counted since the start.
type tally struct {
	requests                  uint64
	events, refused, inFlight int64
	waiting                   *pending.Counts // nil: it could not be read
	within                    []uint64        // requests that took at most latencyBuckets, and at last all
}

func (h *Hour) read() tally {
	r := h.readings()
	g, w := &r.Gateway, &r.Workflow
	t := tally{waiting: r.Waiting, events: w.Events, refused: int64(g.Shed) + w.Refused + w.OverQuota, inFlight: w.InFlight, within: h.latency.within()} //nolint:gosec // a count
	for _, a := range g.Answers {
		t.requests += a.Count
	}
	return t
}

func (h *Hour) add(at time.Time, before, now *tally) {
	m := api.Minute{
		TS: at.UTC().Format(statemachine.TimeLayout), Requests: now.requests - before.requests,
		Events: now.events - before.events, Refused: now.refused - before.refused,
	}
	within := make([]uint64, len(now.within))
	for i := range within {
		within[i] = now.within[i] - before.within[i]
	}
	if within[len(within)-1] > 0 {
		p50, p99 := quantile(within, .5), quantile(within, .99)
		m.P50Milliseconds, m.P99Milliseconds = &p50, &p99
	}
	if c := now.waiting; c != nil {
		backlog := now.inFlight + c.TimersDue
		for _, kind := range outbox.Kinds {
			backlog += c.Pending[kind]
		}
		m.Backlog = &backlog
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.minutes = append(h.minutes, m)
	h.minutes = h.minutes[max(0, len(h.minutes)-minutesKept):]
}

// quantile estimates, in milliseconds, as Prometheus does: evenly between the bounds of a bucket, and what is above the
// last bound is there.
func quantile(within []uint64, q float64) float64 {
	rank := q * float64(within[len(within)-1])
	i := slices.IndexFunc(within, func(n uint64) bool { return float64(n) >= rank })
	if i >= len(latencyBuckets) {
		return 1000 * latencyBuckets[len(latencyBuckets)-1]
	}
	low, below := 0., 0.
	if i > 0 {
		low, below = latencyBuckets[i-1], float64(within[i-1])
	}
	return 1000 * (low + (latencyBuckets[i]-low)*(rank-below)/(float64(within[i])-below))
}

// within adds up the histograms of all routes but those of streams, which take as long as somebody listens.
func (l *Latency) within() []uint64 {
	sums := make([]uint64, len(latencyBuckets)+1)
	all := make(chan prometheus.Metric)
	go func() {
		l.of.Collect(all)
		close(all)
	}()
	for m := range all {
		var d dto.Metric
		if m.Write(&d) != nil || slices.ContainsFunc(d.Label, isStream) {
			continue
		}
		for i, b := range d.Histogram.Bucket {
			sums[i] += b.GetCumulativeCount()
		}
		sums[len(latencyBuckets)] += d.Histogram.GetSampleCount()
	}
	return sums
}

func isStream(label *dto.LabelPair) bool {
	return label.GetName() == latencyLabels[0] && (strings.Contains(label.GetValue(), "/watch") || strings.HasSuffix(label.GetValue(), "/changes") || strings.HasSuffix(label.GetValue(), "/export"))
}
