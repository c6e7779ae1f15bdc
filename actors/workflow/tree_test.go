package workflow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/incident"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/pending"
	"troupe/actors/workflow"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// bombMachines is how many the bomb of a cluster has.
const bombMachines = 5

// move has other nodes lead the shards, each one a number of places further in the list of nodes than the shard's number.
func (c *cluster) move(by int) {
	c.t.Helper()
	for _, n := range c.nodes {
		for sh := range n.Store.AllShards() {
			if to := c.nodes[(int(sh)+by)%clusterNodes]; to != n && n.Store.Epoch(sh) != 0 {
				c.must(n.Store.Replica(sh).HandOver(c.t.Context(), to.Name))
			}
		}
	}
	c.pass(5 * time.Second)
}

// limitedCluster is limited for a cluster, whose shards the nodes lead in turn.
func limitedCluster(t *testing.T, most int, seed uint64, test func(t *testing.T, c *cluster, r *rand.Rand)) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, treeMax: most}
		c.start(c.publish)
		c.move(0)
		test(t, c, rand.New(rand.NewPCG(3, seed)))
		for _, n := range c.nodes {
			n.stop()
		}
	})
}

// TestATreeIsLimitedOnACluster: one count, whatever nodes lead its instances, also when the root moves.
func TestATreeIsLimitedOnACluster(t *testing.T) {
	const most, machines = 12, bombMachines
	limitedCluster(t, most, 7, func(t *testing.T, c *cluster, r *rand.Rand) {
		// running counts the instances that run, and those that there are, and returns one with a machine that was refused.
		running := func() (runs int, one string, refused int) {
			t.Helper()
			c.pass(time.Minute)
			n := c.nodes[0]
			c.must(n.Store.Scan(key.RecordPrefix(nil, key.EveryShard, "bomb"), func(rowKey, _ []byte) error {
				id, ok := key.RecordID(rowKey)
				require.True(t, ok, "the key %q is no record's", rowKey)
				name := instanceid.Text(id)
				return c.ask(r, func(router *workflow.Router) error {
					p, err := router.Pending(&message.Load{Caller: boss, WorkflowID: "bomb", InstanceID: name})
					if err != nil || p.IsEnded {
						return err
					}
					runs++
					for _, k := range p.Children {
						if k.Status == statemachine.ChildFailed {
							one = name
						}
					}
					return nil
				})
			}))
			page, err := n.router.Waiting.Incidents(context.Background(), &pending.IncidentList{Limit: 10})
			c.must(err)
			require.True(t, len(page.Incidents) == 1 && page.Incidents[0].Row.Kind == incident.Tree, "the incidents are %+v", page.Incidents)
			return runs, one, int(page.Incidents[0].Row.Count)
		}
		root := c.createWith(r, "root", "bomb", "")
		runs, one, refused := running()
		want := most*machines - (most - 1)
		assert.True(t, runs == most && refused == want, "%d instances run, and %d invocations were refused, want %d and %d", runs, refused, most, want)
		c.move(1)
		c.must(c.ask(r, func(router *workflow.Router) error {
			_, err := router.Send(context.Background(), event(boss, "bomb", one, "again", "", "again"))
			return err
		}))
		runs, _, more := running()
		assert.True(t, runs == most && more > refused, "behind a move %d instances run, want %d, and %d invocations more were refused", runs, most, more-refused)
		c.must(c.ask(r, func(router *workflow.Router) error {
			return router.StopTree(t.Context(), "bomb", root, "olivia")
		}))
		runs, _, _ = running()
		assert.Zero(t, runs, "instances run in a tree that was stopped")
	})
}

// TestALeaderThatComesBackCountsAnew: others have let children in meanwhile.
func TestALeaderThatComesBackCountsAnew(t *testing.T) {
	const most = 4
	limitedCluster(t, most, 8, func(t *testing.T, c *cluster, r *rand.Rand) {
		root := c.createWith(r, "root", "hand", "")
		for n, led := range []int{0, 1, 1, 0} { // the last one is beyond
			c.move(led)
			c.must(c.ask(r, func(router *workflow.Router) error {
				_, err := router.Send(context.Background(), event(boss, "hand", root, fmt.Sprint("finger", n), "", fmt.Sprint(n)))
				return err
			}))
			c.pass(time.Second)
			made, err := c.nodes[0].Store.CountAll(key.CountPrefix(nil, key.EveryShard, "deepest"))
			if c.must(err); int(made) != min(n+1, most-1) {
				t.Errorf("behind %d fingers %d children were made", n+1, made)
			}
		}
	})
}
