package workflow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/message"
	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/persistence/key"
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
		r := rand.New(rand.NewPCG(1, 37))
		one := c.create(r, "watched")
		want, wantOne := []string{}, []string{}
		var all, ofOne []*watcher
		for _, n := range c.nodes {
			all = append(all, n.watch("", ""))
			ofOne = append(ofOne, n.watch(one, ""), n.watchOf(&watch.Request{Caller: boss, WorkflowID: "stock", InstanceID: one, Filter: `{"svcPublic.a":1}`}))
		}
		c.pass(time.Second)
		moved := make(chan error)
		go func() {
			var failed error
			for _, step := range [][2]int{{0, 3}, {3, 4}, {4, 0}} { // NB: shard n lives on the nodes n, n+1 and n+2, and n leads it
				for sh := range key.Shard(c.of.Shards) {
					failed = errors.Join(failed, c.moveReplica(t.Context(), sh, c.nodes[(int(sh)+step[0])%5], c.nodes[(int(sh)+step[1])%5]))
					c.pass(200 * time.Millisecond)
				}
			}
			moved <- failed
		}()
		instances := 1
		for done := false; !done; {
			select {
			case err := <-moved:
				assert.NoError(t, err, "a shard cannot be moved")
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
		for _, n := range c.nodes {
			for sh := range key.Shard(c.of.Shards) {
				assert.Equal(t, n.Store.Epoch(sh) != 0, n == c.nodes[int(sh)%5], "%s leads shard %d", n.Name, sh)
			}
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
				assert.Equal(t, []string{"lost"}, unexpected(wantOne, w.events), "watch %d of one instance", i)
			} else {
				assert.Equal(t, wantOne, w.events, "watch %d of one instance", i)
			}
			w.leave(t)
		}
		assert.Greater(t, len(wantOne), 3*c.of.Shards, "events while replicas moved")
	})
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
