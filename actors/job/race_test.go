package job

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/job/line"
	"troupe/persistence/key"
)

// TestAnActivationIsBoundedInBytes: jobs with a mebibyte each are given eight at a time, and none is lost.
func TestAnActivationIsBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.close()
		b := w.store.NewBatch(0)
		for i := range 20 {
			r := row{Type: "work", Workflow: "a", Priority: 50, Created: time.Now(), Data: fmt.Appendf(nil, "%q", bytes.Repeat([]byte("x"), 1<<20-2))}
			name := key.Job{ID: key.ID{0: byte(i), 15: 1}, Sequence: 1}
			o := r.offer(name)
			b.Set(name.Key(nil, 0), r.append(nil))
			b.Set(o.Key(nil, 0), nil)
		}
		require.NoError(t, w.store.Commit(b))
		w.close()
		w.open(1)
		var ids []string
		for _, n := range []int{8, 8, 4} {
			leased := w.activate(20, 0, "work")
			assert.Len(t, leased, n)
			ids = append(ids, idsOf(leased)...)
		}
		slices.Sort(ids)
		assert.Len(t, slices.Compact(ids), 20)
	})
}

// TestOneEndCounts: whatever a completion waits for, and whenever the job is cancelled or failed for good meanwhile, one of them is done and
// the other one is told that it is not.
func TestOneEndCounts(t *testing.T) {
	ends := map[Action]int{}
	for _, action := range []Action{Cancel, Fail} {
		for n := range 18 {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				defer w.close()
				w.slow = [2]time.Duration{time.Duration(n%3) * time.Millisecond, time.Duration(n/3%3) * time.Millisecond}
				id := w.begin(1, "a", "work", 50)
				it := Item{JobID: id, Lease: w.activate(1, 0, "work")[0].Lease}
				completed := make(chan error, 1)
				go func() { completed <- w.change1(Complete, it) }()
				<-time.After(time.Duration(n/9) * 1500 * time.Microsecond)
				other := it
				other.Final = action == Fail
				ended := w.change1(action, other)
				done := <-completed
				assert.NotEqual(t, done == nil, ended == nil, "%s, slow %v: %v, and %v", action, w.slow, done, ended)
				assert.Equal(t, done == nil, len(w.done) == 1, "what is said of the completion")
				for _, err := range []error{done, ended} {
					assert.True(t, err == nil || slices.Contains([]failure.Kind{failure.ErrLeaseLost, failure.ErrEnded}, failure.Of(err).Kind), "%v", err)
				}
				if done == nil {
					ends[Complete]++
				} else {
					ends[action]++
				}
			})
		}
	}
	assert.True(t, ends[Complete] > 0 && ends[Cancel] > 0 && ends[Fail] > 0, "each of them comes first at times: %v", ends)
}

// TestALineIsReadWhileItChanges: of more jobs than are read at a time, each is given once, in the order of age, whatever begins and leaves
// while the rows are read.
func TestALineIsReadWhileItChanges(t *testing.T) {
	checkInBubbles(t, func(t *testing.T, rt *rapid.T) {
		w := newWorld(t, 1)
		defer w.close()
		var ids []string
		began := func() {
			ids = append(ids, w.begin(len(ids), "a", "work", 50))
			<-time.After(time.Millisecond)
		}
		for range rapid.IntRange(line.AheadMax+1, 4*line.AheadMax).Draw(rt, "jobs") {
			began()
		}
		w.close()
		w.open(1)
		// NB: the bytes decide what comes meanwhile, since a draw inside of a read could end it with a panic.
		changes := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(rt, "changes")
		left, given, reads := map[string]bool{}, map[string]bool{}, 0
		w.counted.behind = func() {
			if reads++; len(changes) == 0 {
				return
			}
			of := int(changes[0])
			changes = changes[1:]
			if of%2 == 0 {
				began()
			} else if id := ids[of*len(ids)/256]; !given[id] {
				left[id] = true
				w.leave(id)
			}
		}
		last := -1
		for {
			leased := w.activate(rapid.IntRange(1, 40).Draw(rt, "max"), 0, "work")
			if len(leased) == 0 {
				break
			}
			for _, id := range idsOf(leased) {
				require.False(rt, given[id], "given twice")
				given[id] = true
				at := slices.Index(ids, id)
				require.Greater(rt, at, last, "in the order of age")
				last = at
			}
		}
		require.NotZero(rt, reads, "rows are read")
		for i, id := range ids {
			require.True(rt, given[id] || left[id], "job %d of %d is lost", i, len(ids))
		}
	})
}

// TestLeasesOfWhoIsGoneAreGivenBack: the jobs come at once, and as if nobody had had them.
func TestLeasesOfWhoIsGoneAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, 1)
		defer w.close()
		for n := range 6 {
			w.begin(n, "a", "work", 50)
		}
		grants, err := w.service.o.grants(worker, []string{"work"})
		require.NoError(t, err)
		var got []string
		_, err = w.service.kinds.take.Merge(t.Context(), &asked{Grants: grants, Max: 6}, fanout.Merging[Leased]{Order: inOrder[Leased], Ahead: 1}, func(l Leased) error {
			got = append(got, l.JobID)
			return context.Canceled
		})
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		again := w.activate(6, 0, "work")
		assert.GreaterOrEqual(t, len(again), 4, "but for the one that was taken and one under way")
		for _, l := range again {
			assert.Equal(t, 1, l.Attempt)
			assert.NotContains(t, got, l.JobID)
		}
	})
}

// TestLimitsWithoutALeader: while a shard has no leader, jobs of a limited type are given up to the limit, by the last count and what was
// given since; when there is one again, what is over makes room.
func TestLimitsWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, 2)
		defer w.close()
		w.types["work"][0].Running = 5
		for n := range 20 {
			w.begin(n, "a", "work", 50)
		}
		first := w.activate(2, 0, "work")
		require.Len(t, first, 2)
		other := 1 - w.service.shardOfType("work")
		w.peers.abandon(other, true)
		<-time.After(2 * countedFor)
		assert.Len(t, w.activate(10, 0, "work"), 3, "nothing is held back")
		<-time.After(2 * countedFor)
		leased, err := w.service.Activate(t.Context(), &Activation{Caller: worker, Types: []string{"work"}, Worker: "w", Max: 10})
		assert.Empty(t, leased, "the limit holds")
		require.ErrorIs(t, err, failure.ErrUnavailable, "the shard without a leader may have some")
		w.peers.abandon(other, false)
		assert.Equal(t, []error{nil, nil}, w.change(Complete, Item{JobID: first[0].JobID, Lease: first[0].Lease}, Item{JobID: first[1].JobID, Lease: first[1].Lease}))
		<-time.After(2 * countedFor)
		assert.Len(t, w.activate(10, 0, "work"), 2)
	})
}

// TestTheSameJobTwice in one request: the second is answered as if it had come alone, behind the first.
func TestTheSameJobTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.close()
		for n, c := range []struct {
			action Action
			final  bool
		}{{Complete, false}, {Fail, false}, {Fail, true}, {Extend, false}, {Cancel, false}} {
			id := w.begin(n, "a", "work", 50)
			it := Item{JobID: id, Lease: w.activate(1, 0, "work")[0].Lease, Final: c.final, By: time.Second}
			assert.Equal(t, []error{nil, nil, nil}, w.change(c.action, it, it, it), "%s, final %t", c.action, c.final)
		}
	})
}
