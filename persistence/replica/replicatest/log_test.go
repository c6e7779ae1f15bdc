package replicatest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/key"
)

// TestALogHasWhatAMemberLacks: a node that was away gets what it lacks from the log. Once all have it, the logs of
// all are short.
func TestALogHasWhatAMemberLacks(t *testing.T) {
	onCluster(t, func(t *testing.T, c *cluster) {
		number := byte(0)
		writes := func(count int) {
			for range count {
				number++
				c.check(write(c.leader(0).store, 0, key.Record(nil, 0, "log", key.ID{number})))
			}
		}
		longest := func() (bytes int64) {
			for _, n := range c.nodes {
				bytes = max(bytes, n.store.Replica(0).Stats().LogBytes)
			}
			return bytes
		}
		writes(1)
		leader, away := c.leader(0), c.nodes[0]
		if away == leader {
			away = c.nodes[1]
		}
		before := away.store.Replica(0).Stats().Installed
		c.net.Isolate(away.name, c.names, true)
		writes(20)
		all := leader.store.Replica(0).Stats().LogBytes
		c.net.Isolate(away.name, c.names, false)
		c.check(away.store.AwaitApplied(t.Context(), 0, leader.store.Replica(0).Applied()))
		assert.Equal(t, before, away.store.Replica(0).Stats().Installed, "copies of the shard")
		assert.GreaterOrEqual(t, all, int64(20*50), "bytes of the log while a node is away")
		c.until("the logs are long", func() bool { writes(1); return longest() < all/4 })
	})
}
