package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/incident"
	"troupe/actors/quota"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
)

// loops are workflows whose instances cause their own steps without end from go on.
var loops = map[string]string{
	"a send": `
id: loop
stateMachines: {m: {initial: a, states: {a: {on: {go: {actions: [{send: {event: go}}]}, hello: b}}, b: {type: final}}}}
`,
	"timers": `
id: loop
stateMachines: {m: {initial: rest, states: {rest: {on: {go: a}}, a: {after: {PT0S: b}, on: {hello: c}}, b: {after: {PT0.001S: a}, on: {hello: c}}, c: {type: final}}}}
`,
	"children": `
id: loop
stateMachines: {m: {initial: rest, states: {rest: {on: {go: a}}, a: {invoke: {workflow: quick, onDone: b}, on: {hello: c}}, b: {invoke: {workflow: quick, onDone: a}, on: {hello: c}}, c: {type: final}}}}
`,
	"a webhook": `
id: loop
webhooks: {call: {url: 'https://example.org/', onDone: again}}
stateMachines: {m: {initial: a, states: {a: {on: {go: {actions: [{webhook: {to: call}}]}, again: {actions: [{webhook: {to: call}}]}, hello: b}}, b: {type: final}}}}
`,
}

const quick = "id: quick\nstateMachines: {m: {initial: a, states: {a: {type: final}}}}\n"

func looping(t *testing.T, text string, limits quota.Limits, test func(h *harness, id string)) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now, Sender: &receiver{}, Quotas: limits}}), t}
		h.Publish(text, quick)
		id := h.Make(boss, "loop", "")
		h.MustSend(boss, "loop", id, "go", "")
		test(h, id)
		h.End()
	})
}

// TestALoopIsSlowedDown: after 100 own steps each waits twice as long as the one before, a minute at last, and there is one incident. It is
// slow again after a restart, and takes events of callers at once.
func TestALoopIsSlowedDown(t *testing.T) {
	for what, text := range loops {
		t.Run(what, func(t *testing.T) {
			looping(t, text, quota.Limits{}, func(h *harness, id string) {
				clocktest.Advance(10 * time.Minute)
				entries := func() int { return int(h.MustLook(boss, "loop", id).Sequence) }
				first := entries()
				assert.True(t, first >= 100 && first <= 2+100+6+10, "%d entries in ten minutes", first)
				list := h.incidents()
				assert.True(t, len(list) == 1 && list[0].Row.Kind == incident.Loop && list[0].Row.Instance == id && list[0].Row.Count >= 2, "incidents: %+v", list)
				err := h.ChangeIncident(context.Background(), boss, list[0].ID, false)
				assert.True(t, errors.Is(err, failure.ErrConflict) && strings.Contains(failure.Of(err).Reason, "leads it out"), "retry: got %v", err)
				h.SweepIdle()
				clocktest.Advance(10 * time.Minute)
				n := entries() - first
				assert.True(t, n >= 8 && n <= 12, "%d entries in the next ten minutes, in which it fell asleep", n)
				h.Restart()
				clocktest.Advance(10 * time.Minute)
				n = entries() - first
				assert.LessOrEqual(t, n, 12+100+6+10, "entries in the ten minutes after a restart")
				begun := time.Now()
				h.MustSend(boss, "loop", id, "hello", "")
				assert.LessOrEqual(t, time.Since(begun), time.Second, "the event of a caller took")
			})
		})
	}
}

// TestACallerCalmsALoopThatWasAsleep: the steps that an event of a caller begins are quick again, whether the instance was awake or not.
func TestACallerCalmsALoopThatWasAsleep(t *testing.T) {
	looping(t, loops["a send"], quota.Limits{}, func(h *harness, id string) {
		clocktest.Advance(10 * time.Minute)
		for what, sleep := range map[string]func(){"awake": func() {}, "asleep": func() { h.SweepIdle() }} {
			sleep()
			before := h.MustSend(boss, "loop", id, "go", "").Sequence
			clocktest.Advance(time.Second)
			n := h.MustLook(boss, "loop", id).Sequence - before
			assert.GreaterOrEqual(t, n, uint64(90), what)
			clocktest.Advance(10 * time.Minute)
		}
	})
}

// TestALoopHasAQuota: own steps count among the entries that an instance may have.
func TestALoopHasAQuota(t *testing.T) {
	looping(t, loops["a send"], quota.Limits{HistoryEntries: 20}, func(h *harness, id string) {
		clocktest.Advance(10 * time.Minute)
		assert.Equal(t, uint64(20), h.MustLook(boss, "loop", id).Sequence, "entries, want 20")
		list := h.incidents()
		assert.True(t, len(list) == 1 && strings.Contains(list[0].Error, "20 history entries"), "incidents: %+v", list)
	})
}

// TestManyOwnStepsAreNoLoop: what comes to an end, or has a caller in between, is not slowed down and no incident.
func TestManyOwnStepsAreNoLoop(t *testing.T) {
	const text = `
id: loop
stateMachines: {m: {initial: a, states: {a: {on: {go: {actions: [{foreach: {array: '${lists.range(90)}', item: n, do: [{send: {event: one}}]}}]}, one: {actions: [{assign: {svcPublic.n: '${svcPublic.?n.orValue(0) + 1}'}}]}, hello: b}}, b: {type: final}}}}
`
	looping(t, text, quota.Limits{}, func(h *harness, id string) {
		for range 5 {
			clocktest.Advance(time.Second)
			h.MustSend(boss, "loop", id, "go", "")
		}
		clocktest.Advance(time.Second)
		assert.Equal(t, `{"n":540}`, string(h.MustLook(boss, "loop", id).Public))
		assert.Empty(t, h.incidents(), "incidents")
	})
}

// TestDearStepsAreSlowedDown: one step a second is no loop, unless each takes long: then ten instances would take the processors from everybody.
func TestDearStepsAreSlowedDown(t *testing.T) {
	if testing.Short() {
		t.Skip("its steps take long, and TestALoopIsSlowedDown has the waits between them")
	}
	const text = `
id: loop
stateMachines: {m: {initial: rest, states: {rest: {on: {go: a}}, a: {entry: [{assign: {svcPublic.n: '${%s}'}}], after: {PT1S: {target: a, reenter: true}}, on: {hello: c}}, c: {type: final}}}}
`
	for what, c := range map[string]struct{ least, most int }{
		"1": {590, 610},
		"lists.range(1000).filter(x, x in lists.range(500)).size()": {20, 70},
	} {
		looping(t, fmt.Sprintf(text, what), quota.Limits{}, func(h *harness, id string) {
			clocktest.Advance(10 * time.Minute)
			n := int(h.MustLook(boss, "loop", id).Sequence)
			assert.True(t, n >= c.least && n <= c.most, "%s: %d entries in ten minutes, want %d to %d", what, n, c.least, c.most)
		})
	}
}
