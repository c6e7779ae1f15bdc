package workflow_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/quota"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
)

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

// TestDearStepsAreSlowedDown: one step a second is no loop, unless each takes long: then ten instances would take the processors from everybody.
func TestDearStepsAreSlowedDown(t *testing.T) {
	if testing.Short() {
		t.Skip("its steps take long, and loop.txt has the waits between them")
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
