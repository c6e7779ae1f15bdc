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

	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/persistence/key"
)

// TestChildrenOnACluster: whatever happens to the nodes, each parent has one child, and hears of it once.
func TestChildrenOnACluster(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		r := rand.New(rand.NewPCG(3, 9))
		send := func(workflowID, id, name, key string) {
			t.Helper()
			c.must(c.ask(r, func(router *workflow.Router) error {
				_, err := router.Send(context.Background(), event(boss, workflowID, id, name, "", key))
				return err
			}))
		}
		var ids []string
		for i := range 12 {
			id := c.createWith(r, fmt.Sprint(i), "above", `{"n":2}`)
			send("above", id, "go", fmt.Sprint("go", i))
			ids = append(ids, id)
		}
		for range rounds {
			c.fault(r)
		}
		c.pass(time.Minute)
		for i, id := range ids {
			var pending *message.Pending
			c.must(c.ask(r, func(router *workflow.Router) (err error) {
				pending, err = router.Pending(&message.Load{Caller: boss, WorkflowID: "above", InstanceID: id})
				return err
			}))
			require.True(t, len(pending.Children) == 1 && pending.Children[0].Status.String() == "running", "the instance has the children %v", pending.Children)
			send("below", pending.Children[0].InstanceID, "finish", fmt.Sprint("finish", i))
		}
		for range rounds {
			c.fault(r)
		}
		c.pass(time.Minute)
		for _, id := range ids {
			var reply *message.Reply
			c.must(c.ask(r, func(router *workflow.Router) (err error) {
				reply, err = router.Load(context.Background(), &message.Load{Caller: boss, WorkflowID: "above", InstanceID: id, WithHistory: true})
				return err
			}))
			assert.Equal(t, ",go,done.invoke.busy", events(t, reply), "the parent was told")
		}
		for _, n := range c.nodes {
			left := 0
			c.must(n.Store.Scan(key.DeliveriesPrefix(nil, key.EveryShard), func(_, _ []byte) error { left++; return nil }))
			for workflowID, want := range map[string]int64{"above": 12, "below": 12, "deepest": 12} {
				made, err := n.Store.CountAll(key.CountPrefix(nil, key.EveryShard, workflowID))
				assert.True(t, err == nil && made == want, "%s: %d instances of %s, %v, want %d", n.Name, made, workflowID, err, want)
			}
			assert.Zero(t, left, n.Name)
			n.stop()
		}
	})
}
