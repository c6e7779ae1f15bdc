package workflow_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/job"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// errand has each kind of what a state waits for, a key, and an end after which it is deleted.
const errand = `
id: errand
retention: {done: PT2M}
events: {task.overdue: {}}
jobs: {dig: }
stateMachines:
  main:
    initial: open
    states:
      open: {on: {begin: working}}
      working:
        invoke: {job: dig, data: {deep: '${svcPublic.deep}'}}
        task: {due: PT1M}
        after: {PT1H: open}
        on: {deeper: {}, close: closed, leave: open}
      closed: {type: final}
`

func resetTo(id string, to uint64, retry string) *message.Reset {
	return &message.Reset{
		Load: message.Load{Caller: boss, WorkflowID: "errand", InstanceID: id, WithHistory: true}, To: to, Reason: "the hole was wrong", Retry: message.Retry{Key: retry},
	}
}

// rowsOf are the rows of an instance in the lists that name it by what it is like now.
func (h *harness) rowsOf(id string) map[string]int {
	rows := map[string]int{}
	h.EachRow(func(k key.Parts, _, stored []byte) {
		if k.ID == h.ID(id) || k.Table == "business" && bytes.Equal(stored, k.ID[:]) {
			rows[k.Table]++
		}
	})
	return rows
}

// TestReset resets an instance from its end, across restarts (gateway/INTERFACE.md, "Resetting an instance"): it is what it was, others of what it waited for come, and all rows fit.
func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worker{&harness{workflowtest.Start(t, workflowtest.Options{Disk: storetest.NewDisk(), Workflow: workflow.Options{Clock: time.Now}}), t}, []string{"dig"}, synctest.Wait}
		w.Publish(errand)
		id := w.Make(boss, "errand", "")
		w.MustSend(boss, "errand", id, "begin", `{"deep":3}`)
		w.MustSend(boss, "errand", id, "deeper", `{"deep":5}`)
		first := w.take(10)
		require.Len(t, first, 1)
		working := w.MustLook(boss, "errand", id)
		w.MustSend(boss, "errand", id, "close", `{"deep":7}`)
		w.checkStore()
		ended := w.rowsOf(id)

		for to, kind := range map[uint64]failure.Kind{5: failure.ErrNotFound, 900: failure.ErrNotFound} {
			_, err := w.Reset(t.Context(), resetTo(id, to, ""))
			require.ErrorIs(t, err, kind, "to %d", to)
		}
		old := resetTo(id, 3, "once")
		old.IfMatch = []uint64{3}
		_, err := w.Reset(t.Context(), old)
		require.ErrorIs(t, err, failure.ErrPrecondition)
		old.IfMatch = []uint64{4}
		reply, err := w.Reset(t.Context(), old)
		require.NoError(t, err)
		assert.Equal(t, ",begin,deeper,close,reset", events(t, reply))
		assert.Equal(t, uint64(5), reply.Sequence)
		assert.Equal(t, string(working.Public), string(reply.Public))
		assert.Equal(t, string(working.States), string(reply.States))
		w.checkStore()
		assert.NotEqual(t, ended, w.rowsOf(id))

		w.Restart()
		again := w.take(10)
		require.Len(t, again, 1, "the job is another one")
		assert.NotEqual(t, first[0].JobID, again[0].JobID)
		assert.Equal(t, `{"deep":5}`, string(again[0].Data), "evaluated with the data of then")
		require.ErrorIs(t, w.do(job.Complete, job.Item{JobID: first[0].JobID, Lease: first[0].Lease}), failure.ErrEnded)
		repeated, err := w.Reset(t.Context(), resetTo(id, 3, "once"))
		require.NoError(t, err)
		assert.Equal(t, uint64(5), repeated.Sequence, "the same request again")
		reused := resetTo(id, 2, "once")
		reused.Retry.Fingerprint[0] = 1
		_, err = w.Reset(t.Context(), reused)
		require.ErrorIs(t, err, failure.ErrKeyReused)

		<-time.After(3 * time.Minute) // the retention would have come
		synctest.Wait()
		assert.Equal(t, ",begin,deeper,close,reset,task.overdue", events(t, w.MustLook(boss, "errand", id)))
		w.MustSend(boss, "errand", id, "close", "")
		w.checkStore()
		<-time.After(3 * time.Minute)
		synctest.Wait()
		_, err = w.Look(boss, "errand", id)
		require.ErrorIs(t, err, failure.ErrNotFound, "it is done for long enough")
	})
}

