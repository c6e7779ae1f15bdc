package replicatest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
	"troupe/persistence/replica/replicatest"
)

const (
	simNodes     = 3 // each has every shard
	spreadNodes  = 5 // instead: simNodes of them have each shard but Meta
	simShards    = 3
	simInstances = 3 // of each shard
	simLogBytes  = 4 << 10
	simAhead     = 3 // writes of an instance that may be on their way
)

// cluster is some stores that have the same shards, and writers where they are led.
type cluster struct {
	t     *testing.T
	net   *replicatest.Network
	names []string
	nodes []*node
	sim   simulation
	lies  atomic.Bool                // see simulation
	homes map[key.Shard][]string     // of simulation.spread: the nodes that shall have a group, by its first shard
	moves map[key.Shard]*atomic.Bool // whether a step is under way

	mu     sync.Mutex
	next   uint64                // id of the next write
	acked  map[uint64]position   // by id
	shown  map[instanceAt]uint64 // the last entry of each instance that anybody was shown
	stale  []string              // what was shown that had been overtaken
	epochs int                   // that began
	stats  replica.Stats         // summed up over all groups that were stopped
	broken []string              // what kept nodes from starting
	looks  sync.WaitGroup        // those through other nodes than the leader, and steps of moves
	left   int                   // copies that nodes removed
	came   int                   // nodes that replaced others
}

// instanceAt is an instance of a shard.
type instanceAt struct {
	shard key.Shard
	id    key.ID
}

// position is where a write was acknowledged to be.
type position struct {
	shard key.Shard
	id    key.ID
	seq   uint64
}

// simulation says what is wrong with a cluster on purpose; the zero value is right.
type simulation struct {
	noSync   bool // the disks lie about syncs, while cluster.lies
	memory   bool // writers go on in a new epoch with what they remember
	tooEarly bool // an answer is taken for good that says that the outcome is unknown
	unasked  bool // readers do not ask whether the node leads still
	hasty    bool // a node removes its copy by what it heard earlier
	// Two that are no mistakes. spread: there are five nodes, and groups have homes that change. firsts: where groups begin.
	spread bool
	firsts []key.Shard
}

type node struct {
	c     *cluster
	name  string
	fs    *vfs.MemFS
	full  atomic.Bool // its disk
	store *persistence.Store

	mu      sync.Mutex
	writers map[key.Shard]*writer
	mirror  map[string]string // the rows of Meta, as who follows its changes has them; nil before the first look
}

func newCluster(t *testing.T, sim simulation) *cluster {
	c := &cluster{t: t, net: replicatest.NewNetwork(), sim: sim, acked: map[uint64]position{}, shown: map[instanceAt]uint64{}}
	count := simNodes
	if sim.spread {
		count = spreadNodes
	}
	for i := range count {
		c.names = append(c.names, fmt.Sprintf("node%d", i))
		c.nodes = append(c.nodes, c.node(c.names[i]))
	}
	c.found()
	if sim.spread {
		c.spread()
	}
	return c
}

// found makes the first node a cluster of one, and has the others join.
func (c *cluster) found() {
	first := c.nodes[0]
	s, err := persistence.Open("store", first.options(nil))
	c.check(err)
	w := s.NewBatch(0) // a store that stood alone before has rows already
	w.Set(key.Record(nil, 0, "before", key.ID{}), []byte("kept"))
	c.check(s.Commit(w))
	c.check(s.Bootstrap(first.name, c.sim.firsts))
	c.check(s.Close())
	for _, n := range c.nodes {
		n.start()
	}
	for sh := range first.store.Groups() {
		for _, n := range c.nodes[1:] {
			c.check(c.copyTo(n, sh).AddVoter(n.name))
		}
	}
}

// node is one that has nothing yet, and does not run.
func (c *cluster) node(name string) *node {
	return &node{c: c, name: name, fs: vfs.NewCrashableMem()}
}

// fresh starts one more node, which has nothing yet.
func (c *cluster) fresh() *node {
	n := c.node("fresh")
	n.start()
	return n
}

func (c *cluster) check(err error) {
	c.t.Helper()
	require.NoError(c.t, err)
}

// until lets time pass until something is so.
func (c *cluster) until(what string, so func() bool) {
	c.t.Helper()
	for range 600 {
		if so() {
			return
		}
		c.pass(100 * time.Millisecond)
	}
	c.t.Fatalf("a minute later: %s", what)
}

// pass lets virtual time pass.
func (c *cluster) pass(d time.Duration) { <-time.After(d) }

