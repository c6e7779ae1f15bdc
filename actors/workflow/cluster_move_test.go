package workflow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/message"
	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
)

// moveReplica gives a node the replica of another one, which may lead the shard. Each step is tried until it is done.
func (c *cluster) moveReplica(ctx context.Context, sh key.Shard, from, to *clusterNode) error {
	for _, step := range []func(leader *clusterNode) error{
		func(leader *clusterNode) error {
			return errors.Join(to.Store.Join(sh), leader.Store.Replica(sh).AddLearner(to.Name))
		},
		func(leader *clusterNode) error {
			g := leader.Store.Replica(sh)
			return errors.Join(to.Store.AwaitApplied(ctx, sh, g.Applied()), g.AddVoter(to.Name))
		},
		func(leader *clusterNode) error {
			if leader != from {
				return nil
			}
			return from.Store.Replica(sh).HandOver(ctx, to.Name)
		},
		func(leader *clusterNode) error { return leader.Store.Replica(sh).Remove(from.Name) },
	} {
		err := errors.New("nobody leads")
		for range 100 {
			if i := slices.IndexFunc(c.nodes, func(n *clusterNode) bool { return n.Store.Epoch(sh) != 0 }); i >= 0 {
				err = step(c.nodes[i])
			}
			if err == nil {
				break
			}
			c.pass(100 * time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("shard %d from %s to %s: %w", sh, from.Name, to.Name, err)
		}
	}
	return from.Store.Leave(sh, nil)
}

// TestShardsMoveUnderWatchesAndLists: while the leader of each shard loses its replica to a node that has none, again and again, lists
// and reads have everything that was acknowledged, on each node, and no watch misses an entry or is told one twice.
func TestShardsMoveUnderWatchesAndLists(t *testing.T) {
	onClusterOfFive(t, func(t *testing.T, c *cluster) {
		events, lost := c.nothingIsMissedWhile(func() (failed error) {
			for _, step := range [][2]int{{0, 3}, {3, 4}, {4, 0}} { // NB: shard n lives on the nodes n, n+1 and n+2, and n leads it
				for sh := range key.Shard(c.of.Shards) {
					failed = errors.Join(failed, c.moveReplica(t.Context(), sh, c.nodes[(int(sh)+step[0])%5], c.nodes[(int(sh)+step[1])%5]))
					c.pass(200 * time.Millisecond)
				}
			}
			return failed
		})
		for _, n := range c.nodes {
			for sh := range key.Shard(c.of.Shards) {
				assert.Equal(t, n.Store.Epoch(sh) != 0, n == c.nodes[int(sh)%5], "%s leads shard %d", n.Name, sh)
			}
		}
		assert.Greater(t, events, 3*c.of.Shards, "events while replicas moved")
		assert.Equal(t, len(c.nodes), lost, "filtered watches of one instance, of whose leader the replica went")
	})
}

// TestGroupsAreDividedUnderWatchesAndLists: nothing is missed or told twice while the one group of all shards is divided
// until each shard has its own, by whichever node leads it.
func TestGroupsAreDividedUnderWatchesAndLists(t *testing.T) {
	onClusterOf(t, replicatest.Options{Nodes: 3, Shards: 7, Firsts: []key.Shard{0}}, func(t *testing.T, c *cluster) {
		c.nothingIsMissedWhile(func() error {
			for _, at := range []key.Shard{3, 5, 1, 2, 6, 4} {
				err := errors.New("nobody leads")
				for range 100 {
					if i := slices.IndexFunc(c.nodes, func(n *clusterNode) bool { return n.Store.Epoch(at) != 0 }); i >= 0 {
						err = c.nodes[i].Store.Replica(at).Split(t.Context(), uint16(at))
					}
					if err == nil {
						break
					}
					c.pass(100 * time.Millisecond)
				}
				if err != nil {
					return err
				}
				c.pass(300 * time.Millisecond)
			}
			return nil
		})
		for _, n := range c.nodes {
			assert.Len(t, maps.Collect(n.Store.Groups()), c.of.Shards+1, "groups on %s", n.Name)
		}
	})
}

// nothingIsMissedWhile writes, lists, reads and watches while something happens. It returns how many events one instance got,
// and how many filtered watches of it were told that they may have lost something.
func (c *cluster) nothingIsMissedWhile(happens func() error) (events, lost int) {
	t, r := c.t, rand.New(rand.NewPCG(1, 37))
	one := c.create(r, "watched")
	want, wantOne := []string{}, []string{}
	var all, ofOne []*watcher
	for _, n := range c.nodes {
		all = append(all, n.watch("", ""))
		ofOne = append(ofOne, n.watch(one, ""), n.watchOf(&watch.Request{Caller: boss, WorkflowID: "stock", InstanceID: one, Filter: `{"svcPublic.a":1}`}))
	}
	c.pass(time.Second)
	ended := make(chan error)
	go func() { ended <- happens() }()
	instances := 1
	for done := false; !done; {
		select {
		case err := <-ended:
			assert.NoError(t, err)
			done = true
		default:
		}
		id := c.create(r, fmt.Sprint("i", instances))
		instances++
		want = append(want, id+" 1")
		c.set(r, one, fmt.Sprint("set-", instances)) // what the filter finds
		want, wantOne = append(want, fmt.Sprint(one, " ", len(wantOne)+2)), append(wantOne, fmt.Sprint(one, " ", len(wantOne)+2))
		n := c.nodes[r.IntN(len(c.nodes))]
		found, err := n.list(``)
		assert.NoError(t, err, "a list of %s", n.Name)
		assert.Len(t, found, instances, "a list of %s", n.Name)
		c.must(c.ask(r, func(router *workflow.Router) error {
			page, err := router.History(&message.History{Caller: boss, WorkflowID: "stock", InstanceID: one, Limit: 1000})
			if err == nil {
				assert.Equal(t, len(wantOne)+1, bytes.Count(page.Entries, []byte(`"endState"`)), "entries of a history")
			}
			return err
		}))
		c.pass(50 * time.Millisecond)
	}
	c.pass(5 * time.Second)
	slices.Sort(want)
	for i, w := range all {
		assert.Equal(t, want, w.heard(), "a watch of node %d", i)
		w.leave(t)
	}
	for i, w := range ofOne {
		w.heard()
		if isFiltered := i%2 == 1; isFiltered { // NB: of an entry that is old by then, nobody knows whether it matched
			if got := unexpected(wantOne, w.events); len(got) > 0 {
				assert.Equal(t, []string{"lost"}, got, "watch %d of one instance", i)
				lost++
			}
		} else {
			assert.Equal(t, wantOne, w.events, "watch %d of one instance", i)
		}
		w.leave(t)
	}
	return len(wantOne), lost
}

// unexpected are the events that are not the wanted ones in their order, which may have gaps behind "lost".
func unexpected(want, got []string) (other []string) {
	at, gap := 0, false
	for _, e := range got {
		i := slices.Index(want[at:], e)
		switch {
		case e == "lost":
			gap = true
			other = []string{e}
		case i == 0 || i > 0 && gap:
			at, gap = at+i+1, false
		default:
			return append(other, e)
		}
	}
	if at < len(want) && !gap {
		return append(other, "an end without "+want[at])
	}
	return other
}
