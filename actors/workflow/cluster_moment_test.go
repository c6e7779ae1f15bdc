package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"

	"troupe/actors"
	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/moment"
	"troupe/actors/workflow"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
)

// acknowledged is how many requests to each instance were.
type acknowledged struct {
	mu sync.Mutex
	of map[string]int
}

func (a *acknowledged) add(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of[id]++
}

func (a *acknowledged) now() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.of)
}

// momentOf makes a standalone store of what read gives, and looks at it: why it cannot be a moment of the cluster.
func (c *cluster) momentOf(before map[string]int, read func(set func(k, value []byte) error) error) error {
	store, err := persistence.Open("store", replicatest.StoreOptions("alone", c.of.Shards))
	c.must(err)
	defer func() { c.must(store.Close()) }()
	err = read(func(k, value []byte) error {
		w := store.NewBatch(key.ShardOf(k))
		if key.IsCount(k) {
			n, err := persistence.ParseCount(value)
			c.must(err)
			w.Add(k, n)
		} else {
			w.Set(k, value)
		}
		return store.Commit(w)
	})
	if err != nil {
		return err
	}
	for text, least := range before {
		id := key.ID(ulid.MustParse(text))
		entries := 0
		c.must(store.Scan(key.EntryPrefix(nil, store.ShardOf(id), id), func(_, _ []byte) error { entries++; return nil }))
		if entries < least {
			return fmt.Errorf("%s has %d entries, and %d requests were acknowledged before", text, entries, least)
		}
	}
	rows := func(prefix []byte) (n int) {
		c.must(store.Scan(prefix, func(_, _ []byte) error { n++; return nil }))
		return n
	}
	children := func() int { return rows(key.RecordPrefix(nil, key.EveryShard, "below")) }
	asked := 0
	c.must(store.Scan(key.RecordPrefix(nil, key.EveryShard, "above"), func(k, _ []byte) error {
		id, _ := key.RecordID(k)
		asked += min(rows(key.EntryPrefix(nil, store.ShardOf(id), id))-1, 1)
		return nil
	}))
	if now := children(); now > asked {
		return fmt.Errorf("%d children, and %d parents have asked for one", now, asked)
	}
	system := actors.NewSystem(zerolog.Nop())
	router, err := workflow.Start(workflow.Options{Store: store, System: system, Catalog: c.catalog(store), Log: zerolog.Nop(), Clock: time.Now, Sender: receiver{}})
	c.must(err)
	c.pass(time.Minute)
	missing := 0
	c.must(store.Scan(key.RecordPrefix(nil, key.EveryShard, "above"), func(k, _ []byte) error {
		id, _ := key.RecordID(k)
		p, err := router.Pending(&message.Load{Caller: boss, WorkflowID: "above", InstanceID: ulid.ULID(id).String()})
		for _, of := range p.Children {
			child := key.ID(ulid.MustParse(of.InstanceID))
			if _, err := store.Load(key.Record(nil, store.ShardOf(child), "below", child)); err != nil {
				missing++
			}
		}
		return err
	}))
	if now := children(); now != asked || missing > 0 {
		err = fmt.Errorf("%d children after a while, and %d parents have asked for one; %d children are missing", now, asked, missing)
	}
	c.must(errors.Join(router.Stop(context.Background()), system.Stop(context.Background())))
	return err
}

// onMoments runs a test on three nodes, each of which leads a third of the shards and reads moments.
func onMoments(t *testing.T, test func(t *testing.T, c *cluster, moments map[string]*moment.Service, goes func(r *rand.Rand, name string, acked *acknowledged))) {
	onClusterOf(t, replicatest.Options{Nodes: 3, Shards: 6, Replicas: 3}, func(t *testing.T, c *cluster) {
		moments := map[string]*moment.Service{}
		for _, n := range c.nodes {
			moments[n.Name] = moment.New(n.Store, n.router.Fanout)
		}
		test(t, c, moments, func(r *rand.Rand, name string, acked *acknowledged) {
			id := c.createWith(r, name, "above", `{"n":2}`)
			acked.add(id)
			c.send(r, "above", id, "go", "", name)
			acked.add(id)
		})
	})
}

