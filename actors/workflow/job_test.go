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
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/hold"
	"troupe/actors/identity"
	"troupe/actors/job"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

const charging = `id: charging
jobs:
  charge: {allow: {roles: [payments]}, retry: {limit: 1, jitter: false}, timeout: PT1M, output: {type: object, required: [receipt], properties: {receipt: {type: string}}}}
context: {svcPublic: {receipt: none, priority: 50}}
stateMachines:
  m:
    initial: busy
    states:
      busy:
        invoke: {job: charge, data: {amount: 3}, onDone: {target: paid, actions: [{assign: {svcPublic.receipt: '${event.data.output.receipt}'}}]}, onError: review}
        on: {leave: gone}
      paid: {on: {leave: gone}}
      review: {on: {leave: gone}}
      gone: {type: final}
events: {leave: {}}
`

var (
	payments = workflowtest.Principal("pay", []string{"payments"})
	operator = workflowtest.Principal("op", nil, "mod-jobs")
)

func (h *harness) activate(types ...string) []job.Leased {
	h.t.Helper()
	synctest.Wait() // NB: until the rows of the shards were read
	leased, err := h.Jobs.Activate(context.Background(), &job.Activation{Caller: payments, Types: types, Worker: "w", Max: 10})
	require.NoError(h.t, err)
	return leased
}

func (h *harness) change(action job.Action, it job.Item) error {
	h.t.Helper()
	errs, err := h.Jobs.Change(context.Background(), &job.Request{Caller: payments, Action: action, Items: []job.Item{it}})
	require.NoError(h.t, err)
	return errs[0]
}

// TestAJobOfAnInstance begins when its state is entered and is done once: its output is checked before anything counts, and
// whoever says it again is answered as the first time, also after a restart. Who leaves the state ends it.
func TestAJobOfAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now}, Disk: storetest.NewDisk()}), t}
		h.Publish(charging)
		id, other := h.Make(boss, "charging", ""), h.Make(boss, "charging", "")
		leased := h.activate("charge")
		require.Len(t, leased, 2)
		l := leased[0]
		assert.Equal(t, []any{id, "charging", uint64(1), "m", "busy", `{"amount":3}`, 1, 1}, []any{l.InstanceID, l.WorkflowID, l.Version, l.StateMachineID, l.NodeID, string(l.Data), l.Attempt, l.AttemptsLeft})
		it := job.Item{JobID: l.JobID, Lease: l.Lease, Output: value(`{"receipt":3}`)}
		err := h.change(job.Complete, it)
		assert.ErrorIs(t, err, failure.ErrUnprocessable)
		assert.ErrorContains(t, err, "receipt")
		it.Output = value(`{"receipt":"r-1"}`)
		require.NoError(t, h.change(job.Complete, it))
		require.NoError(t, h.change(job.Complete, it), "again")
		h.Restart()
		require.NoError(t, h.change(job.Complete, it), "again, after a restart")
		assert.Equal(t, `,done.invoke.busy`, events(t, h.MustLook(boss, "charging", id)))

		h.MustSend(boss, "charging", other, "leave", "")
		assert.ErrorIs(t, h.change(job.Complete, job.Item{JobID: leased[1].JobID, Lease: leased[1].Lease, Output: it.Output}), failure.ErrEnded)
		assert.ErrorIs(t, h.change(job.Extend, job.Item{JobID: leased[1].JobID, Lease: leased[1].Lease, By: time.Second}), failure.ErrEnded)
		h.End()
	})
}

