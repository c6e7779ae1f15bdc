package replicatest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3/raftpb"

	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
)

// TestANodeThatIsBackHasAPartAtOnce: the loss of another node right afterward must not stop the shard.
func TestANodeThatIsBackHasAPartAtOnce(t *testing.T) {
	onNodes(t, 3, 1, func(t *testing.T, c *replicatest.Cluster) {
		leader, away, third := c.Nodes[0], c.Nodes[1], c.Nodes[2]
		away.Isolate(true)
		for i := range 60 {
			require.NoError(t, write(leader.Store, key.Meta, key.Setting(nil, fmt.Sprint(i))))
			clocktest.Advance(time.Second)
		}
		_, known := leader.Store.Replica(key.Meta).Behind(away.Name)
		assert.False(t, known, "a node that is away is called up to date")
		away.Isolate(false)
		clocktest.Advance(3 * time.Second) // a stream that was lost is opened again
		lacks, known := leader.Store.Replica(key.Meta).Behind(away.Name)
		assert.True(t, known && lacks <= 0, "a node that is back lacks %d entries (known: %v)", lacks, known)
		third.Isolate(true)
		assert.NoError(t, write(leader.Store, key.Meta, key.Setting(nil, "without the third")))
	})
}

// TestAHandOverThatFailsLeavesNothingBehind: a node that gets no entries was to lead, twice, before the
// leader lost its leadership.
func TestAHandOverThatFailsLeavesNothingBehind(t *testing.T) {
	onNodes(t, 3, 8, func(t *testing.T, c *replicatest.Cluster) {
		first, away := c.Nodes[0], c.Nodes[1]
		away.Isolate(true)
		for round := range byte(2) {
			for sh := range first.Store.AllShards() {
				require.NoError(t, write(first.Store, sh, key.Record(nil, sh, "w", key.ID{round})))
				require.Error(t, first.Store.Replica(sh).HandOver(t.Context(), away.Name))
			}
		}
		first.Isolate(true)
		clocktest.Advance(10 * time.Second)
		first.Isolate(false)
		away.Isolate(false)
		for sh := range first.Store.AllShards() {
			for range 600 {
				if first.Store.Epoch(sh) != 0 {
					break
				}
				for _, other := range c.Nodes[1:] {
					if other.Store.Epoch(sh) != 0 {
						_ = other.Store.Replica(sh).HandOver(t.Context(), first.Name) // it may lack entries still
					}
				}
				clocktest.Advance(100 * time.Millisecond)
			}
			assert.NotZero(t, first.Store.Epoch(sh), "shard %d: the node that had led it takes no change within a minute", sh)
		}
	})
}

// TestAnEpochEndsWithAHandOver: while one waits, nobody takes an instance for one of this node's; when it has
// failed, who reads has to see what was on its way all the time, and who wrote before writes no more.
func TestAnEpochEndsWithAHandOver(t *testing.T) {
	onNodes(t, 3, 1, func(t *testing.T, c *replicatest.Cluster) {
		first := c.Nodes[0].Store
		clocktest.Advance(time.Second) // the nodes have heard each other
		hurry, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range byte(20) {
			before := first.Epoch(0)
			key := key.Record(nil, 0, "w", key.ID{i})
			w := first.NewBatchIn(0, first.Epoch(0))
			w.Set(key, nil)
			done := make(committed, 1)
			first.Append(w, done)
			if i%2 == 0 { // nothing is on its way
				done <- <-done
			}
			require.Error(t, first.Replica(0).HandOver(hurry, c.Nodes[1].Name))
			for begun := time.Now(); first.Epoch(0) == 0; clocktest.Advance(time.Millisecond) {
				require.Less(t, time.Since(begun), time.Minute, "no epoch begins here; %q leads", first.Replica(0).Leader())
			}
			assert.NotEqual(t, before, first.Epoch(0), "the epoch of before the hand-over goes on")
			_, missing := first.Load(key)
			switch err := <-done; {
			case err == nil && missing != nil:
				t.Errorf("a write from before this epoch was not visible in it, and is acknowledged: %v", missing)
			case err != nil && !errors.Is(err, persistence.ErrNotLed): // NB: what had not begun is refused
				t.Errorf("a write from before: %v", err)
			}
		}
	})
}

