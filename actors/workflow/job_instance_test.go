package workflow_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/inventory"
	"troupe/actors/job"
	"troupe/actors/pending"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/storetest"
)

// labor has two jobs at a time. Of the first, nothing takes the failure.
const labor = `id: labor
jobs: {dig: {retry: {limit: 0}}, carry: {retry: {limit: 0}}, sieve: }
stateMachines:
  m:
    initial: idle
    states:
      idle: {on: {begin: working}}
      working:
        invoke:
          - {job: dig, data: {deep: '${svcPublic.deep}'}, onDone: idle}
          - {job: carry, onDone: {actions: [{assign: {svcPublic.by: '${1 / event.data.output.n}'}}]}, onError: idle}
        on: {leave: idle, set: {}, end: over}
      over: {type: final}
events: {begin: {}, set: {}}
`

var foreman = workflowtest.Principal("foreman", nil, "mod-jobs")

// worker may have all jobs, and does what it has them for.
type worker struct {
	*harness
	types  []string
	settle func() // waits for what comes behind the answers; nil: nothing waits
}

func (w worker) take(most int) []job.Leased {
	w.t.Helper()
	if w.settle != nil {
		w.settle()
	}
	leased, err := w.Jobs.Activate(context.Background(), &job.Activation{Caller: foreman, Types: w.types, Worker: "w", Max: most})
	assert.NoError(w.t, err)
	return leased
}

func (w worker) do(action job.Action, it job.Item) error {
	w.t.Helper()
	errs, err := w.Jobs.Change(context.Background(), &job.Request{Caller: foreman, Action: action, Items: []job.Item{it}})
	if err != nil {
		return err
	}
	return errs[0]
}

func (w worker) incidents() []pending.Incident {
	w.t.Helper()
	if w.settle != nil {
		w.settle()
	}
	page, err := w.Waiting.Incidents(context.Background(), &pending.IncidentList{Caller: boss, Limit: 10})
	assert.NoError(w.t, err)
	return page.Incidents
}

// TestAnIncidentOfAJob says what the worker said last. To retry it is to have the same job done again, with the data that it had;
// to drop it is the end of the job.
func TestAnIncidentOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worker{&harness{workflowtest.Start(t, workflowtest.Options{Disk: storetest.NewDisk()}), t}, []string{"dig"}, synctest.Wait}
		w.Publish(labor)
		id := w.Make(boss, "labor", `{"deep":3}`)
		w.MustSend(boss, "labor", id, "begin", "")
		first := w.take(10)
		require.Len(t, first, 1)
		require.NoError(t, w.do(job.Fail, job.Item{JobID: first[0].JobID, Lease: first[0].Lease, Message: "a rock is in the way", Final: true}))
		open := w.incidents()
		require.Len(t, open, 1)
		assert.Equal(t, "error.invoke.working", open[0].Event)
		assert.Contains(t, open[0].Error, "a rock is in the way")
		assert.Empty(t, w.take(10), "it has failed for good")

		w.MustSend(boss, "labor", id, "set", `{"deep":5}`)
		w.Restart()
		require.NoError(t, w.ChangeIncident(context.Background(), boss, open[0].ID, false))
		assert.Empty(t, w.incidents())
		again := w.take(10)
		require.Len(t, again, 1)
		assert.Equal(t, []any{first[0].JobID, `{"deep":3}`, 1}, []any{again[0].JobID, string(again[0].Data), again[0].Attempt})
		assert.ErrorIs(t, w.do(job.Complete, job.Item{JobID: first[0].JobID, Lease: first[0].Lease}), failure.ErrLeaseLost)
		require.NoError(t, w.do(job.Fail, job.Item{JobID: again[0].JobID, Lease: again[0].Lease, Message: "still there", Final: true}))

		open = w.incidents()
		require.Len(t, open, 1)
		require.NoError(t, w.ChangeIncident(context.Background(), boss, open[0].ID, true))
		assert.Empty(t, w.take(10))
		assert.ErrorIs(t, w.do(job.Retry, job.Item{JobID: again[0].JobID}), failure.ErrEnded)
		w.MustSend(boss, "labor", id, "leave", "")
		assert.Equal(t, ",begin,set,leave", events(t, w.MustLook(boss, "labor", id)))
	})
}

// TestAJobIsDoneAlsoWhenAnActionFails: what comes of it is an incident, and the worker is not asked again.
func TestAJobIsDoneAlsoWhenAnActionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worker{&harness{workflowtest.Start(t, workflowtest.Options{}), t}, []string{"carry"}, synctest.Wait}
		w.Publish(labor)
		id := w.Make(boss, "labor", `{"deep":3}`)
		w.MustSend(boss, "labor", id, "begin", "")
		leased := w.take(1)
		require.Len(t, leased, 1)
		done := job.Item{JobID: leased[0].JobID, Lease: leased[0].Lease, Output: value(`{"n":0}`)}
		require.NoError(t, w.do(job.Complete, done))
		require.NoError(t, w.do(job.Complete, done), "again")
		open := w.incidents()
		require.Len(t, open, 1)
		assert.Equal(t, "done.invoke.working", open[0].Event)
		assert.ErrorIs(t, w.ChangeIncident(context.Background(), boss, open[0].ID, false), failure.ErrExecution)
		assert.Empty(t, w.take(1))
	})
}