// TestAJobThatFails comes back as its type says, and tells its instance when that was the last attempt; and a lease that
// outlives a restart still counts.
func TestAJobThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now}, Disk: storetest.NewDisk()}), t}
		h.Publish(charging)
		id := h.Make(boss, "charging", "")
		l := h.activate("charge")[0]
		h.Restart()
		assert.Empty(t, h.activate("charge"))
		require.NoError(t, h.change(job.Fail, job.Item{JobID: l.JobID, Lease: l.Lease, Message: "no card"}))
		assert.Empty(t, h.activate("charge"))
		page, err := h.Jobs.List(t.Context(), &job.Query{Caller: operator, JobID: l.JobID, Limit: 1})
		require.NoError(t, err)
		j := page.Jobs[0]
		assert.Equal(t, []any{job.Waiting, 1, 1, "no card", `{"amount":3}`}, []any{j.State, j.Attempts, j.AttemptsLeft, j.Message, string(j.Data)})
		leased, err := h.Jobs.Activate(t.Context(), &job.Activation{Caller: payments, Types: []string{"charge"}, Max: 1, Wait: time.Minute})
		require.NoError(t, err)
		l = leased[0]
		require.NoError(t, h.change(job.Fail, job.Item{JobID: l.JobID, Lease: l.Lease, Message: "none still"}))
		assert.Equal(t, ",error.invoke.busy", events(t, h.MustLook(boss, "charging", id)))
		page, err = h.Jobs.List(t.Context(), &job.Query{Caller: operator, Limit: 10})
		require.NoError(t, err)
		assert.Empty(t, page.Jobs)
		h.End()
	})
}

// TestARestoredStoreGivesNoJobs until somebody says that it may, also after a restart; who waits is told then.
func TestARestoredStoreGivesNoJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now}, Disk: storetest.NewDisk()}), t}
		h.Publish(charging)
		h.Make(boss, "charging", "")
		w := h.Store.NewBatch(key.Meta)
		require.NoError(t, errors.Join(hold.Restored{Moment: time.Now()}.Put(w), h.Store.Commit(w)))
		h.Restart()
		assert.Empty(t, h.activate("charge"))
		assert.ErrorContains(t, h.Jobs.Paused(), "`troupe job resume`")
		require.NoError(t, h.Resume(hold.Outbox))
		h.Restart()
		got := make(chan []job.Leased)
		go func() {
			leased, err := h.Jobs.Activate(t.Context(), &job.Activation{Caller: payments, Types: []string{"charge"}, Max: 1, Wait: time.Minute})
			assert.NoError(t, err)
			got <- leased
		}()
		<-time.After(30 * time.Second)
		require.NoError(t, h.Resume(hold.Jobs))
		assert.Len(t, <-got, 1)
		require.NoError(t, h.Resume(hold.Schedules))
		h.Restart()
		assert.NoError(t, h.Jobs.Paused())
		assert.NoError(t, h.Held())
		h.End()
	})
}

// TestATypeThatTheNewestVersionLacks goes on as the newest one says that has it: those whom it lets do what waits still, within its
// schema, also after a restart. A version that has the type again counts at once.
func TestATypeThatTheNewestVersionLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now}, Disk: storetest.NewDisk()}), t}
		h.Publish(charging)
		h.Make(boss, "charging", "")
		h.Make(boss, "charging", "")
		nobodys := strings.Replace(charging, "roles: [payments]", "roles: [nobody]", 1)
		publish := func(version int, text string) {
			h.Publish(fmt.Sprintf("version: %d\n%s", version, text))
		}
		publish(2, nobodys)
		publish(3, charging)
		publish(4, strings.NewReplacer("charge:", "settle:", "job: charge", "job: settle").Replace(nobodys))
		leased := h.activate("charge")
		require.Len(t, leased, 2)
		mayNot := func(typ string) {
			_, err := h.Jobs.Activate(t.Context(), &job.Activation{Caller: payments, Types: []string{typ}, Max: 1})
			assert.ErrorIs(t, err, failure.ErrForbidden)
		}
		mayNot("settle")
		h.Restart()
		it := job.Item{JobID: leased[0].JobID, Lease: leased[0].Lease, Output: value(`{}`)}
		assert.ErrorIs(t, h.change(job.Complete, it), failure.ErrUnprocessable)
		it.Output = value(`{"receipt":"r"}`)
		assert.NoError(t, h.change(job.Complete, it))
		publish(5, nobodys)
		mayNot("charge")
		assert.ErrorIs(t, h.change(job.Complete, job.Item{JobID: leased[1].JobID, Lease: leased[1].Lease, Output: it.Output}), failure.ErrForbidden)
		h.End()
	})
}

