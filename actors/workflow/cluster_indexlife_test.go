package workflow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/persistence"
	"troupe/persistence/key"
)

// hold keeps a node from taking over what is published until release is called.
func (c *indexCluster) hold(n *clusterNode) (release func()) {
	held := make(chan struct{})
	c.mu.Lock()
	c.held[n.Name] = held
	c.mu.Unlock()
	c.pass(6 * time.Second) // NB: longer than any delay: it takes over what it was about to when it was held
	return func() {
		c.mu.Lock()
		delete(c.held, n.Name)
		c.mu.Unlock()
		close(held)
	}
}

// give has the first node hand all numbered shards over to another one.
func (c *indexCluster) give(to *clusterNode) {
	for sh := range key.Shard(clusterShards) {
		for to.Store.Epoch(sh) == 0 {
			_ = c.nodes[0].Store.Replica(sh).HandOver(c.t.Context(), to.Name) // NB: it may be behind
			c.pass(100 * time.Millisecond)
		}
	}
}

// setAll sends each instance an event that changes what is indexed, through one node. It returns the
// first error.
func (c *indexCluster) setAll(n *clusterNode, data string) error {
	for sh := range key.Shard(clusterShards) {
		for _, s := range c.instances(n.Store, sh) {
			if err := c.set(n, s.doc.ID, data); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *indexCluster) set(n *clusterNode, id, data string) error {
	_, err := n.router.Send(context.Background(), event(boss, "stock", id, "set", data, ""))
	return err
}

// stateIn is how far a shard of a node says that an index is; empty: it has no row.
func (c *indexCluster) stateIn(n *clusterNode, sh key.Shard, number uint32) string {
	state, err := n.Store.Load(key.IndexState(nil, sh, number))
	if !errors.Is(err, persistence.ErrNotFound) {
		c.must(err)
	}
	return string(state)
}

func failOn(t *testing.T, faults []string) {
	t.Helper()
	for _, fault := range faults {
		t.Error(fault)
	}
}

// TestIndexesOfAStoreThatStoodAlone: they are built anew, because nobody knows who wrote since, and the
// number stays.
func TestIndexesOfAStoreThatStoodAlone(t *testing.T) {
	failOn(t, onIndexCluster(t, nil, func(c *indexCluster) {
		c.awaitFinished()
		c.checkShards()
		for _, n := range c.nodes {
			if got := c.stateIn(n, 0, 1); got != "whole" {
				c.fault("%s: the index is %q, want whole", n.Name, got)
			}
			if plans := c.checkQueries(n); plans[0] != "index" {
				c.fault("%s: the plan is %s, want index", n.Name, plans[0])
			}
		}
	}))
}

// TestSeveralValuesAreKnownOnEveryNode: a range of an index has one end then, whichever node wrote the
// values.
func TestSeveralValuesAreKnownOnEveryNode(t *testing.T) {
	failOn(t, onIndexCluster(t, nil, func(c *indexCluster) {
		c.republish("svcPublic.n")
		c.awaitFinished()
		c.must(c.set(c.nodes[0], c.instances(c.nodes[0].Store, 0)[0].doc.ID, `{"n":[1,5]}`))
		for _, n := range c.nodes {
			if plans := c.checkQueries(n); plans[5] != "index" {
				c.fault("%s: the plan is %s, want index", n.Name, plans[5])
			}
		}
	}))
}

// lateLeader makes the moment at which a leader must wait: an index is published and whole, while
// one node does not learn of it, which then leads all shards. It learns after write.
func (c *indexCluster) lateLeader(write func(late *clusterNode)) {
	late := c.nodes[1]
	release := c.hold(late)
	c.republish("svcPublic.a", "svcPublic.t") // with the numbers 1 and 2
	for sh := range key.Shard(clusterShards) {
		for c.stateIn(late, sh, 2) != "whole" {
			c.pass(100 * time.Millisecond)
		}
	}
	c.give(late)
	write(late)
	release()
	c.pass(5 * time.Second)
}

// TestANewLeaderWritesNothingBeforeItKnowsTheIndexes: it reads, though.
func TestANewLeaderWritesNothingBeforeItKnowsTheIndexes(t *testing.T) {
	failOn(t, onIndexCluster(t, nil, func(c *indexCluster) {
		c.lateLeader(func(late *clusterNode) {
			if err := c.setAll(late, `{"a":7,"t":"t03"}`); !errors.Is(err, failure.ErrUnavailable) {
				c.fault("an event: got %v, want ErrUnavailable", err)
			}
			for _, s := range c.instances(late.Store, 0) {
				_, err := late.router.Load(context.Background(), &message.Load{Caller: boss, WorkflowID: "stock", InstanceID: s.doc.ID})
				if err != nil {
					c.fault("a look: %v", err)
				}
			}
		})
		c.must(c.setAll(c.nodes[1], `{"a":8,"t":"t03"}`))
		c.awaitFinished()
		c.checkAll()
	}))
}

// TestADroppedIndexIsRightForWhoKnowsItStill: the leader stops maintaining it, and a node that
// does not know of that asks it no more. If that node leads, it builds the index, until it knows.
func TestADroppedIndexIsRightForWhoKnowsItStill(t *testing.T) {
	failOn(t, onIndexCluster(t, nil, func(c *indexCluster) {
		c.awaitFinished()
		late := c.nodes[1]
		release := c.hold(late)
		c.republish()
		c.must(c.setAll(c.nodes[0], `{"a":1}`))
		c.checkShards()
		if plans := c.checkQueries(late); plans[0] != "scan" || late.catalog.Indexes().Find("stock", "svcPublic.a") == nil {
			c.fault("an index that others have dropped: the plans are %q", plans)
		}
		c.pass(10 * time.Second)
		c.give(late)
		c.pass(10 * time.Second)
		if got := c.stateIn(late, 0, 1); got != "whole" {
			c.fault("where its leader knows the index still, it is %q, want whole", got)
		}
		c.must(c.setAll(late, `{"a":2}`))
		c.checkShards()
		c.checkQueries(late)
		release()
		c.awaitFinished()
		c.must(c.setAll(late, `{"a":3}`))
		c.checkAll()
	}))
}

// TestADropWhileAShardTakesNoWrites: the node could not hand the shard over, and leads it again.
func TestADropWhileAShardTakesNoWrites(t *testing.T) {
	failOn(t, onIndexCluster(t, nil, func(c *indexCluster) {
		c.awaitFinished()
		n := c.nodes[0]
		c.must(c.setAll(n, `{"a":1}`))
		resume, err := n.Store.Replica(0).Drain(c.t.Context())
		c.must(err)
		c.republish()
		c.pass(time.Second) // so that the builder meets it too
		resume()
		c.pass(time.Second)
		c.must(c.setAll(n, `{"a":2}`))
		c.checkShards()
		if got := c.stateIn(n, 0, 1); got != "" {
			c.fault("the shard says that a dropped index is %s", got)
		}
		c.awaitFinished()
	}))
}

// TestABuildThatIsCutOffIsDoneByTheNextLeader: it finds an index that is kept.
func TestABuildThatIsCutOffIsDoneByTheNextLeader(t *testing.T) {
	failOn(t, onIndexCluster(t, nil, func(c *indexCluster) {
		c.awaitFinished()
		first, next := c.nodes[0], c.nodes[1]
		sh, instances := key.Shard(0), c.instances(first.Store, 0)
		for len(instances) < 2 { // NB: which shard has how many is chance
			sh++
			instances = c.instances(first.Store, sh)
		}
		c.must(c.setAll(first, `{"t":"t03"}`)) // which wakes them
		release := first.router.Occupy(instances[len(instances)/2].id, 256)
		c.republish("svcPublic.a", "svcPublic.t")
		c.pass(3 * time.Second)
		if got := c.stateIn(first, sh, 2); got != "kept" {
			c.fault("an index that is being built is %q, want kept", got)
		}
		c.must(c.set(first, instances[0].doc.ID, `{"t":["t01","t02"]}`))
		c.checkShards()
		for _, n := range c.nodes {
			if plans := c.checkQueries(n); plans[3] != "scan" {
				c.fault("%s: while the index is being built the plan is %s", n.Name, plans[3])
			}
		}
		c.give(next)
		release()
		c.awaitFinished()
		c.checkShards()
		for _, n := range c.nodes {
			if plans := c.checkQueries(n); plans[3] != "index" {
				c.fault("%s: the plan is %s, want index", n.Name, plans[3])
			}
		}
	}))
}

// TestIndexesOfAClusterThatIsFoundAgain: a node that goes on alone may not know indexes that its
// shards have, and gives their numbers again.
func TestIndexesOfAClusterThatIsFoundAgain(t *testing.T) {
	failOn(t, onIndexCluster(t, nil, func(c *indexCluster) {
		c.awaitFinished()
		w := c.nodes[0].Store.NewBatch(0) // as if Meta had lost what declared it
		w.Set(key.IndexState(nil, 0, 2), []byte("whole"))
		w.Set(key.Index(nil, 0, 2, []byte("\x01old"), key.ID{1}), nil)
		c.must(c.nodes[0].Store.Commit(w))
		c.pass(10 * time.Second)
		left := c.nodes[1]
		for _, n := range c.nodes {
			n.stop()
		}
		c.must(left.Recover())
		c.must(left.Open())
		left.serve()
		c.nodes = []*clusterNode{left}
		c.Nodes = c.Nodes[1:2]
		for sh := range left.Store.AllShards() {
			for left.Store.Epoch(sh) == 0 {
				c.pass(100 * time.Millisecond)
			}
		}
		c.must(c.setAll(left, `{"a":1,"t":"t03"}`))
		c.republish("svcPublic.a", "svcPublic.t")
		c.awaitFinished()
		c.checkShards()
		if got := c.stateIn(left, 0, 2); got != "whole" || c.paths[2] != "svcPublic.t" {
			c.fault("the number that came again is on %s and %q", c.paths[2], got)
		}
		if plans := c.checkQueries(left); plans[0] != "index" || plans[3] != "index" {
			c.fault("the plans are %q", plans)
		}
	}))
}
