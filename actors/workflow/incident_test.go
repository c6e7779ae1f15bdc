package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/incident"
	"troupe/actors/pending"
	"troupe/actors/workflow"
	"troupe/persistence/key"
)

// TestIncidentsOfAClusterAreOne: whatever node they fail on, any lists them, and they are one.
func TestIncidentsOfAClusterAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		r := rand.New(rand.NewPCG(3, 5))
		for sh := range c.nodes[0].Store.AllShards() {
			if to := c.nodes[int(sh)%clusterNodes]; to != c.nodes[0] {
				c.must(c.nodes[0].Store.Replica(sh).HandOver(t.Context(), to.Name))
			}
		}
		led := map[string]int{}
		for k := range 24 {
			id := c.createWith(r, fmt.Sprint(k), "faulty", "")
			c.fails(r, id, led)
		}
		require.Len(t, led, 2, "failed")
		c.pass(5 * time.Second)
		var id string
		for _, n := range c.nodes {
			page, err := n.router.Waiting.Incidents(context.Background(), &pending.IncidentList{Caller: boss, Limit: 10})
			c.must(err)
			if !assert.True(t, len(page.Incidents) == 1 && page.Incidents[0].Row.Count == 24 && (id == "" || page.Incidents[0].ID == id), "%v %v", n.Name, page.Incidents) {
				continue
			}
			id = page.Incidents[0].ID
		}
		c.must(c.ask(r, func(router *workflow.Router) error {
			return router.ChangeIncident(context.Background(), boss, id, true)
		}))
		page, err := c.nodes[0].router.Waiting.Incidents(context.Background(), &pending.IncidentList{Caller: boss, Limit: 10})
		if c.must(err); len(page.Incidents) != 0 {
			t.Errorf("dropped, but %v", page.Incidents)
		}
		for _, n := range c.nodes {
			n.stop()
		}
	})
}

// fails has an instance fail where it is led.
func (c *cluster) fails(r *rand.Rand, id string, led map[string]int) {
	c.t.Helper()
	for {
		for _, n := range c.nodes {
			_, err := n.router.Send(context.Background(), event(boss, "faulty", id, "go", "", ""))
			if errors.Is(err, failure.ErrExecution) {
				led[n.Name]++
				return
			}
			require.False(c.t, !errors.Is(err, failure.ErrNotLeader) && !errors.Is(err, failure.ErrUnavailable), err)
		}
		c.pass(time.Duration(r.IntN(100)) * time.Millisecond)
	}
}

// putElsewhere has the leader of a shard put incidents there, over links that are not cut.
func (n *clusterNode) putElsewhere(ctx context.Context, sh uint16, rows []incident.Row) error {
	for _, to := range n.c.nodes {
		if to.router != nil && to.router.Store().Epoch(key.Shard(sh)) != 0 {
			return to.router.Incidents.Put(ctx, sh, rows)
		}
	}
	return failure.ErrUnavailable
}
