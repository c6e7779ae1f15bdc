package workflow_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// scramble does something at random while others do, too: what is refused for that is none of its business.
func scramble(h *harness, r *rand.Rand, ids []string) (deleted string, err error) {
	who, id, ctx := deskPeople[r.IntN(len(deskPeople))], ids[r.IntN(len(ids))], context.Background()
	switch r.IntN(8) {
	case 0:
		return id, h.deleteForm(requester, "desk", id)
	case 1:
		_, err = h.AddComment(&message.Comment{Load: message.Load{Caller: who, WorkflowID: "desk", InstanceID: id}, Text: "hello"})
	case 2, 3:
		page, failed := h.Worklists.List(ctx, &task.ListRequest{Caller: who, Scope: task.ScopeAll, Limit: 5})
		if failed != nil || len(page.Items) == 0 {
			return "", failed
		}
		i := page.Items[r.IntN(len(page.Items))]
		_, err = h.ChangeTask(ctx, &message.TaskChange{Caller: who, TaskID: i.TaskID(), Action: workflowtest.OneOf(r, message.Claim, message.Release)})
	default:
		_, err = h.Send(ctx, event(who, "desk", id, oneOf(r, deskEvents...), "", ""))
	}
	return "", err
}

// TestEveryCrashLeavesWorklistsWhole cuts the power amid events, claims, comments and deletions: whatever the store has then, its rows of
// tasks are those of its instances, and lists show them.
func TestEveryCrashLeavesWorklistsWhole(t *testing.T) {
	const workers, acts, crashes = 3, 120, 8
	disk := storetest.NewDisk()
	h := startOn(t, disk, workflow.Options{})
	h.Publish(desk)
	var crashed []*storetest.Disk
	var mu sync.Mutex
	gone := map[string]int{} // by how many crashes there were when that was acknowledged
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 15))
			var ids []string
			for n := range acts {
				if n%4 == 0 {
					ids = append(ids, h.createForm(requester, "desk", form.KindForm))
				}
				deleted, err := scramble(h, r, ids)
				for _, fatal := range []error{failure.ErrExecution, failure.ErrInternal, failure.ErrUnavailable, failure.ErrOutcomeUnknown} {
					assert.NotErrorIs(t, err, fatal)
				}
				mu.Lock()
				if deleted != "" && err == nil {
					gone[deleted] = len(crashed)
				}
				if worker == 0 && n%(acts/crashes) == 0 {
					crashed = append(crashed, disk.AfterCrash())
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	crashed = append(crashed, disk.AfterCrash())
	checkWorkRows(t, h)
	assert.True(t, len(gone) != 0 && len(expected(t, h, manager, task.ScopeAll)) != 0, "%d were deleted: this test shows nothing", len(gone))
	for n, disk := range crashed {
		again := startOn(t, disk, workflow.Options{})
		again.Publish(desk)
		checkWorkRows(t, again)
		again.checkNoLeftovers()
		for _, who := range deskPeople {
			want := inOrder(expected(t, again, who, task.ScopeAll), "due")
			got := listed(t, again, task.ListRequest{Caller: who, Scope: task.ScopeAll, Limit: 7})
			assert.True(t, slices.Equal(got, want), "crash %d: the tasks of %s: got\n%q, want\n%q", n, who.ID, got, want)
		}
		for id, at := range gone {
			_, err := again.Look(requester, "desk", id)
			assert.False(t, at < n && !errors.Is(err, failure.ErrNotFound), "crash %d: %s was deleted before crash %d, and is back: %v", n, id, at, err)
		}
		again.End()
	}
}

// TestALostRowOfATaskIsNoticed is the control of the one above: a row too few and one too many are found.
func TestALostRowOfATaskIsNoticed(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(desk)
	h.Make(requester, "desk", "")
	checkWorkRows(t, h)
	h.EachRow(func(k key.Parts, text, value []byte) {
		if k.Table != "work" && k.Table != "task" || k.ID == (key.ID{}) { // the mark of a shard says nothing of a task
			return
		}
		change := func(apply func(*persistence.Batch)) {
			w := h.Store.NewBatch(k.Shard)
			apply(w)
			h.Must(h.Store.Commit(w))
		}
		change(func(w *persistence.Batch) { w.Delete(text) })
		assert.NotEmpty(t, workRowFaults(t, h), "%s was lost, and nobody noticed", k)
		change(func(w *persistence.Batch) { w.Set(text, value) })
		checkWorkRows(t, h)
	})
}