// TestAMomentOfAClusterIsOne holds persistence/PROMISES.md, "P32: A backup has what was acknowledged", for a cluster: while
// parents get children in other shards, each moment, read through any node, has what was acknowledged before, and no child
// without its parent; and what goes on from it alone gives each parent that has asked its one child.
func TestAMomentOfAClusterIsOne(t *testing.T) {
	onMoments(t, func(t *testing.T, c *cluster, moments map[string]*moment.Service, goes func(*rand.Rand, string, *acknowledged)) {
		acked := &acknowledged{of: map[string]int{}}
		for i, n := range c.nodes {
			stop := make(chan struct{})
			var workers sync.WaitGroup
			for w := range 4 {
				workers.Go(func() {
					r := rand.New(rand.NewPCG(uint64(w), uint64(i)))
					for j := 0; ; j++ {
						select {
						case <-stop:
							return
						case <-time.After(time.Duration(r.IntN(50)) * time.Millisecond):
							goes(r, fmt.Sprint(i, "-", w, "-", j), acked)
						}
					}
				})
			}
			c.pass(500 * time.Millisecond)
			release, err := c.nodes[1].Store.Replica(1).Hold(t.Context()) // NB: so the snapshot of node1 is taken a second after the others
			c.must(err)
			time.AfterFunc(time.Second, release)
			assert.NoError(t, c.momentOf(acked.now(), func(set func(k, value []byte) error) error {
				err := moments[n.Name].Read(t.Context(), set)
				close(stop)
				workers.Wait()
				return err
			}), "of %s", n.Name)
		}
		assert.Greater(t, len(acked.now()), 30)
	})
}

// TestSnapshotsThatAreNotHeldAreNoMoment is the control: the shard of a parent is read before it asks for a child, and the
// others afterwards.
func TestSnapshotsThatAreNotHeldAreNoMoment(t *testing.T) {
	onMoments(t, func(t *testing.T, c *cluster, _ map[string]*moment.Service, goes func(*rand.Rand, string, *acknowledged)) {
		r := rand.New(rand.NewPCG(1, 38))
		err := c.momentOf(nil, func(set func(k, value []byte) error) error {
			for sh := range c.nodes[0].Store.AllShards() {
				for _, n := range c.nodes {
					if n.Store.Epoch(sh) == 0 {
						continue
					}
					c.must(n.Store.Scan(key.ShardPrefix(nil, sh), func(k, value []byte) error {
						if key.IsOfReplicas(k) {
							return nil
						}
						return set(k, value)
					}))
				}
				for i := range 5 {
					goes(r, fmt.Sprint(sh, "-", i), &acknowledged{of: map[string]int{}})
				}
				c.pass(time.Second)
			}
			return nil
		})
		assert.ErrorContains(t, err, "children")
	})
}

// TestAMomentNeedsItsLeaders: one that was replaced while its shards were held cannot confirm, one that was cut off neither,
// and without most nodes there is no leader. Commits go on each time.
func TestAMomentNeedsItsLeaders(t *testing.T) {
	onMoments(t, func(t *testing.T, c *cluster, moments map[string]*moment.Service, goes func(*rand.Rand, string, *acknowledged)) {
		r := rand.New(rand.NewPCG(1, 38))
		read := func() (rows int, err error) {
			err = moments["node0"].Read(t.Context(), func(_, _ []byte) error { rows++; return nil })
			return rows, err
		}
		release, err := c.nodes[1].Store.Replica(1).Hold(t.Context())
		c.must(err)
		begun := time.Now()
		time.AfterFunc(time.Second, release)
		rows, err := read()
		assert.True(t, err == nil && rows > 0 && time.Since(begun) >= time.Second, "while somebody else holds a shard: %d rows, %v", rows, err)

		release, err = c.nodes[1].Store.Replica(1).Hold(t.Context())
		c.must(err)
		time.AfterFunc(time.Second, release)
		time.AfterFunc(time.Second/2, func() { assert.NoError(t, c.nodes[0].Store.Replica(0).HandOver(t.Context(), "node2")) })
		_, err = read()
		assert.ErrorIs(t, err, failure.ErrUnavailable, "when another node has led a shard that was held")
		assert.NotZero(t, c.nodes[2].Store.Epoch(0))

		c.nodes[1].Isolate(true)
		_, err = read()
		assert.True(t, err == nil || errors.Is(err, failure.ErrUnavailable), "%v", err)
		goes(r, "goes on", &acknowledged{of: map[string]int{}})
		c.pass(10 * time.Second)
		rows, err = read()
		assert.True(t, err == nil && rows > 0, "when others lead the shards of a node that was cut off: %d rows, %v", rows, err)
		c.nodes[2].Isolate(true)
		c.pass(10 * time.Second)
		_, err = read()
		assert.ErrorIs(t, err, failure.ErrUnavailable, "without most nodes")
		c.nodes[1].Isolate(false)
		c.nodes[2].Isolate(false)
		c.pass(10 * time.Second)
		goes(r, "again", &acknowledged{of: map[string]int{}})
	})
}
