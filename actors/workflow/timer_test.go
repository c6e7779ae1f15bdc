package workflow_test

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/message"
	"troupe/actors/query"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/pending"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/storetest"
)

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

// TestPagesThatNobodyGave are refused: a cursor of another list, behind the end of a history, without a number, and behind its first entry.
func TestPagesThatNobodyGave(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(john, "order", "")
	_, err := h.Waiting.Timers(t.Context(), &pending.TimerList{User: "boss", Limit: 1, Cursor: "of another list"})
	assert.ErrorIs(t, err, failure.ErrInvalid, "timers")
	for position, descending := range map[string]bool{string(binary.BigEndian.AppendUint64(nil, math.MaxUint64)): false, "": false, string(binary.BigEndian.AppendUint64(nil, 1)): true} {
		list := query.List{"history", "order", id}
		if descending {
			list = append(list, "desc")
		}
		_, err := h.History(&message.History{Caller: john, WorkflowID: "order", InstanceID: id, Limit: 2, Cursor: list.Cursor([]byte(position)), Descending: descending})
		assert.ErrorIs(t, err, failure.ErrInvalid, "a history behind %x", position)
	}
}