// TestAHandOverThatNobodyTakesEnds: a node can ignore that it shall lead, and nothing else happens in the group meanwhile.
func TestAHandOverThatNobodyTakesEnds(t *testing.T) {
	onNodes(t, 3, 1, func(t *testing.T, c *replicatest.Cluster) {
		first := c.Nodes[0].Store
		clocktest.Advance(5 * time.Second) // the nodes have heard each other, and all is quiet
		c.Net.Lose(raftpb.MsgTimeoutNow)
		require.ErrorIs(t, first.Replica(0).HandOver(t.Context(), c.Nodes[1].Name), context.DeadlineExceeded)
		clocktest.Advance(5 * time.Second)
		assert.NotZero(t, first.Epoch(0), "the leader takes no changes any more")
	})
}

// TestNobodyWaitsForWhoIsFarBehind: a node that does not answer, or lacks much, is not handed anything, and
// who writes meanwhile does not notice.
func TestNobodyWaitsForWhoIsFarBehind(t *testing.T) {
	onNodes(t, 3, 1, func(t *testing.T, c *replicatest.Cluster) {
		first := c.Nodes[0].Store
		before := first.Epoch(0)
		c.Nodes[1].Isolate(true)
		clocktest.Advance(3 * time.Second)
		handed := make(chan error, 1)
		go func() { handed <- first.Replica(0).HandOver(t.Context(), c.Nodes[1].Name) }()
		for range 100 {
			begun := time.Now()
			w := first.NewBatchIn(0, before)
			w.Set(key.Record(nil, 0, "w", key.ID{1}), nil)
			err := storeWrites(first, w)
			require.True(t, err == nil && time.Since(begun) <= 100*time.Millisecond, "a write took %s: %v", time.Since(begun), err)
			clocktest.Advance(20 * time.Millisecond)
		}
		err := <-handed
		assert.Error(t, err, "the leadership was handed over to a node that nobody reaches")
	})
}

// TestTheOnlyNodeLeadsAtOnce: there is nobody to wait for.
func TestTheOnlyNodeLeadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c, err := replicatest.Start(t.Context(), replicatest.Options{Nodes: 1, Shards: 2})
		require.NoError(t, err)
		defer func() { assert.NoError(t, c.Close()) }()
		for sh := range c.Nodes[0].Store.AllShards() {
			for c.Nodes[0].Store.Epoch(sh) == 0 {
				clocktest.Advance(time.Millisecond)
			}
		}
		assert.Less(t, time.Since(begun), time.Second, "it led")
	})
}

// TestWhoStopsAnswersAll: what was committed, and not applied, has its answer before a replica has stopped; anyone who
// waited for it would wait for good (persistence/PROMISES.md, "F23").
func TestWhoStopsAnswersAll(t *testing.T) {
	onNodes(t, 1, 1, func(t *testing.T, c *replicatest.Cluster) {
		s := c.Nodes[0].Store
		slow := slowFollower{begun: make(chan struct{}, 100), release: make(chan struct{})}
		s.Follow(slow)
		const writes = 8 // that Raft applies the last of them by chance, and leaves none, happens once in a hundred times
		done := make(committed, writes)
		for range writes {
			w := s.NewBatchIn(key.Meta, s.Epoch(key.Meta))
			w.Set(key.Setting(nil, "any"), []byte("value"))
			s.Append(w, done)
			synctest.Wait()
		}
		<-slow.begun
		stopped := make(chan struct{})
		go func() {
			s.Replica(key.Meta).Stop()
			close(stopped)
		}()
		synctest.Wait()
		close(slow.release)
		select {
		case <-stopped:
		case <-time.After(time.Hour):
			t.Fatal("it does not stop")
		}
		for range writes {
			err := <-done
			assert.NoError(t, err, "what was committed was told")
		}
	})
}

// slowFollower takes its time over every change.
type slowFollower struct{ begun, release chan struct{} }

func (f slowFollower) Changed([][]byte) {
	f.begun <- struct{}{}
	<-f.release
}

func (slowFollower) Replaced() {}
