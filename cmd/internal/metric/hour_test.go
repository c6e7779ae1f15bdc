package metric

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/pending"
	"troupe/actors/workflow"
	"troupe/gateway"
	"troupe/gateway/api"
)

// TestTheLastHour: minutes have what was counted in them, quantiles of requests but not of streams, and what waits at their
// end; the oldest go.
func TestTheLastHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gateway.Metrics
		var w workflow.Metrics
		l := NewLatency()
		waiting := &pending.Counts{TimersDue: 2, Pending: map[string]int64{"webhook": 3}}
		var now atomic.Pointer[Readings]
		read := func() { now.Store(&Readings{Gateway: g, Workflow: w, Waiting: waiting}) }
		read()
		h := StartHour(now.Load, l)
		pass := func(minutes time.Duration) {
			<-time.After(minutes * time.Minute)
			synctest.Wait()
		}
		<-time.After(time.Second)
		other := []Minute{{End: time.Now().Truncate(time.Minute).Add(time.Minute).Unix(), Requests: 300, Events: 5, Within: make([]uint64, len(latencyBuckets)+1), Backlog: new(int64)}}
		for i, bound := range latencyBuckets {
			if bound >= .5 {
				other[0].Within[i] = 300
			}
		}
		other[0].Within[len(latencyBuckets)] = 300
		for range 98 {
			l.Of("/workflow/api/v1/event", "POST").Observe(.004)
		}
		l.Of("/workflow/api/v1/event", "POST").Observe(.2)
		l.Of("/workflow/api/v1/create", "POST").Observe(60)
		l.Of("/workflow/api/v1/watch/:workflowId", "GET").Observe(3600)
		g.Answers, g.Shed, g.Taken = []gateway.Answers{{Count: 90}, {Count: 13}}, 4, 2
		w.Events, w.Refused, w.OverQuota, w.InFlight = 70, 1, 2, 5
		read()
		pass(1)
		first := LoadOf(h.Minutes()).Minutes
		if len(first) != 1 || first[0].Requests != 101 || first[0].Events != 70 || first[0].Refused != 7 || *first[0].Backlog != 10 {
			t.Errorf("the first minute is %+v", first)
		}
		if p50, p99 := *first[0].P50Milliseconds, *first[0].P99Milliseconds; p50 < 2.5 || p50 > 5 || p99 != 250 {
			t.Errorf("half took at most %v ms and 99 %% %v ms, want 2.5 to 5, and 250", p50, p99)
		}
		// Another node was slower: most of all requests are its own, which no mean of two quantiles would show.
		both := LoadOf(h.Minutes(), other)
		if m := both.Minutes[0]; both.Nodes != 2 || len(both.Minutes) != 1 || m.Requests != 401 || m.Events != 75 || *m.Backlog != 10 || *m.P50Milliseconds < 250 {
			t.Errorf("both nodes did %+v in the first minute, half in %v ms", m, *m.P50Milliseconds)
		}
		pass(1)
		if second := LoadOf(h.Minutes()).Minutes[1]; second.Requests != 0 || second.Events != 0 || second.P50Milliseconds != nil || *second.Backlog != 10 {
			t.Errorf("the quiet minute is %+v", second)
		}
		pass(minutesKept)
		all := LoadOf(h.Minutes()).Minutes
		if len(all) != minutesKept || slices.ContainsFunc(all, func(m api.Minute) bool { return m.Requests > 0 }) {
			t.Errorf("%d minutes are kept, of which the first has %d requests", len(all), all[0].Requests)
		}
		if err := h.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
