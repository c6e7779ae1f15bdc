package replicatest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// leader returns the node that leads a shard, waiting until there is one.
func (c *cluster) leader(sh key.Shard) *node {
	c.t.Helper()
	var leader *node
	c.until(fmt.Sprint("nobody leads shard ", sh), func() bool {
		for _, n := range c.nodes {
			if leader == nil && n.store != nil && n.store.Epoch(sh) != 0 {
				leader = n
			}
		}
		return leader != nil
	})
	return leader
}

// TestNodesAreReplacedWhileOthersWrite: each node in turn is lost with its disk, and a new
// one takes its place (persistence/PROMISES.md, "P22").
func TestNodesAreReplacedWhileOthersWrite(t *testing.T) {
	onCluster(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(7, 7))
		c.load(r, 50)
		for i, fresh := range []string{"node3", "node4", "node5"} {
			lost := c.nodes[i]
			c.net.Isolate(lost.name, c.names, true)
			c.check(lost.stop())
			c.load(r, short(100, 30))
			n := c.node(fresh)
			c.nodes[i], c.names = n, append(c.names, fresh)
			n.start()
			for sh := range n.store.AllShards() {
				c.check(n.store.Join(sh))
				c.check(c.leader(sh).store.Replica(sh).AddLearner(fresh))
				c.load(r, 10)
				c.check(n.store.AwaitApplied(t.Context(), sh, c.leader(sh).store.Replica(sh).Applied()))
				c.check(c.leader(sh).store.Replica(sh).AddVoter(fresh))
				c.check(c.leader(sh).store.Replica(sh).Remove(lost.name))
			}
			c.load(r, short(100, 30))
		}
		c.whole()
		for sh := range c.nodes[0].store.AllShards() {
			members := c.nodes[0].store.Replica(sh).Members()
			assert.True(t, len(members) == simNodes && !slices.ContainsFunc(members, func(m replica.Member) bool { return !m.Voter }), "%v %v", sh, members)
		}
	})
}

// copyTo has a node keep a shard as a learner, and waits until it has what the leader has, whose replica it
// returns.
func (c *cluster) copyTo(n *node, sh key.Shard) *replica.Group {
	c.t.Helper()
	leader := c.leader(sh).store.Replica(sh)
	c.check(n.store.Join(sh))
	c.check(leader.AddLearner(n.name))
	c.check(n.store.AwaitApplied(c.t.Context(), sh, leader.Applied()))
	return leader
}

// TestACopyNeedsNoOldLog: who gets a copy of a shard gets none of the entries that are in it.
func TestACopyNeedsNoOldLog(t *testing.T) {
	onCluster(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(7, 8))
		c.load(r, 200)
		fresh := c.fresh()
		for sh := range fresh.store.AllShards() {
			leader := c.copyTo(fresh, sh)
			if sh == key.Meta {
				continue // it has no load
			}
			got, all := fresh.store.Replica(sh).Stats(), leader.Stats()
			assert.True(t, got.Installed == 1 && got.LogBytes <= all.LogBytes/4, "%v %v %v %v", sh, got.Installed, got.LogBytes, all.LogBytes)
		}
		c.check(fresh.stop())
	})
}

// TestALearnerConfirmsNoLeader: Raft asks it too. A leader whose voters are gone ends, and a learner has the
// shard still.
func TestALearnerConfirmsNoLeader(t *testing.T) {
	onCluster(t, func(t *testing.T, c *cluster) {
		c.load(rand.New(rand.NewPCG(9, 9)), 10)
		leader := c.leader(0)
		others := slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n == leader })
		epoch, g := leader.store.Epoch(0), leader.store.Replica(0)
		c.check(g.Demote(others[0].name))
		for _, m := range g.Members() {
			if m.Voter == (m.Node == others[0].name) {
				t.Errorf("after %s has lost its vote: %+v", others[0].name, m)
			}
		}
		c.check(leader.store.AwaitLed(t.Context(), 0, epoch))
		c.net.Isolate(others[1].name, c.names, true)
		assert.ErrorIs(t, leader.store.AwaitLed(t.Context(), 0, epoch), persistence.ErrNotLed, "with a learner alone")
		c.net.Isolate(others[1].name, c.names, false)
		c.check(c.leader(0).store.Replica(0).AddVoter(others[0].name))
		c.load(rand.New(rand.NewPCG(9, 10)), 10)
		c.whole()
	})
}

