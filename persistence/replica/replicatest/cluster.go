package replicatest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence"
	"troupe/persistence/key"
)

// Options of Start.
type Options struct {
	Nodes, Shards int
	// Firsts are the first shards of the groups; nil: each shard has its own.
	Firsts []key.Shard
	// Replicas is how many nodes have a replica of each numbered shard: others than those of the shard before. Zero: all.
	Replicas int
	// Before is called with the first node's store while that is standalone. Nil: nothing is done.
	Before func(*persistence.Store) error
}

// Cluster is some nodes in memory that have the same shards. It belongs to a bubble of
// testing/synctest, and one goroutine.
type Cluster struct {
	Net   *Network
	Nodes []*Node
	o     Options
}

// Node is a store on a disk of its own.
type Node struct {
	Name  string
	Store *persistence.Store
	of    *Cluster
	disk  *vfs.MemFS
	after *vfs.MemFS // what is left of the disk when the power is cut
}

// Start makes the first node a cluster of one, and has the others join. All lead nothing
// but the first, which leads everything, or with Options.Replicas at least Meta.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{Net: NewNetwork(), o: o}
	for i := range o.Nodes {
		c.Nodes = append(c.Nodes, &Node{Name: fmt.Sprintf("node%d", i), of: c, disk: vfs.NewCrashableMem()})
	}
	if err := c.found(); err != nil {
		return nil, err
	}
	first := c.Nodes[0]
	for _, n := range c.Nodes {
		if err := n.Open(); err != nil {
			return nil, err
		}
	}
	for sh := range first.Store.AllShards() {
		for first.Store.Epoch(sh) == 0 {
			<-time.After(100 * time.Millisecond)
		}
		g := first.Store.Replica(sh)
		for _, n := range c.Nodes[1:] {
			if err := errors.Join(n.Store.Join(sh), g.AddLearner(n.Name), g.AddVoter(n.Name), n.Store.AwaitApplied(ctx, sh, g.Applied())); err != nil {
				return nil, err
			}
		}
	}
	for sh := range first.Store.AllShards() {
		if sh != key.Meta && o.Replicas > 0 {
			if err := c.confine(ctx, sh); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// confine takes a shard, which the first node leads, from all nodes but Options.Replicas, the first of which leads it.
func (c *Cluster) confine(ctx context.Context, sh key.Shard) error {
	leader := c.Nodes[int(sh)%len(c.Nodes)]
	for first := c.Nodes[0]; leader.Store.Epoch(sh) == 0; {
		if first.Store.Epoch(sh) != 0 {
			_ = first.Store.Replica(sh).HandOver(ctx, leader.Name) // NB: it may be behind
		}
		<-time.After(100 * time.Millisecond)
	}
	for i := c.o.Replicas; i < len(c.Nodes); i++ {
		n := c.Nodes[(int(sh)+i)%len(c.Nodes)]
		if err := errors.Join(leader.Store.Replica(sh).Remove(n.Name), n.Store.Leave(sh, nil)); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the stores of all nodes.
func (c *Cluster) Close() (err error) {
	for _, n := range c.Nodes {
		err = errors.Join(err, n.Store.Close())
	}
	return err
}

// found makes the first node's store one of a cluster.
func (c *Cluster) found() error {
	first := c.Nodes[0]
	s, err := persistence.Open("store", first.options())
	if err != nil {
		return err
	}
	if c.o.Before != nil {
		err = c.o.Before(s)
	}
	return errors.Join(err, s.Bootstrap(first.Name, c.o.Firsts), s.Close())
}

func (n *Node) options() persistence.Options { return storeOptions(n.Name, n.disk, n.of.o.Shards) }

// StoreOptions returns those of a store on a new disk in memory.
func StoreOptions(name string, shards int) persistence.Options {
	return storeOptions(name, vfs.NewCrashableMem(), shards)
}

func storeOptions(name string, disk vfs.FS, shards int) persistence.Options {
	return persistence.Options{
		FS: disk, Shards: shards, CacheBytes: 1 << 20, MemTableBytes: 256 << 10, FreeBytesMin: -1,
		Fatal: func(reason string) { panic(name + ": " + reason) },
	}
}

// Names are the nodes' ids.
func (c *Cluster) Names() (names []string) {
	for _, n := range c.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// Isolate cuts or heals all links of the node.
func (n *Node) Isolate(cut bool) { n.of.Net.Isolate(n.Name, n.of.Names(), cut) }

// Open opens the store, which is closed.
func (n *Node) Open() (err error) {
	o := n.options()
	o.Replication = &persistence.Replication{Node: n.Name, Streams: n.of.Net.Streams(n.Name)}
	n.Store, err = persistence.Open("store", o)
	return err
}

// Recover makes the node, whose store is closed, the only one of a new cluster. The caller calls Open.
func (n *Node) Recover() error {
	_, err := persistence.Recover("store", n.options(), n.Name)
	return err
}

// CutPower cuts the node's links and remembers what is on the disk: what was not synced is
// lost, or a part of it. The caller ends what uses the store, closes that, and calls Restore.
func (n *Node) CutPower(r *rand.Rand) {
	n.Isolate(true)
	n.after = n.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
}

// Restore opens the store as it was when the power was cut.
func (n *Node) Restore() error {
	n.disk = n.after
	n.Isolate(false)
	return n.Open()
}
