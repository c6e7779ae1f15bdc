package job

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/failure"
	"troupe/actors/job/line"
	"troupe/persistence/key"
)

// TestJobsComeByPriorityThenWorkflowThenAge: however many are asked for at a time, in whatever shards they are, and also
// those that were taken and came back.
func TestJobsComeByPriorityThenWorkflowThenAge(t *testing.T) {
	checkInBubbles(t, func(t *testing.T, rt *rapid.T) {
		w := newWorld(t, 3)
		defer w.close()
		type waiting struct {
			id, workflow string
			priority     int
		}
		var line []waiting // the oldest first
		served, turn := map[string]int{}, 0
		for n := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if rapid.IntRange(0, 2).Draw(rt, "begins") > 0 {
				j := waiting{workflow: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "workflow"), priority: rapid.IntRange(0, 1).Draw(rt, "priority")}
				j.id = w.begin(n, j.workflow, "work", j.priority)
				line = append(line, j)
				<-time.After(time.Millisecond) // another age
				continue
			}
			var want []string
			most := rapid.IntRange(1, 5).Draw(rt, "max")
			for range min(most, len(line)) {
				best := 0
				for i := range line {
					a, b := line[i], line[best]
					if a.priority > b.priority || a.priority == b.priority && served[a.workflow] < served[b.workflow] {
						best = i
					}
				}
				turn++
				served[line[best].workflow] = turn
				want = append(want, line[best].id)
				line = slices.Delete(line, best, best+1)
			}
			leased := w.activate(most, 0, "work")
			require.Equal(rt, want, idsOf(leased))
		}
	})
}

// TestAJobIsDoneOnce holds persistence/PROMISES.md, "P35": whatever workers, leases that run out and instances that leave do at the same time, a job has one
// holder at a time, is completed at most once, and by its last holder; and nothing is left of it but its end.
func TestAJobIsDoneOnce(t *testing.T) {
	checkInBubbles(t, func(t *testing.T, rt *rapid.T) {
		w := newWorld(t, 2)
		defer func() { w.close() }()
		var ids []string
		for n := range 6 {
			ids = append(ids, w.begin(n, "a", "work", 50))
		}
		type held struct{ id, lease string }
		var leases []held
		outcomes := map[held]error{}
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0, 1:
				for _, l := range w.activate(rapid.IntRange(1, 3).Draw(rt, "max"), 0, "work") {
					leases = append(leases, held{l.JobID, l.Lease})
				}
			case 2:
				<-time.After(rapid.SampledFrom([]time.Duration{time.Second, 20 * time.Second, time.Minute}).Draw(rt, "passes"))
				synctest.Wait()
			case 3:
				w.leave(rapid.SampledFrom(ids).Draw(rt, "left"))
			case 4:
				w.crash(2)
			default:
				if len(leases) == 0 {
					continue
				}
				h := rapid.SampledFrom(leases).Draw(rt, "lease")
				action := rapid.SampledFrom([]Action{Complete, Complete, Fail, Extend}).Draw(rt, "action")
				it := Item{JobID: h.id, Lease: h.lease, By: time.Second}
				err := w.change1(action, it)
				if action == Complete {
					if before, again := outcomes[h]; again && before == nil {
						require.NoError(rt, err, "the same lease again")
					}
					if err == nil {
						outcomes[h] = nil
					}
					if err != nil {
						require.True(rt, slices.Contains([]failure.Kind{failure.ErrLeaseLost, failure.ErrEnded}, failure.Of(err).Kind), "%v", err)
					}
				}
			}
		}
		by := map[string]int{}
		for h := range outcomes {
			by[h.id]++
		}
		for id, n := range by {
			require.Equal(rt, 1, n, "leases that have completed %s", id)
		}
		done := slices.Clone(w.done)
		slices.Sort(done)
		require.Len(rt, slices.Compact(slices.Clone(done)), len(done), "completed twice: %v", done)
		require.Len(rt, done, len(by))
		for _, id := range ids {
			w.leave(id)
		}
		<-time.After(2 * time.Minute) // all leases run out
		synctest.Wait()
		assert.Empty(rt, w.activate(10, 0, "work"))
		for _, kind := range []byte{key.JobRow, key.JobOffer} {
			n := 0
			require.NoError(rt, w.store.Scan(key.JobsPrefix(nil, key.EveryShard, kind), func(_, value []byte) error {
				if kind == key.JobOffer || !hasOver(value) {
					n++
				}
				return nil
			}))
			require.Zero(rt, n, "rows of kind %c", kind)
		}
		for _, c := range w.service.Here() {
			require.Zero(rt, c.Waiting+c.Running+c.Failed, "%+v", c)
		}
		require.Zero(rt, w.service.rowBytes, "of rows in memory")
	})
}