// TestWhoMayHaveJobs: those whom the definition lets, and those with the privilege.
func TestWhoMayHaveJobs(t *testing.T) {
	h := startOn(t, nil, workflow.Options{})
	h.Publish(charging)
	id := h.Make(boss, "charging", "")
	_, err := h.Jobs.Activate(t.Context(), &job.Activation{Caller: mary, Types: []string{"charge"}, Max: 1})
	assert.ErrorIs(t, err, failure.ErrForbidden)
	_, err = h.Jobs.Activate(t.Context(), &job.Activation{Caller: operator, Types: []string{"charg"}, Max: 1})
	assert.ErrorIs(t, err, failure.ErrNotFound)
	leased, err := h.Jobs.Activate(t.Context(), &job.Activation{Caller: operator, Types: []string{"charge"}, Max: 1, Wait: time.Minute})
	require.NoError(t, err)
	require.Len(t, leased, 1)
	errs, err := h.Jobs.Change(t.Context(), &job.Request{Caller: mary, Action: job.Complete, Items: []job.Item{{JobID: leased[0].JobID, Lease: leased[0].Lease}}})
	require.NoError(t, err)
	assert.ErrorIs(t, errs[0], failure.ErrForbidden)
	_, err = h.Jobs.List(t.Context(), &job.Query{Caller: payments, Limit: 1})
	assert.ErrorIs(t, err, failure.ErrForbidden)

	require.NoError(t, h.Delete(t.Context(), "boss", "charging", id, false))
	assert.ErrorIs(t, h.change(job.Complete, job.Item{JobID: leased[0].JobID, Lease: leased[0].Lease}), failure.ErrNotFound)
	counts, err := h.Jobs.Types(t.Context(), operator)
	require.NoError(t, err)
	for _, c := range counts {
		assert.Zero(t, c.Waiting+c.Running+c.Failed, "%+v", c)
	}
}

// TestMessagesOfWorkers are withheld, as the data, from operators who may not read the instance.
func TestMessagesOfWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now}}), t}
		h.Publish(strings.Replace(charging, "id: charging\n", "id: closed\nallow: {read: {roles: [payments]}}\n", 1))
		h.Make(boss, "closed", "")
		l := h.activate("charge")[0]
		require.NoError(t, h.change(job.Fail, job.Item{JobID: l.JobID, Lease: l.Lease, Message: "card 4711 is blocked"}))
		seen := "card 4711 is blocked"
		for name, c := range map[string]struct {
			caller        *identity.Principal
			message, data string
		}{
			"an operator":               {workflowtest.Principal("ops", nil, "mod-workflows"), "", ""},
			"an operator who may read":  {workflowtest.Principal("ops", []string{"payments"}, "mod-workflows"), seen, `{"amount":3}`},
			"who may have all the jobs": {operator, seen, ""},
		} {
			page, err := h.Jobs.List(t.Context(), &job.Query{Caller: c.caller, JobID: l.JobID, Limit: 1})
			require.NoError(t, err)
			require.Len(t, page.Jobs, 1, name)
			assert.Equal(t, []string{c.message, c.data}, []string{page.Jobs[0].Message, string(page.Jobs[0].Data)}, name)
			page, err = h.Jobs.List(t.Context(), &job.Query{Caller: c.caller, Limit: 10})
			require.NoError(t, err)
			require.Len(t, page.Jobs, 1, name)
			assert.Equal(t, c.message, page.Jobs[0].Message, name)
		}
		h.End()
	})
}
