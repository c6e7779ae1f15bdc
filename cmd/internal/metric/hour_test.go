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
		for range 98 {
			l.Of("/workflow/api/v1/event", "POST").Observe(.004)
		}
		l.Of("/workflow/api/v1/event", "POST").Observe(.2)
		l.Of("/workflow/api/v1/create", "POST").Observe(60)
		l.Of("/workflow/api/v1/watch/:workflowId", "GET").Observe(3600)
		g.Answers, g.Shed = []gateway.Answers{{Count: 90}, {Count: 11}}, 4
		w.Events, w.Refused, w.OverQuota, w.InFlight = 70, 1, 2, 5
		read()
		pass(1)
		first := h.Minutes()
		if len(first) != 1 || first[0].Requests != 101 || first[0].Events != 70 || first[0].Refused != 7 || *first[0].Backlog != 10 {
			t.Errorf("the first minute is %+v", first)
		}
		if p50, p99 := *first[0].P50Milliseconds, *first[0].P99Milliseconds; p50 < 2.5 || p50 > 5 || p99 != 250 {
			t.Errorf("half took at most %v ms and 99 %% %v ms, want 2.5 to 5, and 250", p50, p99)
		}
		pass(1)
		if second := h.Minutes()[1]; second.Requests != 0 || second.Events != 0 || second.P50Milliseconds != nil || *second.Backlog != 10 {
			t.Errorf("the quiet minute is %+v", second)
		}
		pass(minutesKept)
		all := h.Minutes()
		if len(all) != minutesKept || slices.ContainsFunc(all, func(m api.Minute) bool { return m.Requests > 0 }) {
			t.Errorf("%d minutes are kept, of which the first has %d requests", len(all), all[0].Requests)
		}
		if err := h.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