// TestRowsAreReadOnlyAfterACrash: what is in memory suffices for a job that begins, is given and completed. Rows say the same when there is
// no room, and after a crash: who has a job, which one comes later, and which one has its turn.
func TestRowsAreReadOnlyAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer func() { w.close() }()
		w.counted.reads()
		w.begin(1, "a", "work", 50)
		given := w.activate(1, 0, "work")
		require.NoError(t, w.change1(Complete, Item{JobID: given[0].JobID, Lease: given[0].Lease}))
		assert.Zero(t, w.counted.reads())
		w.service.rowBytes = rowBytesMax
		for n := 2; n <= 4; n++ {
			w.begin(n, "a", "work", 50)
		}
		full := w.activate(3, 0, "work")
		assert.Equal(t, 6, w.counted.reads(), "two for each")
		require.Len(t, full, 3)
		assert.Equal(t, "2", string(full[0].Data))
		assert.Equal(t, "1", string(given[0].Data))
		assert.Equal(t, given[0].StateMachineID, full[0].StateMachineID)
		w.service.rowBytes = 0

		long := time.Hour
		require.NoError(t, w.change1(Fail, Item{JobID: full[0].JobID, Lease: full[0].Lease, RetryIn: &long}))
		require.NoError(t, w.change1(Fail, Item{JobID: full[1].JobID, Lease: full[1].Lease, RetryIn: new(time.Duration)}))
		w.crash(1)
		again := w.activate(3, 0, "work")
		require.Equal(t, []string{full[1].JobID}, idsOf(again), "one comes later, and one has a holder")
		assert.Equal(t, 2, again[0].Attempt)
		assert.ErrorIs(t, w.change1(Complete, Item{JobID: full[1].JobID, Lease: full[1].Lease}), failure.ErrLeaseLost)
		for _, l := range []Leased{again[0], full[2]} {
			require.NoError(t, w.change1(Complete, Item{JobID: l.JobID, Lease: l.Lease}))
		}
		<-time.After(long)
		synctest.Wait()
		assert.Equal(t, []string{full[0].JobID}, idsOf(w.activate(3, 0, "work")))
	})
}

// TestALeaseThatRanOut is a failed attempt; until somebody else has the job, its holder may still complete it.
func TestALeaseThatRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.close()
		first, second := w.begin(1, "a", "work", 50), w.begin(2, "b", "work", 50)
		old := w.activate(2, 0, "work")
		require.Len(t, old, 2)
		assert.Equal(t, 2, old[0].AttemptsLeft)
		assert.Empty(t, w.activate(2, 0, "work"))
		<-time.After(time.Minute + time.Second)
		synctest.Wait()
		assert.Empty(t, w.activate(2, 0, "work"), "before the delay of the type")
		assert.NoError(t, w.change1(Complete, Item{JobID: first, Lease: old[0].Lease}))
		next := w.activate(2, 20*time.Second, "work")
		require.Equal(t, []string{second}, idsOf(next))
		assert.Equal(t, [2]int{2, 1}, [2]int{next[0].Attempt, next[0].AttemptsLeft})
		for _, action := range []Action{Complete, Fail, Extend} {
			assert.ErrorIs(t, w.change1(action, Item{JobID: second, Lease: old[1].Lease, By: time.Second}), failure.ErrLeaseLost, string(action))
		}
		assert.NoError(t, w.change1(Extend, Item{JobID: second, Lease: next[0].Lease, By: time.Hour}), "up to the timeout of the type")
		<-time.After(50 * time.Second)
		synctest.Wait()
		assert.NoError(t, w.change1(Complete, Item{JobID: second, Lease: next[0].Lease}))
		assert.ErrorIs(t, w.change1(Complete, Item{JobID: second, Lease: old[1].Lease}), failure.ErrLeaseLost)
		assert.ErrorIs(t, w.change1(Complete, Item{JobID: second + "0", Lease: "x"}), failure.ErrNotFound)
		assert.Equal(t, []string{first, second}, w.done)
	})
}

