package metric

import (
	"context"
	"maps"
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

// Minute is what a node did in one minute of the clock, after a start in what was left of it, and what waited at its end.
type Minute struct {
	End      int64 `json:"end"` // Unix, seconds
	Requests int64 `json:"requests"`
	Events   int64 `json:"events"`
	Refused  int64 `json:"refused"`
	// Within counts the requests that took at most each of latencyBuckets, and at last all.
	Within  []uint64 `json:"within"`
	Backlog *int64   `json:"backlog"` // nil: it could not be counted
}

// Hour is what the server did in each of the last minutes: without a Prometheus, all that is known of the time before now.
type Hour struct {
	readings func() *Readings
	latency  *Latency
	cancel   context.CancelFunc
	done     sync.WaitGroup

	mu      sync.Mutex
	minutes []Minute // the oldest first
}

// StartHour begins to read at the end of each minute of the clock, so that the minutes of all nodes are the same ones.
func StartHour(read func() *Readings, l *Latency) *Hour {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Hour{readings: read, latency: l, cancel: cancel}
	before := h.read()
	h.done.Go(func() {
		for {
			end := time.Now().Add(time.Second).Truncate(time.Minute).Add(time.Minute) // NB: a clock that is slewed may end a minute early
			select {
			case <-time.After(time.Until(end)):
				now := h.read()
				h.add(end, &before, &now)
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
func (h *Hour) Minutes() []Minute {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.minutes)
}

// tally is what was counted since the start.
type tally struct {
	requests, events, refused, inFlight int64
	waiting                             *pending.Counts // nil: it could not be read
	within                              []uint64        // that of a Minute
}

func (h *Hour) read() tally {
	r := h.readings()
	g, w := &r.Gateway, &r.Workflow
	t := tally{waiting: r.Waiting, events: w.Events, refused: int64(g.Shed) + w.Refused + w.OverQuota, inFlight: w.InFlight, within: h.latency.within()} //nolint:gosec // a count
	t.requests = -int64(g.Taken)                                                                                                                         //nolint:gosec // a count; the node that forwarded one counts it
	for _, a := range g.Answers {
		t.requests += int64(a.Count) //nolint:gosec // a count
	}
	return t
}

func (h *Hour) add(end time.Time, before, now *tally) {
	m := Minute{
		End: end.Unix(), Requests: max(0, now.requests-before.requests), // NB: what is forwarded is taken in one minute and answered in another
		Events: now.events - before.events, Refused: now.refused - before.refused, Within: make([]uint64, len(now.within)),
	}
	for i := range m.Within {
		m.Within[i] = now.within[i] - before.within[i]
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

// add puts together what two nodes did in the same minute.
func (m *Minute) add(of *Minute) {
	m.Requests, m.Events, m.Refused = m.Requests+of.Requests, m.Events+of.Events, m.Refused+of.Refused
	for i := range min(len(m.Within), len(of.Within)) { // NB: a node of another version may have other buckets
		m.Within[i] += of.Within[i]
	}
	if m.Backlog != nil && of.Backlog != nil {
		*m.Backlog += *of.Backlog
	} else {
		m.Backlog = nil
	}
}

// LoadOf puts together what some nodes did. Rates and backlogs are sums; quantiles are those of all requests, from the sum of
// the histograms.
func LoadOf(nodes ...[]Minute) api.Load {
	sums := map[int64]*Minute{}
	for _, minutes := range nodes {
		for _, m := range minutes {
			sum := sums[m.End]
			if sum == nil {
				sum = &Minute{Within: make([]uint64, len(latencyBuckets)+1), Backlog: new(int64)}
				sums[m.End] = sum
			}
			sum.add(&m)
		}
	}
	load := api.Load{Nodes: len(nodes)}
	for _, end := range slices.Sorted(maps.Keys(sums)) {
		sum := sums[end]
		m := api.Minute{TS: time.Unix(end, 0).UTC().Format(statemachine.TimeLayout), Requests: sum.Requests, Events: sum.Events, Refused: sum.Refused, Backlog: sum.Backlog}
		if sum.Within[len(latencyBuckets)] > 0 {
			p50, p99 := quantile(sum.Within, .5), quantile(sum.Within, .99)
			m.P50Milliseconds, m.P99Milliseconds = &p50, &p99
		}
		load.Minutes = append(load.Minutes, m)
	}
	load.Minutes = load.Minutes[max(0, len(load.Minutes)-minutesKept):]
	return load
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
