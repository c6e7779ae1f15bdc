package workflow_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// Two definitions as SCXML has them: the parent speaks with its child while both run.
const asking = `
id: asking
semantics: scxml
context: {svcPublic: {heard: null, final: null}}
stateMachines:
  main:
    initial: idle
    states:
      idle: {on: {go: busy}}
      busy:
        invoke: [{workflow: answering, id: helper, data: {svcPublic: {n: 20}}}]
        on:
          ready: {actions: [{send: {event: ask, to: '#_helper', data: {more: 1}}}]}
          answer: {actions: [{assign: {svcPublic.heard: '${_event.data}'}}, {send: {event: stop, to: '${_event.origin}'}}]}
          done.invoke.helper: {target: end, actions: [{assign: {svcPublic.final: '${_event.data}'}}]}
      end: {}
`

const answering = `
id: answering
semantics: scxml
context: {svcPublic: {n: null}}
stateMachines:
  main:
    initial: open
    states:
      open:
        entry: [{send: {event: ready, to: '#_parent'}}]
        on:
          ask: {actions: [{send: {event: answer, to: '#_parent', params: {sum: '${svcPublic.n + _event.data.more}'}}}]}
          stop: end
      end: {type: final, output: bye}
`

// speaking is a harness with those workflows.
func speaking(t *testing.T, test func(h *harness)) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now, Sender: &receiver{}}, Disk: storetest.NewDisk()}), t}
		h.Publish(asking, answering)
		test(h)
		h.End()
	})
}

// checkSpoken holds that everything was said once.
func (h *harness) checkSpoken(t *testing.T, id string) {
	t.Helper()
	reply := h.MustLook(boss, "asking", id)
	assert.Equal(t, `{"heard":{"sum":21},"final":"bye"}`, string(reply.Public), "the parent")
	assert.Equal(t, ",go,ready,answer,done.invoke.helper", events(t, reply), "the parent was told")
	child, _ := h.child("asking", id)
	assert.Equal(t, ",ask,stop", events(t, h.MustLook(boss, "answering", child)), "the child was told")
}

func TestParentAndChildSpeakWithEachOther(t *testing.T) {
	speaking(t, func(h *harness) {
		id := h.Make(boss, "asking", "{}")
		h.MustSend(boss, "asking", id, "go", "")
		clocktest.Advance(5 * time.Second)
		h.checkSpoken(t, id)
		assert.Zero(t, h.rows(key.DeliveriesPrefix), "messages are left")
	})
}

// TestNothingIsSaidTwice: the power fails again and again, at any step, and still each event is taken once.
func TestNothingIsSaidTwice(t *testing.T) {
	speaking(t, func(h *harness) {
		var ids []string
		for range 5 {
			ids = append(ids, h.Make(boss, "asking", "{}"))
		}
		for _, id := range ids {
			h.MustSend(boss, "asking", id, "go", "")
		}
		for n := range 24 {
			h.crashAt(n % 6)
		}
		clocktest.Advance(time.Minute)
		for _, id := range ids {
			h.checkSpoken(t, id)
		}
	})
}