// TestResetAfterAReload: the same text is another definition then, and the instance that goes back has its elements.
func TestResetAfterAReload(t *testing.T) {
	h := &harness{workflowtest.Start(t, workflowtest.Options{}), t}
	h.Publish(errand)
	id := h.Make(boss, "errand", "")
	waits := func() [2]int {
		h.checkStore()
		rows := h.rowsOf(id)
		return [2]int{rows["node"], rows["timer"]}
	}
	open := waits()
	h.MustSend(boss, "errand", id, "begin", `{"deep":3}`)
	working := waits()
	require.NotEqual(t, open, working)
	for range 2 {
		for to, want := range map[uint64][2]int{1: open, 2: working} {
			h.Publish(errand)
			h.Must(workflowtest.Second(h.Reset(t.Context(), resetTo(id, to, ""))))
			require.Equal(t, want, waits(), "to %d", to)
		}
	}
	h.Publish(errand)
	h.Must(workflowtest.Second(h.Reset(t.Context(), resetTo(id, 2, ""))))
	h.MustSend(boss, "errand", id, "leave", "")
	require.Equal(t, open, waits(), "nothing of the state stays")
	h.Restart()
	require.Equal(t, open, waits())
}

// TestResetIsBeforeRetention resets two of three instances of a shard while the first one is deleted, when the page with all of them has been
// read: one goes on, and is deleted never, and one ends once more, and is deleted a whole time later.
func TestResetIsBeforeRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *harness
		var ids, gone []string
		o := workflow.Options{Clock: time.Now, Audit: func(_ context.Context, _, _, target string) error {
			if gone = append(gone, target); len(gone) > 1 {
				return nil
			}
			for _, id := range ids[1:] {
				h.Must(workflowtest.Second(h.Reset(t.Context(), resetTo(id, 2, ""))))
			}
			h.MustSend(boss, "errand", ids[2], "close", "")
			return nil
		}}
		h = &harness{workflowtest.Start(t, workflowtest.Options{Workflow: o}), t}
		h.Publish(errand)
		<-time.After(5 * time.Second) // NB: no look comes between the ends of the three
		for len(ids) < 3 {
			if id := h.Make(boss, "errand", ""); len(ids) == 0 || h.Store.ShardOf(h.ID(id)) == h.Store.ShardOf(h.ID(ids[0])) {
				ids = append(ids, id)
			}
		}
		for _, id := range ids {
			h.MustSend(boss, "errand", id, "begin", `{"deep":3}`)
			h.MustSend(boss, "errand", id, "close", "")
			<-time.After(time.Millisecond) // NB: the first of the page is the first that was done
		}
		<-time.After(2*time.Minute + 20*time.Second)
		synctest.Wait()
		require.Equal(t, []string{"errand/" + ids[0]}, gone)
		assert.Equal(t, ",begin,close,reset", events(t, h.MustLook(boss, "errand", ids[1])))
		assert.Equal(t, ",begin,close,reset,close", events(t, h.MustLook(boss, "errand", ids[2])))
		<-time.After(3 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"errand/" + ids[0], "errand/" + ids[2]}, gone)
		assert.Equal(t, ",begin,close,reset,task.overdue", events(t, h.MustLook(boss, "errand", ids[1])))
	})
}

// TestResetTakesTheKeyBack, unless another instance has it.
func TestResetTakesTheKeyBack(t *testing.T) {
	h := &harness{workflowtest.Start(t, workflowtest.Options{}), t}
	h.Publish(shipment)
	first, err := h.Send(t.Context(), toKey("a", "add", ""))
	require.NoError(t, err)
	h.MustSend(boss, "shipment", first.InstanceID, "close", "")
	second, err := h.Send(t.Context(), toKey("a", "add", ""))
	require.NoError(t, err)
	require.NotEqual(t, first.InstanceID, second.InstanceID)
	reset := func() error {
		r := resetTo(first.InstanceID, 2, "")
		r.WorkflowID = "shipment"
		return workflowtest.Second(h.Reset(t.Context(), r))
	}
	require.ErrorIs(t, reset(), failure.ErrKeyTaken)
	h.MustSend(boss, "shipment", second.InstanceID, "close", "")
	require.NoError(t, reset())
	require.Empty(t, h.keyFaults())
	third, err := h.Send(t.Context(), toKey("a", "add", ""))
	require.NoError(t, err)
	assert.Equal(t, first.InstanceID, third.InstanceID, "it has its key")
	require.NoError(t, reset(), "it has not ended")
	require.Empty(t, h.keyFaults())
}
