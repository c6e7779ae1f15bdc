package workflow_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"troupe/actors/message"
	"troupe/persistence/key"
)

const above = `
id: above
stateMachines:
  main:
    initial: open
    states:
      open: {on: {go: busy, bad: wrong}}
      busy:
        invoke: {workflow: below, data: {svcPublic: {n: '${svcPublic.?n.orValue(0)}', deep: '${svcPublic.?deep.orValue(false)}'}}, onDone: {target: good, actions: [{assign: {svcPublic.answer: '${event.data}'}}]}, onError: {target: open, actions: [{assign: {svcPublic.reason: '${event.data}'}}]}}
        on: {stop: open}
      wrong: {invoke: {workflow: nothing, onError: {target: open, actions: [{assign: {svcPublic.reason: '${event.data.message}'}}]}}}
      good: {type: final}
`

const below = `
id: below
create: {svcPublic: false}
schema: {svcPublic: {type: object, properties: {n: {type: number, minimum: 0}}}}
stateMachines:
  main:
    initial: open
    states:
      open:
        invoke: {workflow: deepest}
        after: {PT1H: late}
        on: {finish: end, fail: late, parent.cancelled: {actions: [{assign: {svcPublic.cancelledBy: '${parent.instanceId}'}}]}}
      end: {type: final, output: {twice: '${svcPublic.n * 2}'}}
      late: {type: final, tags: [failed]}
`

const deepest = `
id: deepest
stateMachines: {main: {initial: open, states: {open: {on: {finish: end}}, end: {type: final}}}}
`

// child returns the id of the last child of an instance, and what has become of it.
func (h *harness) child(workflowID, id string) (child, status string) {
	h.t.Helper()
	children := h.pending(workflowID, id).Children
	if len(children) == 0 {
		return "", ""
	}
	c := children[len(children)-1]
	return c.InstanceID, c.Status.String()
}

// lastUser is the user of the last entry of a history.
func lastUser(t *testing.T, r *message.Reply) string {
	t.Helper()
	var record struct {
		History []struct {
			User string `json:"user"`
		} `json:"svcHistory"`
	}
	require.NoError(t, json.Unmarshal(r.AppendRecord(nil), &record))
	return record.History[len(record.History)-1].User
}

// crashAt loses the power behind about so many syncs of the log, in the middle of the next one, and starts again.
func (h *harness) crashAt(syncs int) {
	h.t.Helper()
	for range syncs {
		h.Disk.Hold()
		synctest.Wait()
		h.Disk.Release()
	}
	h.Disk.Hold()
	synctest.Wait()
	after := h.Disk.AfterCrash()
	h.Disk.Release()
	h.End()
	h.Disk = after
	h.Begin()
}

func (h *harness) count(workflowID string) (n int) {
	h.t.Helper()
	h.Must(h.Store.Scan(key.RecordPrefix(nil, key.EveryShard, workflowID), func(_, _ []byte) error { n++; return nil }))
	return n
}

// made is how often instances of a workflow were created.
func (h *harness) made(workflowID string) int {
	h.t.Helper()
	count, err := h.Store.CountAll(key.CountPrefix(nil, key.EveryShard, workflowID))
	h.Must(err)
	return int(count)
}
