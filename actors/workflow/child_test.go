package workflow_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
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

// family is a harness with those workflows.
func family(t *testing.T, test func(h *harness)) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now, Sender: &receiver{}}, Disk: storetest.NewDisk()}), t}
		h.Publish(above, below, deepest)
		test(h)
		h.End()
	})
}

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

func TestAChildIsCreatedAndTellsItsParent(t *testing.T) {
	family(t, func(h *harness) {
		id := h.Make(boss, "above", `{"n":21}`)
		h.MustSend(boss, "above", id, "go", "")
		clocktest.Advance(time.Second)
		child, status := h.child("above", id)
		require.Equal(t, "running", status, "the child")
		assert.Equal(t, `{"n":21,"deep":false}`, string(h.MustLook(boss, "below", child).Public), "the child")
		_, status = h.child("below", child)
		assert.Equal(t, "running", status, "its own child")
		h.MustSend(boss, "below", child, "finish", "")
		clocktest.Advance(time.Second)
		reply := h.MustLook(boss, "above", id)
		assert.Equal(t, `{"n":21,"answer":{"workflowId":"below","instanceId":"`+child+`","output":{"twice":42}}}`, string(reply.Public))
		assert.Equal(t, ",go,done.invoke.busy", events(t, reply), "the parent was told")
		grandchild := h.pending("below", child).Children[0]
		assert.True(t, h.pending("deepest", grandchild.InstanceID).IsEnded, "the child's child goes on although the child is done")
		assert.Zero(t, h.rows(key.DeliveriesPrefix), "messages are left")
	})
}

func TestAChildIsCancelledWithItsNode(t *testing.T) {
	family(t, func(h *harness) {
		id := h.Make(boss, "above", "")
		h.MustSend(boss, "above", id, "go", "")
		clocktest.Advance(time.Second)
		child, _ := h.child("above", id)
		grandchild, _ := h.child("below", child)
		h.MustSend(boss, "above", id, "stop", "")
		clocktest.Advance(time.Second)
		_, status := h.child("above", id)
		assert.Equal(t, "cancelled", status, "for its parent the child")
		p, reply := h.pending("below", child), h.MustLook(boss, "below", child)
		assert.True(t, p.IsEnded && len(p.Timers) == 0 && strings.Contains(string(reply.Public), `"cancelledBy":"`+id+`"`), "%v %v", p, reply.Public)
		assert.True(t, h.pending("deepest", grandchild).IsEnded, "the child's child goes on")
		for workflowID, of := range map[string]string{"below": child, "deepest": grandchild} {
			_, err := h.Try(boss, workflowID, of, "finish", "", "")
			assert.ErrorIs(t, err, failure.ErrEnded, "%s takes an event", workflowID)
		}
		h.Restart()
		_, err := h.Try(boss, "below", child, "finish", "", "")
		assert.ErrorIs(t, err, failure.ErrEnded, "after a restart")
	})
}