// TestOneNodeIsMadeAClusterAgain: when a majority is lost for good, what one node has goes on.
func TestOneNodeIsMadeAClusterAgain(t *testing.T) {
	onCluster(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(8, 8))
		c.load(r, 200)
		c.settle()
		for _, n := range c.nodes {
			c.check(n.stop())
		}
		left := c.nodes[1]
		missing, err := persistence.Recover("store", left.options(nil), left.name)
		require.True(t, err == nil && len(missing) <= 0, "found again: %v, %v missing", err, missing)
		c.nodes = []*node{left}
		left.start()
		for sh := range left.store.AllShards() {
			c.leader(sh)
		}
		before := len(c.acked)
		c.load(r, 100)
		c.whole()
		assert.NotEqual(t, before, len(c.acked), "it takes no writes")
	})
}

// TestAShardThatWasBeingCopiedIsMissing: when a majority is lost before a node had the whole of a shard,
// it says so, and the rest goes on.
func TestAShardThatWasBeingCopiedIsMissing(t *testing.T) {
	onCluster(t, func(t *testing.T, c *cluster) {
		fresh := c.fresh()
		for _, sh := range []key.Shard{key.Meta, 1, 2, 0} {
			if sh == 0 { // no room for a copy of this one
				fresh.fill()
			}
			g := c.leader(sh).store.Replica(sh)
			c.check(fresh.store.Join(sh))
			c.check(g.AddLearner(fresh.name))
			if sh != 0 {
				c.check(fresh.store.AwaitApplied(t.Context(), sh, g.Applied()))
			}
		}
		c.pass(5 * time.Second)
		begun := fresh.store.Replica(0).Stats()
		require.True(t, begun.Term != 0 && begun.Applied == 0, "the copy has not begun, or has ended: %+v", begun)
		c.close()
		c.check(fresh.stop())
		fresh.full.Store(false)

		missing, err := persistence.Recover("store", fresh.options(nil), fresh.name)
		assert.True(t, err == nil && slices.Equal(missing, []key.Shard{0}), "found again: %v, %v missing, want shard 0", err, missing)
		fresh.store, err = persistence.Open("store", fresh.options(fresh.replication()))
		c.check(err)
		c.nodes = []*node{fresh}
		for sh := range fresh.store.AllShards() {
			c.leader(sh)
			assert.NoError(t, write(fresh.store, sh, key.Record(nil, sh, "after", key.ID{})), "shard %d takes no writes", sh)
		}
	})
}

// TestAShardIsLeftOnAFullDisk: what would be refused then would stay until the next start.
func TestAShardIsLeftOnAFullDisk(t *testing.T) {
	onCluster(t, func(t *testing.T, c *cluster) {
		fresh := c.fresh()
		for sh := range fresh.store.AllShards() {
			c.copyTo(fresh, sh)
		}
		fresh.fill()
		c.check(c.leader(0).store.Replica(0).Remove(fresh.name))
		assert.NoError(t, fresh.store.Leave(0, nil), "leave")
		fresh.full.Store(false)
		c.check(fresh.store.Close())
		var err error
		fresh.store, err = persistence.Open("store", fresh.options(fresh.replication()))
		c.check(err)
		assert.True(t, fresh.store.Replica(0) == nil && fresh.store.Replica(1) != nil, "after a start it has another replica than that of shard 1")
		_, err = fresh.store.Load(key.Record(nil, 0, "before", key.ID{}))
		assert.ErrorIs(t, err, persistence.ErrNotLed, "a row of a shard that is not here")
		c.check(fresh.store.Join(0))
		_, err = fresh.store.Load(key.Record(nil, 0, "before", key.ID{}))
		assert.ErrorIs(t, err, persistence.ErrNotFound, "a row of the shard")
		c.check(fresh.store.Close())
	})
}

// TestAFullDiskGetsNoCopies: a node that had room for nothing for long goes on where it was.
func TestAFullDiskGetsNoCopies(t *testing.T) {
	onCluster(t, func(t *testing.T, c *cluster) {
		fresh := c.fresh()
		leader, g := c.leader(0).store, c.copyTo(fresh, 0)
		before := fresh.store.Replica(0).Stats()
		fresh.fill()
		for i := range byte(3) {
			c.check(write(leader, 0, key.Record(nil, 0, "full", key.ID{i})))
		}
		c.pass(90 * time.Second) // Raft's pauses between attempts have grown to 40 seconds
		fresh.full.Store(false)
		begun := time.Now()
		c.check(fresh.store.AwaitApplied(t.Context(), 0, g.Applied()))
		assert.LessOrEqual(t, time.Since(begun), 10*time.Second, "it took")
		assert.Equal(t, before.Installed, fresh.store.Replica(0).Stats().Installed, "the node was sent")
		c.check(fresh.store.Close())
	})
}
