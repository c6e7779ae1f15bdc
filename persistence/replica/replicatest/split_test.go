package replicatest_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
)

// onOneGroup runs a test on three nodes whose three shards are in one group, which the first node leads.
func onOneGroup(t *testing.T, test func(t *testing.T, c *replicatest.Cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c, err := replicatest.Start(t.Context(), replicatest.Options{Nodes: 3, Shards: 3, Firsts: []key.Shard{0}})
		require.NoError(t, err)
		clocktest.Advance(time.Second) // the nodes have heard each other
		test(t, c)
		require.NoError(t, c.Close())
	})
}

// awaitLeader waits for a node that leads a shard.
func awaitLeader(t *testing.T, c *replicatest.Cluster, sh key.Shard) *persistence.Store {
	t.Helper()
	for range 600 {
		for _, n := range c.Nodes {
			if n.Store.Epoch(sh) != 0 {
				return n.Store
			}
		}
		clocktest.Advance(10 * time.Millisecond)
	}
	t.Fatalf("nobody leads shard %d", sh)
	return nil
}

// TestADividedGroup: both parts take writes soon, of who has read in their new epochs only, and all nodes have both.
func TestADividedGroup(t *testing.T) {
	onOneGroup(t, func(t *testing.T, c *replicatest.Cluster) {
		first, row := c.Nodes[0].Store, func(sh key.Shard, i byte) []byte { return key.Record(nil, sh, "w", key.ID{i}) }
		before, begun := first.Epoch(0), time.Now()
		old := map[key.Shard]*persistence.Batch{}
		for sh := range key.Shard(3) {
			require.NoError(t, write(first, sh, row(sh, 1)))
			old[sh] = first.NewBatchIn(sh, before)
			old[sh].Set(row(sh, 2), nil)
		}
		require.NoError(t, first.Replica(0).Split(t.Context(), 1))
		for sh := range key.Shard(3) {
			assert.ErrorIs(t, storeWrites(first, old[sh]), persistence.ErrNotLed, "shard %d takes what was built on what is over", sh)
		}
		for sh := range key.Shard(3) {
			leader := awaitLeader(t, c, sh)
			assert.Greater(t, leader.Epoch(sh), before)
			assert.NoError(t, write(leader, sh, row(sh, 3)))
		}
		assert.Less(t, time.Since(begun), time.Second, "writes had to wait")
		clocktest.Advance(time.Second)
		for _, n := range c.Nodes {
			groups := map[key.Shard]uint16{}
			for sh, g := range n.Store.Groups() {
				groups[sh] = g.Last()
			}
			assert.Equal(t, map[key.Shard]uint16{0: 0, 1: 2, key.Meta: uint16(key.Meta)}, groups)
			for sh := range key.Shard(3) {
				_, none := n.Store.Load(row(sh, 2))
				assert.ErrorIs(t, none, persistence.ErrNotFound)
				for _, i := range []byte{1, 3} {
					_, err := n.Store.Load(row(sh, i))
					assert.NoError(t, err, "%s, shard %d", n.Name, sh)
				}
			}
		}
	})
}

// TestAGroupIsDividedWhereItHasShards: anything else changes nothing.
func TestAGroupIsDividedWhereItHasShards(t *testing.T) {
	onOneGroup(t, func(t *testing.T, c *replicatest.Cluster) {
		first := c.Nodes[0].Store
		for _, at := range []uint16{0, 3, uint16(key.Meta)} {
			require.Error(t, first.Replica(0).Split(t.Context(), at))
			clocktest.Advance(time.Second)
			assert.Equal(t, uint16(2), first.Replica(0).Last())
			assert.NoError(t, write(awaitLeader(t, c, 2), 2, key.Record(nil, 2, "w", key.ID{byte(at)})))
		}
		assert.ErrorIs(t, c.Nodes[1].Store.Replica(0).Split(t.Context(), 1), persistence.ErrNotLed)
		assert.Error(t, c.Nodes[1].Store.Leave(1, nil), "a node leaves a group by a shard in its midst")
	})
}

// TestWhoIsAwayWhileAGroupIsDivided gets copies of both parts: the old group's is without the rows of the other one.
func TestWhoIsAwayWhileAGroupIsDivided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, simulation{firsts: []key.Shard{0}})
		r := rand.New(rand.NewPCG(1, 0))
		c.load(r, 20)
		away := c.nodes[slices.IndexFunc(c.nodes, func(n *node) bool { return n.store.Epoch(0) == 0 })]
		c.net.Isolate(away.name, c.names, true)
		for at := uint16(2); at > 0; at-- {
			c.check(c.leader(0).store.Replica(0).Split(t.Context(), at))
			c.load(r, 60) // more than a log has
		}
		c.net.Isolate(away.name, c.names, false)
		c.until("no copy without the others", func() bool { return away.store.Replica(0).Last() == 0 })
		c.check(away.store.Join(2))
		assert.Empty(t, away.rows(2), "what was the old group's stays")
		c.whole()
		installed := uint64(0)
		for _, g := range away.store.Groups() {
			installed += g.Stats().Installed
		}
		assert.True(t, c.groups() == 4 && installed >= 3, "%d groups, %d copies", c.groups(), installed)
		c.close()
	})
}

// TestWhoLeavesAGroupHasNoneOfItsShards: nothing of them comes back.
func TestWhoLeavesAGroupHasNoneOfItsShards(t *testing.T) {
	onOneGroup(t, func(t *testing.T, c *replicatest.Cluster) {
		first, gone := c.Nodes[0].Store, c.Nodes[1]
		require.NoError(t, write(first, 2, key.Record(nil, 2, "w", key.ID{1})))
		clocktest.Advance(time.Second)
		require.NoError(t, errors.Join(first.Replica(0).Remove(gone.Name), gone.Store.Leave(0, nil), gone.Store.Join(2)))
		_, err := gone.Store.Load(key.Record(nil, 2, "w", key.ID{1}))
		assert.ErrorIs(t, err, persistence.ErrNotFound)
	})
}

// TestADividedGroupAfterCrashes: what divides a group is in its log, and the beginning of the other part is written with
// it; a majority that is lost takes neither.
func TestADividedGroupAfterCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, simulation{firsts: []key.Shard{0}})
		r := rand.New(rand.NewPCG(2, 0))
		c.load(r, 20)
		c.check(c.leader(0).store.Replica(0).Split(t.Context(), 2))
		for _, n := range c.nodes {
			n.crash(r, 0)
		}
		for _, n := range c.nodes {
			n.restart()
		}
		c.load(r, 20)
		c.whole()
		assert.Equal(t, 3, c.groups())
		c.close()

		one := c.nodes[1]
		missing, err := persistence.Recover("store", one.options(nil), one.name)
		require.True(t, err == nil && missing == nil, "%v, %v missing", err, missing)
		one.start()
		c.nodes = []*node{one}
		c.load(r, 20)
		c.whole()
		assert.Equal(t, 3, c.groups())
		c.close()
	})
}