// TestAMigrationKeepsALease of a job that the new version has done too, where that says. Of the others nothing is left.
func TestAMigrationKeepsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startMigrations(t)
		w := worker{&harness{m.Router, t}, nil, synctest.Wait}
		const head, states = "id: order\nversion: ", "owners: {users: [mary, john]}\nstateMachines: {m: {initial: "
		m.Publish(head + "3\njobs: {dig: , carry: }\n" + states + "a, states: {a: {invoke: [{job: dig, onDone: end}, {job: carry}], on: {x: end}}, end: {type: final}}}}\n")
		id := m.Make(mary, "order", "")
		w.types = []string{"dig", "carry"}
		leased := w.take(10)
		require.Len(t, leased, 2)
		waiting := m.Make(mary, "order", "")
		w.types = []string{"dig", "sieve"}
		m.Publish(head + "4\njobs: {dig: , sieve: }\n" + states + "b, states: {b: {invoke: [{job: dig, onDone: end}, {job: sieve}], on: {x: end}}, end: {type: final}}}}\n")
		total, _ := m.run(t, migrationBy("from: 3\nto: 4\nnodes: {m: {a: b}}\n"))
		require.Equal(t, 2, total.Migrated)
		next := w.take(10)
		require.Len(t, next, 3)
		var types []string
		for _, l := range next {
			types = append(types, l.Type)
			assert.Equal(t, []any{uint64(4), "b"}, []any{l.Version, l.NodeID}, l.Type)
			if l.Type == "dig" {
				assert.Equal(t, waiting, l.InstanceID)
			}
		}
		slices.Sort(types)
		assert.Equal(t, []string{"dig", "sieve", "sieve"}, types)
		page, err := m.Jobs.List(t.Context(), &job.Query{Caller: foreman, JobID: leased[0].JobID, Limit: 1})
		require.NoError(t, err)
		assert.Equal(t, []any{job.Running, uint64(4), "b"}, []any{page.Jobs[0].State, page.Jobs[0].Version, page.Jobs[0].NodeID})
		assert.ErrorIs(t, w.do(job.Complete, job.Item{JobID: leased[1].JobID, Lease: leased[1].Lease}), failure.ErrEnded)
		require.NoError(t, w.do(job.Complete, job.Item{JobID: leased[0].JobID, Lease: leased[0].Lease}))
		assert.Equal(t, ",migrate,done.invoke.b", events(t, w.MustLook(mary, "order", id)))
	})
}

// TestEveryCrashLeavesJobsWhole cuts the power while jobs begin, end, fail, and begin again: whatever the store has then, its rows of jobs are
// what the instances say, and what a worker was told counts.
func TestEveryCrashLeavesJobsWhole(t *testing.T) {
	const workers, acts, crashes = 3, 120, 6
	disk := storetest.NewDisk()
	w := worker{&harness{workflowtest.Start(t, workflowtest.Options{Disk: disk}), t}, []string{"dig", "carry"}, nil}
	w.Publish(labor)
	var mu sync.Mutex
	var crashed []*storetest.Disk
	type told struct {
		action job.Action
		item   job.Item
		at     int // by how many crashes there were when it was acknowledged
	}
	var all []told
	var group sync.WaitGroup
	for k := range workers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(k), 31))
			var ids []string
			for n := range acts {
				if n%5 == 0 {
					ids = append(ids, w.Make(boss, "labor", `{"deep":1}`))
				}
				switch r.IntN(4) {
				case 0:
					for _, l := range w.take(2) {
						it := job.Item{JobID: l.JobID, Lease: l.Lease, Output: value(oneOf(r, `{"n":1}`, `{"n":0}`)), Message: "no", Final: true}
						action := workflowtest.OneOf(r, job.Complete, job.Complete, job.Fail)
						if err := w.do(action, it); err == nil {
							mu.Lock()
							all = append(all, told{action, it, len(crashed)})
							mu.Unlock()
						} else {
							assert.True(t, errors.Is(err, failure.ErrEnded) || errors.Is(err, failure.ErrLeaseLost), "%v", err)
						}
					}
				case 1:
					for _, in := range w.incidents() {
						_ = w.ChangeIncident(context.Background(), boss, in.ID, r.IntN(2) == 0) // another worker may have been first
					}
				default:
					_, err := w.Try(boss, "labor", ids[r.IntN(len(ids))], oneOf(r, "begin", "begin", "leave", "end"), "", "")
					assert.NoError(t, err)
				}
				if k == 0 && n%(acts/crashes) == 0 {
					mu.Lock()
					crashed = append(crashed, disk.AfterCrash())
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	w.checkStore()
	repeated := 0
	for n, disk := range crashed {
		again := worker{&harness{workflowtest.Start(t, workflowtest.Options{Disk: disk}), t}, w.types, nil}
		again.Publish(labor)
		again.checkStore()
		again.checkNoLeftovers()
		for _, a := range all {
			if a.action == job.Complete && a.at <= n {
				repeated++
				assert.NoError(t, again.do(a.action, a.item), "crash %d: it was told before crash %d that the job is done", n, a.at)
			}
		}
		again.checkStore()
		again.End()
	}
	assert.Greater(t, repeated, 10, "completions that a crash could have lost")
}

// checkStore holds all rows against the instances.
func (w *harness) checkStore() {
	w.t.Helper()
	_, err := inventory.Verify(context.Background(), &inventory.Options{
		Store: w.Store, Catalog: w.Catalog, Say: func(string) {}, Damage: func(line string) { w.t.Error(line) },
	})
	require.NoError(w.t, err)
}