func (n *node) options(o *persistence.Replication) persistence.Options {
	var fs vfs.FS = n.fs
	if n.c.sim.noSync {
		fs = replicatest.LyingFS{FS: fs, Lies: &n.c.lies}
	}
	return persistence.Options{
		FS: metered{fs, n}, Shards: simShards, CacheBytes: 1 << 20, MemTableBytes: 256 << 10,
		Replication: o, Fatal: func(reason string) { panic(n.name + ": " + reason) },
	}
}

// metered is the disk of a node, which can be full.
type metered struct {
	vfs.FS
	of *node
}

// GetDiskUsage implements vfs.FS.
func (m metered) GetDiskUsage(string) (vfs.DiskUsage, error) {
	usage := vfs.DiskUsage{TotalBytes: 1 << 41, AvailBytes: 1 << 40}
	if m.of.full.Load() {
		usage.AvailBytes = 0
	}
	usage.UsedBytes = usage.TotalBytes - usage.AvailBytes
	return usage, nil
}

// fill returns when the store has noticed that there is no room any more.
func (n *node) fill() {
	n.full.Store(true)
	n.c.until("a full disk takes writes", func() bool { return n.store.Accepting() != nil })
}

func (n *node) replication() *persistence.Replication {
	return &persistence.Replication{Node: n.name, Streams: n.c.net.Streams(n.name), LogBytesMax: simLogBytes}
}

func (n *node) start() {
	n.mu.Lock()
	n.writers = map[key.Shard]*writer{}
	n.mu.Unlock()
	s, err := persistence.Open("store", n.options(n.replication()))
	if err != nil {
		n.c.broken = append(n.c.broken, fmt.Sprintf("%s: %v", n.name, err))
		return
	}
	n.mu.Lock()
	n.store = s
	s.Follow(n)
	n.mirrorAll()
	n.mu.Unlock()
	s.FollowLeads(n)
}

// mirrorAll reads all rows of Meta. n.mu is held.
func (n *node) mirrorAll() { n.mirror = n.metaRows() }

func (n *node) metaRows() map[string]string { return n.rows(key.Meta) }

// rows are those of a shard, but for those about the replica.
func (n *node) rows(sh key.Shard) map[string]string {
	rows := map[string]string{}
	err := n.store.Scan(key.ShardPrefix(nil, sh), func(rowKey, value []byte) error {
		if k, _ := key.Parse(rowKey); k.Table != "replica" {
			rows[string(rowKey)] = string(value)
		}
		return nil
	})
	if err != nil && !errors.Is(err, persistence.ErrClosed) {
		panic(err)
	}
	return rows
}

// Changed implements persistence.Follower.
func (n *node) Changed(keys [][]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range keys {
		if n.store == nil { // it is read when the store is open
			return
		}
		value, err := n.store.Load(key)
		switch {
		case err == nil:
			n.mirror[string(key)] = string(value)
		case errors.Is(err, persistence.ErrNotFound):
			delete(n.mirror, string(key))
		}
	}
}

// Replaced implements persistence.Follower.
func (n *node) Replaced() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.store != nil {
		n.mirrorAll()
	}
}

// stop closes the store, as far as it can be.
func (n *node) stop() error {
	if n.store == nil {
		return nil
	}
	c := n.c
	for _, g := range n.store.Groups() {
		c.stats.Installed += g.Stats().Installed
	}
	err := n.store.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.store = nil
	return err
}

// crash takes the power from a node: what was not synced is lost, or part of it.
func (n *node) crash(r *rand.Rand, unsyncedPercent int) {
	n.c.net.Isolate(n.name, n.c.names, true)
	after := n.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsyncedPercent, RNG: r})
	_ = n.stop()
	n.fs = after
}

func (n *node) restart() {
	n.c.net.Isolate(n.name, n.c.names, false)
	n.start()
}

// short is a number, and a smaller one beside the race detector.
func short(n, fewer int) int {
	if testing.Short() {
		return fewer
	}
	return n
}

// onCluster runs a test in virtual time on a new cluster, which is closed at the end.
func onCluster(t *testing.T, test func(t *testing.T, c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, simulation{})
		test(t, c)
		c.close()
	})
}

// write commits a row where its shard is led.
func write(s *persistence.Store, sh key.Shard, row []byte) error {
	w := s.NewBatchIn(sh, s.Epoch(sh))
	w.Set(row, nil)
	return storeWrites(s, w)
}