// TestFailures: a job comes back after the delay of its type, twice as long each time, or when its worker says; when all
// attempts have failed, its instance is told, and what that does not take can begin again.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer func() { w.close() }()
		id := w.begin(1, "a", "work", 50)
		name, _ := parseID(id)
		w.fakeOf(name.ID).keeps = true
		came := func(after time.Duration) Leased {
			t.Helper()
			begun := time.Now()
			leased := w.activate(1, time.Minute, "work")
			require.Len(t, leased, 1)
			assert.InDelta(t, after.Seconds(), time.Since(begun).Seconds(), 0.1)
			return leased[0]
		}
		l := came(0)
		require.NoError(t, w.change1(Fail, Item{JobID: id, Lease: l.Lease, Message: "one"}))
		assert.NoError(t, w.change1(Fail, Item{JobID: id, Lease: l.Lease}), "the same lease again")
		assert.ErrorIs(t, w.change1(Complete, Item{JobID: id, Lease: l.Lease}), failure.ErrLeaseLost)
		l = came(5 * time.Second)
		require.NoError(t, w.change1(Fail, Item{JobID: id, Lease: l.Lease, Later: true}))
		l = came(5 * time.Second)
		assert.Equal(t, 2, l.Attempt, "later counts as none")
		w.crash(1)
		at := time.Duration(0)
		require.NoError(t, w.change1(Fail, Item{JobID: id, Lease: l.Lease, RetryIn: &at}), "after a crash")
		l = came(0)
		assert.Equal(t, [2]int{3, 0}, [2]int{l.Attempt, l.AttemptsLeft})
		require.NoError(t, w.change1(Fail, Item{JobID: id, Lease: l.Lease, Message: "the last"}))
		assert.Equal(t, int64(1), w.service.Here()[0].Failed)
		assert.Empty(t, w.activate(1, time.Minute, "work"))
		w.crash(1)
		assert.Equal(t, int64(1), w.service.Here()[0].Failed)
		require.NoError(t, w.change1(Retry, Item{JobID: id}))
		l = came(0)
		assert.Equal(t, 1, l.Attempt)
		w.fakeOf(name.ID).keeps = false
		require.NoError(t, w.change1(Cancel, Item{JobID: id}))
		assert.ErrorIs(t, w.change1(Complete, Item{JobID: id, Lease: l.Lease}), failure.ErrEnded)
		assert.ErrorIs(t, w.change1(Retry, Item{JobID: id}), failure.ErrEnded)
		assert.Empty(t, w.service.Here()[0].Failed+w.service.Here()[0].Running)
	})
}

// TestLimits: no more leases than running at a time, and no more than perSecond begin in a second.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.close()
		w.types["work"][0].Running, w.types["work"][1].PerSecond = 3, 2
		for n := range 10 {
			w.begin(n, "a", "work", 50)
			w.begin(100+n, "b", "work", 40)
		}
		leased := w.activate(20, 0, "work")
		by := map[string]int{}
		for _, l := range leased {
			by[l.WorkflowID]++
		}
		assert.Equal(t, map[string]int{"a": 3, "b": 2}, by)
		assert.Empty(t, w.activate(20, 0, "work"))
		begun := time.Now()
		more := w.activate(20, time.Minute, "work")
		require.Len(t, more, 1)
		assert.Equal(t, "b", more[0].WorkflowID)
		assert.InDelta(t, 0.5, time.Since(begun).Seconds(), 0.1, "until there is a token")
		for n := range 9 {
			w.leave(IDOf(key.ID{0: byte(100 + n), 15: 1}, elementOf(key.Job{Sequence: 1})))
		}
		w.leave(IDOf(key.ID{0: 109, 15: 1}, elementOf(key.Job{Sequence: 1})))
		got := make(chan []Leased)
		go func() { got <- w.activate(20, time.Minute, "work") }()
		synctest.Wait()
		require.NoError(t, w.change1(Complete, Item{JobID: leased[0].JobID, Lease: leased[0].Lease}))
		assert.Len(t, <-got, 1, "when one is over")
	})
}

// TestALongLineCostsNoMore: an activation reads no more of 100,000 jobs than of 100, but for the rows of one read ahead; and who waits reads none.
func TestALongLineCostsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := map[int]int{}
		for _, n := range []int{100, 100_000} {
			w := newWorld(t, 1)
			b := w.store.NewBatch(0)
			for i := range n {
				id := key.ID{0: byte(i), 1: byte(i >> 8), 2: byte(i >> 16), 15: 1}
				r := row{Type: "work", Workflow: "a", Priority: 50, Created: time.Now()}
				name := key.Job{ID: id, Sequence: 1}
				o := r.offer(name)
				b.Set(name.Key(nil, 0), r.append(nil))
				b.Set(o.Key(nil, 0), nil)
			}
			require.NoError(t, w.store.Commit(b))
			w.close()
			w.open(1)
			w.counted.reads()
			for range 3 {
				require.Len(t, w.activate(32, 0, "work"), 32)
			}
			reads[n] = w.counted.reads()
			w.close()
		}
		assert.LessOrEqual(t, reads[100_000], reads[100]+line.AheadMax, "rows that are read")

		w := newWorld(t, 1)
		defer w.close()
		w.counted.reads()
		for range 50 {
			go w.activate(1, 50*time.Second, "work")
		}
		<-time.After(40 * time.Second)
		synctest.Wait()
		assert.Zero(t, w.counted.reads(), "rows that are read for who waits")
		assert.Equal(t, 50, w.service.waits.Len())
		w.begin(1, "a", "work", 50)
		synctest.Wait()
		assert.Equal(t, 49, w.service.waits.Len(), "one of them has it")
		<-time.After(20 * time.Second)
		synctest.Wait()
		assert.Zero(t, w.service.waits.Len())
	})
}

