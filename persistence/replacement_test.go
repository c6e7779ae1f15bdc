package persistence

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// onAGroup runs a test on the store of a cluster of one node, whose three shards are in one group.
func onAGroup(t *testing.T, test func(t *testing.T, s *Store)) {
	synctest.Test(t, func(t *testing.T) {
		o := sharded(3)
		o.FS = vfs.NewMem()
		first, err := Open("db", o)
		require.NoError(t, err)
		require.NoError(t, first.Bootstrap("only", []key.Shard{0}))
		require.NoError(t, first.Close())
		o.Replication = &Replication{Node: "only", Streams: func(key.Shard) replica.Streams { return nobody{make(chan struct{})} }}
		s, err := Open("db", o)
		require.NoError(t, err)
		test(t, s)
		require.NoError(t, s.Close())
	})
}

// led waits until the node leads all shards.
func led(t *testing.T, s *Store) {
	t.Helper()
	for sh := range s.AllShards() {
		for begun := time.Now(); s.Epoch(sh) == 0; clocktest.Advance(time.Millisecond) {
			require.Less(t, time.Since(begun), time.Minute, "nobody leads shard %d", sh)
		}
	}
}

// TestACopyLeavesThePartThatWasDivided: a copy of a group without some shards comes, and meanwhile this node learns that
// the group was divided, and has the other part itself.
func TestACopyLeavesThePartThatWasDivided(t *testing.T) {
	onAGroup(t, func(t *testing.T, s *Store) {
		led(t, s)
		for sh := range key.Shard(3) {
			w := s.NewBatch(sh)
			w.Set(key.Record(nil, sh, "w", key.ID{1}), nil)
			require.NoError(t, s.Commit(w))
		}
		copied, err := localRows{s, 0}.Replace()
		require.NoError(t, err)
		require.NoError(t, copied.Reach(0))
		require.NoError(t, copied.Set(key.Record(nil, 0, "w", key.ID{2}), nil))
		require.NoError(t, s.Replica(0).Split(t.Context(), 1))
		led(t, s)
		require.NoError(t, copied.Commit())
		for sh := range key.Shard(3) {
			_, err := s.Load(key.Record(nil, sh, "w", key.ID{1}))
			if sh == 0 {
				require.ErrorIs(t, err, ErrNotFound)
			} else {
				require.NoError(t, err, "shard %d", sh)
			}
		}
	})
}

// TestACopyFromBeforeTheDivisionIsRefused where the other part is, in the table of groups or only in the store.
func TestACopyFromBeforeTheDivisionIsRefused(t *testing.T) {
	onAGroup(t, func(t *testing.T, s *Store) {
		led(t, s)
		require.NoError(t, s.Replica(0).Split(t.Context(), 1))
		led(t, s)
		other := s.Replica(1)
		for _, where := range []string{"in the table", "in the store"} {
			copied, err := localRows{s, 0}.Replace()
			require.NoError(t, err)
			require.ErrorIs(t, copied.Reach(2), replica.ErrOverlap, where)
			copied.Abort()
			s.replicas.Uncover(other, -1)
		}
		require.NoError(t, s.replicas.Cover(other)) // it is stopped with the others
	})
}
