package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/internal/instanceid"
	"troupe/actors/pending"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

const remind = `
id: remind
stateMachines:
  main:
    initial: waiting
    states:
      waiting:
        after: {'${svcPublic.?wait.orValue("PT1H")}': {target: late, actions: [{if: 'has(svcPublic.bad)', then: [{assign: {svcPublic.x: '${1 / 0}'}}]}]}}
        on: {decide: decided, again: {target: waiting, reenter: true}}
      late: {on: {decide: decided}}
      decided: {type: final}
`

// timed is a router on the bubble's clock, which can be set by an offset.
func timed(t *testing.T, test func(h *harness, set *atomic.Int64)) {
	synctest.Test(t, func(t *testing.T) {
		var set atomic.Int64
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{
			Clock: func() time.Time { return time.Now().Add(time.Duration(set.Load())) },
		}}), t}
		h.Publish(remind)
		test(h, &set)
		h.End()
	})
}

func (h *harness) rows(prefix func([]byte, key.Shard) []byte) int {
	h.t.Helper()
	n := 0
	h.Must(h.Store.Scan(prefix(nil, key.EveryShard), func(_, _ []byte) error { n++; return nil }))
	return n
}

func (h *harness) history(id string) string {
	h.t.Helper()
	return events(h.t.(*testing.T), h.MustLook(boss, "remind", id))
}

// TestRunningTimersAreListed: of all instances in the order in which they are due, page by page, without those that have come or failed.
func TestRunningTimersAreListed(t *testing.T) {
	timed(t, func(h *harness, _ *atomic.Int64) {
		h.Publish(remind, strings.Replace(remind, "id: remind", "id: other", 1))
		var due []string
		for n := range 40 {
			wait := 10 + n*7%40 // minutes, each once
			id := h.Make(boss, []string{"remind", "other"}[n%2], fmt.Sprintf(`{"wait":"PT%dM"}`, wait))
			due = append(due, fmt.Sprintf("%02d %s %s", wait, []string{"remind", "other"}[n%2], id))
		}
		slices.Sort(due)
		h.Make(boss, "remind", `{"wait":"PT1M","bad":true}`) // becomes an incident
		h.Make(boss, "remind", `{"wait":"PT1M"}`)
		begun := time.Now()
		clocktest.Advance(2 * time.Minute)
		lost := strings.Fields(due[5])
		damaged, _ := instanceid.Parse(lost[2])
		w := h.Store.NewBatch(h.Store.ShardOf(damaged))
		w.Set(key.Record(nil, h.Store.ShardOf(damaged), lost[1], damaged), []byte("damaged"))
		h.Must(h.Store.Commit(w))
		due = slices.Delete(due, 5, 6)
		for _, of := range []string{"", "other"} {
			for _, limit := range []int{1, 7, 1000} {
				var got []string
				for req := (pending.TimerList{User: "boss", Workflow: of, Limit: limit}); ; {
					page, err := h.Waiting.Timers(h.t.Context(), &req)
					h.Must(err)
					for _, timer := range page.Timers {
						got = append(got, fmt.Sprintf("%02d %s %s", timer.Due.Sub(begun)/time.Minute, timer.Workflow, timer.InstanceID))
						assert.True(t, timer.At.Node == "waiting" && timer.Event == "after.computed.waiting" && !timer.Failed, "got %+v", timer)
					}
					if req.Cursor = page.Next; req.Cursor == "" {
						break
					}
				}
				want := slices.DeleteFunc(slices.Clone(due), func(line string) bool { return of != "" && !strings.Contains(line, of) })
				assert.True(t, slices.Equal(got, want), "of %q, %d at a time: got\n%q\nwant\n%q", of, limit, got, want)
			}
		}
		_, err := h.Waiting.Timers(h.t.Context(), &pending.TimerList{User: "boss", Limit: 1, Cursor: "of another list"})
		assert.ErrorIs(t, err, failure.ErrInvalid, "a cursor of another list")
	})
}

// TestWhatIsOverdueComesAfterAStart in the order of the deadlines.
func TestWhatIsOverdueComesAfterAStart(t *testing.T) {
	timed(t, func(h *harness, _ *atomic.Int64) {
		var ids []string
		for range 200 {
			ids = append(ids, h.Make(boss, "remind", ""))
			clocktest.Advance(time.Second)
		}
		h.End()
		clocktest.Advance(24 * time.Hour)
		h.Begin()
		clocktest.Advance(time.Second)
		for _, id := range ids {
			require.Equal(t, ",after.computed.waiting", h.history(id))
		}
	})
}

func TestTheClockIsSet(t *testing.T) {
	timed(t, func(h *harness, set *atomic.Int64) {
		id := h.Make(boss, "remind", `{"wait":"PT1M"}`)
		clocktest.Advance(50 * time.Second)
		set.Store(int64(-2 * time.Minute))
		clocktest.Advance(50 * time.Second)
		assert.Empty(t, h.history(id), "it came before its time")
		set.Store(int64(time.Minute))
		clocktest.Advance(2 * time.Second)
		set.Store(int64(-5 * time.Minute))
		clocktest.Advance(8 * time.Minute)
		assert.Equal(t, ",after.computed.waiting", h.history(id))
	})
}

// TestTheServiceGoesOnAfterPanics of the goroutines that it has for itself: each takes its turn at a clock that panics.
func TestTheServiceGoesOnAfterPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Int64
		clock := func() time.Time {
			if broken.Add(-1) >= 0 {
				panic("the clock")
			}
			return time.Now()
		}
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: clock, IdleAfter: 2 * time.Second}, Disk: storetest.NewDisk()}), t}
		h.Publish("id: tick\nschedules: {often: {cron: '* * * * *'}}\nstateMachines: {m: {initial: a, states: {a: {after: {PT5M: b}}, b: {type: final}}}}\n")
		id := h.Make(boss, "tick", "")
		clocktest.Advance(time.Second)
		before := guard.Panics()
		broken.Store(100)
		clocktest.Advance(10 * time.Minute)
		assert.LessOrEqual(t, broken.Load(), int64(0), "the clock was not asked")
		if n := guard.Panics() - before; n < 50 || h.Metrics().Recovered < n {
			t.Errorf("%d panics were counted, %d are shown", n, h.Metrics().Recovered)
		}
		assert.Equal(t, ",after.PT5M.a", events(t, h.MustLook(boss, "tick", id)), "the timer")
		assert.GreaterOrEqual(t, len(h.Instances("tick")), 9, "instances, want those of the schedule, too")
		clocktest.Advance(10 * time.Second)
		assert.Zero(t, h.Metrics().Awake, "instances are awake: nothing puts them to sleep")
		h.End()
	})
}