// TestATreeIsStopped: the root, its child and the child of that, also when the power fails in between, and a child that was not created yet.
func TestATreeIsStopped(t *testing.T) {
	for _, crash := range []bool{false, true} {
		family(t, func(h *harness) {
			id := h.Make(boss, "above", "")
			h.MustSend(boss, "above", id, "go", "")
			clocktest.Advance(time.Second)
			child, _ := h.child("above", id)
			grandchild, _ := h.child("below", child)
			err := h.StopTree("below", child, "boss")
			assert.True(t, errors.Is(err, failure.ErrConflict) && strings.Contains(err.Error(), "above/"+id), "the child is not refused with its parent's name: %v", err)
			assert.ErrorIs(t, h.StopTree("above", "01M7YZAB2GNTJFQE62690KHSQT", "boss"), failure.ErrNotFound, "none")
			young := h.Make(boss, "above", "")
			h.MustSend(boss, "above", young, "go", "")
			for _, root := range []string{id, young} {
				for range 2 { // it can be asked again
					h.Must(h.StopTree("above", root, "boss"))
				}
			}
			if crash {
				h.crashAt(0)
			}
			clocktest.Advance(time.Minute)
			for of, workflowID := range map[string]string{id: "above", child: "below", grandchild: "deepest", young: "above"} {
				assert.True(t, h.pending(workflowID, of).IsEnded, "%s goes on", workflowID)
				assert.False(t, of != young && lastUser(t, h.MustLook(boss, workflowID, of)) != "boss", workflowID)
				_, err := h.Try(boss, workflowID, of, "finish", "", "")
				assert.False(t, workflowID != "above" && !errors.Is(err, failure.ErrEnded), "%s takes an event: %v", workflowID, err)
			}
			for _, workflowID := range []string{"below", "deepest"} {
				for _, i := range h.Instances(workflowID) {
					assert.True(t, h.pending(workflowID, instanceid.Text(i.ID)).IsEnded, "an instance of %s runs", workflowID)
				}
			}
			assert.Zero(t, h.rows(key.DeliveriesPrefix), "messages are left")
		})
	}
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

func TestAChildThatFails(t *testing.T) {
	family(t, func(h *harness) {
		for what, c := range map[string]struct{ public, event, want string }{
			"no such workflow":       {"", "bad", "not found"},
			"data that does not fit": {`{"n":-1}`, "go", "svcPublic"},
		} {
			id := h.Make(boss, "above", c.public)
			h.MustSend(boss, "above", id, c.event, "")
			clocktest.Advance(time.Second)
			got := string(h.MustLook(boss, "above", id).Public)
			assert.True(t, strings.Contains(got, c.want) && strings.Contains(got, "reason"), "%s: the parent has %s", what, got)
			_, status := h.child("above", id)
			assert.Equal(t, "failed", status, "%s: the child", what)
		}
		id := h.Make(boss, "above", "")
		h.MustSend(boss, "above", id, "go", "")
		clocktest.Advance(2 * time.Hour)
		assert.Contains(t, string(h.MustLook(boss, "above", id).Public), `"output":null`, "when it failed by itself the parent")
		assert.Zero(t, h.rows(key.DeliveriesPrefix), "messages are left")
	})
}

// TestAParentThatLeavesAtOnce: the child is created, and cancelled behind that, in this order.
func TestAParentThatLeavesAtOnce(t *testing.T) {
	family(t, func(h *harness) {
		id := h.Make(boss, "above", "")
		for range 3 {
			h.MustSend(boss, "above", id, "go", "")
			h.MustSend(boss, "above", id, "stop", "")
		}
		clocktest.Advance(time.Second)
		children := h.pending("above", id).Children
		require.Len(t, children, 3)
		for _, c := range children {
			p, err := h.Pending(&message.Load{Caller: boss, WorkflowID: "below", InstanceID: c.InstanceID})
			if errors.Is(err, failure.ErrNotFound) { // it was left before it was created
				continue
			}
			assert.True(t, err == nil && p.IsEnded, "%v goes on: %v", c, err)
		}
		assert.Zero(t, h.rows(key.DeliveriesPrefix), "messages are left")
	})
}

// TestNoOrphanAndNoSecondChild: the power fails again and again, at any step (persistence/PROMISES.md, "P30").
func TestNoOrphanAndNoSecondChild(t *testing.T) {
	family(t, func(h *harness) {
		var ids []string
		for range 5 {
			ids = append(ids, h.Make(boss, "above", `{"n":1}`))
		}
		for _, id := range ids {
			h.MustSend(boss, "above", id, "go", "")
		}
		for n := range 12 {
			h.crashAt(n % 6)
		}
		clocktest.Advance(time.Minute)
		for _, id := range ids {
			child, status := h.child("above", id)
			require.Equal(t, "running", status, "the child")
			h.MustSend(boss, "below", child, "finish", "")
		}
		for n := range 12 {
			h.crashAt(n % 6)
		}
		clocktest.Advance(time.Minute)
		for _, id := range ids {
			assert.Equal(t, ",go,done.invoke.busy", events(t, h.MustLook(boss, "above", id)), "the parent was told")
		}
		for workflowID, want := range map[string]int{"above": 5, "below": 5, "deepest": 5} {
			n, made := h.count(workflowID), h.made(workflowID)
			assert.True(t, n == want && made == want, "%d instances of %s, which were made %d times, want %d", n, workflowID, made, want)
		}
		n := h.rows(key.DeliveriesPrefix) + h.rows(key.StreamsPrefix)
		assert.Zero(t, n, "messages are left")
	})
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

// TestWhatNobodyTakesOfAChildIsKnown: after a restart, too, the child has ended.
func TestWhatNobodyTakesOfAChildIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now, Sender: &receiver{}}, Disk: storetest.NewDisk()}), t}
		h.Publish("id: deaf\nunmatched: ignore\nstateMachines: {main: {initial: open, states: {open: {invoke: {workflow: deepest}, on: {go: end}}, end: {type: final}}}}\n", deepest)
		id := h.Make(boss, "deaf", "")
		clocktest.Advance(time.Second)
		child, _ := h.child("deaf", id)
		h.MustSend(boss, "deepest", child, "finish", "")
		clocktest.Advance(time.Second)
		h.Restart()
		_, status := h.child("deaf", id)
		assert.Equal(t, "done", status, "after a restart the child")
		h.End()
	})
}