// TestAnActivationThatIsRefused: bounds, types that nobody has, rights, and a full disk, after which nothing is missing.
func TestAnActivationThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.close()
		id := w.begin(1, "a", "work", 50)
		for name, c := range map[string]struct {
			a    Activation
			want failure.Kind
		}{
			"max":      {Activation{Caller: worker, Types: []string{"work"}, Max: 1001}, failure.ErrInvalid},
			"wait":     {Activation{Caller: worker, Types: []string{"work"}, Max: 1, Wait: 61 * time.Second}, failure.ErrInvalid},
			"no type":  {Activation{Caller: worker, Max: 1}, failure.ErrInvalid},
			"its type": {Activation{Caller: worker, Types: []string{"wrok"}, Max: 1}, failure.ErrNotFound},
			"rights":   {Activation{Caller: nobody, Types: []string{"work"}, Max: 1}, failure.ErrForbidden},
		} {
			_, err := w.service.Activate(context.Background(), &c.a)
			assert.ErrorIs(t, err, c.want, name)
		}
		w.disk.SetFree(0)
		synctest.Wait()
		<-time.After(time.Minute) // the store looks
		_, err := w.service.Activate(context.Background(), &Activation{Caller: worker, Types: []string{"work"}, Max: 1})
		assert.ErrorIs(t, err, failure.ErrUnavailable)
		w.disk.SetFree(1 << 40)
		<-time.After(time.Minute)
		assert.Equal(t, []string{id}, idsOf(w.activate(1, 0, "work")))
	})
}

// TestManyAtOnce: whatever many workers, leases that run out and instances that leave do at the same time, no job is completed twice,
// none is lost, and the counts are right in the end.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		defer w.close()
		w.types["work"][0].Running, w.types["work"][0].RetryLimit, w.types["work"][1].RetryLimit = 5, 1000, 1000
		begun := time.Now()
		var all sync.WaitGroup
		const jobs = 200
		all.Go(func() {
			for n := range jobs {
				id := w.begin(n, []string{"a", "b"}[n%2], "work", n%3)
				if n%10 == 5 { // NB: of b, since who has the job of one that has left does not count against the limit
					all.Go(func() {
						<-time.After(time.Duration(n) * time.Second)
						w.leave(id)
					})
				}
				<-time.After(100 * time.Millisecond)
			}
		})
		var running, most atomic.Int64
		for n := range 16 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(n), 3))
				for {
					leased := w.activate(1+r.IntN(4), time.Minute, "work")
					if len(leased) == 0 && time.Since(begun) > time.Hour {
						return
					}
					for _, l := range leased {
						if l.WorkflowID == "a" {
							most.Store(max(most.Load(), running.Add(1)))
						}
						<-time.After(time.Duration(r.IntN(3000)) * time.Millisecond)
						it := Item{JobID: l.JobID, Lease: l.Lease}
						isA := l.WorkflowID == "a"
						if isA {
							running.Add(-1)
						}
						switch r.IntN(6) {
						case 0: // it runs out
						case 1:
							_ = w.change1(Fail, it)
						default:
							_ = w.change1(Complete, it)
							_ = w.change1(Complete, it)
						}
					}
				}
			})
		}
		all.Wait()
		assert.LessOrEqual(t, most.Load(), int64(5), "of workflow a at a time")
		done := slices.Clone(w.done)
		slices.Sort(done)
		assert.Len(t, slices.Compact(slices.Clone(done)), len(done), "completed twice")
		w.mu.Lock()
		defer w.mu.Unlock()
		for id, f := range w.instances {
			assert.Empty(t, f.jobs, "job of %x", id)
		}
		for _, c := range w.service.Here() {
			assert.Zero(t, c.Waiting+c.Running+c.Failed, "%+v", c)
		}
	})
}
