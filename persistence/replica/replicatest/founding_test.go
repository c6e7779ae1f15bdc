package replicatest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/internal/file"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
)

// TestAStoreOfAClusterIsNotOpenedAlone: what one node writes alone would divide the replicas, be it the one
// that was founded, one that has joined, or one that has just begun.
func TestAStoreOfAClusterIsNotOpenedAlone(t *testing.T) {
	onCluster(t, func(t *testing.T, c *cluster) {
		c.settle()
		fresh := c.fresh()
		c.check(fresh.store.Close())
		c.close()
		for _, n := range append(c.nodes, fresh) {
			n.wantReplicated()
			o := n.options(nil)
			o.ReadOnly = true
			s, err := persistence.Open("store", o)
			c.check(err)
			_, err = s.Load(key.Record(nil, 0, "before", key.ID{}))
			assert.False(t, err != nil && n != fresh, "%s: to be read it is not whole: %v", n.name, err)
			_, err = s.Verify(t.Context())
			assert.NoError(t, err, "%s: verify", n.name)
			c.check(s.Close())
		}

		// The format of who joined is still that of a store without replicas: a crash came between.
		joined := c.nodes[1]
		joined.formatBefore()
		joined.start()
		c.check(joined.stop())
		joined.wantReplicated()
		joined.formatBefore()
		_, err := persistence.Recover("store", joined.options(nil), joined.name)
		c.check(err)
		joined.wantReplicated()
	})
}

// wantReplicated fails when the store can be opened alone.
func (n *node) wantReplicated() {
	n.c.t.Helper()
	s, err := persistence.Open("store", n.options(nil))
	assert.ErrorIs(n.c.t, err, persistence.ErrReplicated, n.name)
	if err == nil {
		n.c.check(s.Close())
	}
}

// formatBefore makes the format of the store that of one that stands alone.
func (n *node) formatBefore() {
	n.c.check(file.Replace(n.fs, "store", "FORMAT", file.Seal(fmt.Appendf(nil, "troupe store\nreleased format 1\nshards %d\nreplicas false\n", simShards))))
}

// TestFoundingGoesOnAfterACrash: the power is cut before each write to the disk. What is left is a cluster
// of one or still a store that stands alone, which takes writes and is founded again. Nothing is lost, and a
// node that joins then gets everything.
func TestFoundingGoesOnAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, net: replicatest.NewNetwork(), acked: map[uint64]position{}, shown: map[instanceAt]uint64{}}
		disk := vfs.NewCrashableMem()
		cut := &cuts{disk: disk, rng: rand.New(rand.NewPCG(1, 1))}
		first := &node{c: c, name: "first", fs: disk}
		o := first.options(nil)
		o.FS = metered{errorfs.Wrap(disk, cut), first}
		s, err := persistence.Open("store", o)
		c.check(err)
		c.check(writeEverywhere(s, "before"))
		cut.on.Store(true)
		c.check(s.Bootstrap(first.name, nil))
		cut.on.Store(false)
		cut.take()
		c.check(s.Close())

		alone, whole, each := 0, 0, short(1, 4)
		for i, left := range cut.left {
			if i%each != 0 {
				continue
			}
			// As the server of the node would open it.
			n := &node{c: c, name: first.name, fs: copyOf(left)}
			s, err := persistence.Open("store", n.options(n.replication()))
			refused := errors.Is(err, persistence.ErrStandalone)
			require.False(t, err != nil && !refused, "cut %d: with replicas: %v", i, err)
			if err == nil {
				for sh := range s.AllShards() {
					assert.NotNil(t, s.Replica(sh), "cut %d: it is opened without shard %d", i, sh)
				}
				c.check(s.Close())
			}

			rows := []string{"before"}
			n = &node{c: c, name: first.name, fs: left}
			s, err = persistence.Open("store", n.options(nil))
			switch {
			case errors.Is(err, persistence.ErrReplicated):
				whole++
				require.False(t, refused, "cut %d: it is opened neither alone nor with replicas", i)
			case err != nil:
				t.Fatalf("cut %d: alone: %v", i, err)
			default:
				alone++
				c.check(writeEverywhere(s, "between"))
				rows = append(rows, "between")
				if i%2 == 0 {
					n.name = "other" // the identity was lost as well
				}
				c.check(s.Bootstrap(n.name, nil))
				c.check(s.Close())
			}
			c.nodes, c.names = []*node{n}, []string{n.name}
			n.start()
			joined := c.node("joined")
			joined.start()
			for sh := range n.store.AllShards() {
				c.copyTo(joined, sh)
				for _, name := range rows {
					for _, has := range []*node{n, joined} {
						_, err := has.store.Load(key.Record(nil, sh, name, key.ID{}))
						assert.NoError(t, err, "cut %d: %s: row %q of shard %d", i, has.name, name, sh)
					}
				}
			}
			c.check(joined.stop())
			c.close()
		}
		assert.True(t, c.broken == nil && alone*each >= 5 && whole*each >= 2, "%d cuts left a store that stands alone and %d a cluster; %v", alone, whole, c.broken)
	})
}

// writeEverywhere writes a row of each shard.
func writeEverywhere(s *persistence.Store, name string) (err error) {
	for sh := range s.AllShards() {
		w := s.NewBatch(sh)
		w.Set(key.Record(nil, sh, name, key.ID{}), nil)
		err = errors.Join(err, s.Commit(w))
	}
	return err
}

// copyOf is a disk with everything that another has.
func copyOf(disk *vfs.MemFS) *vfs.MemFS {
	return disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// cuts has what is left of a disk when the power is cut before each of its writes.
type cuts struct {
	disk *vfs.MemFS
	on   atomic.Bool

	mu   sync.Mutex
	left []*vfs.MemFS
	rng  *rand.Rand
}

func (*cuts) String() string { return "cuts" }

// MaybeError implements errorfs.Injector.
func (c *cuts) MaybeError(op errorfs.Op) error {
	if c.on.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
		c.take()
	}
	return nil
}

func (c *cuts) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, percent := range []int{0, 50, 100} {
		c.left = append(c.left, c.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng}))
	}
}
