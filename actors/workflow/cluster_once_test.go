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

// TestNothingIsDoneTwiceOnACluster: whatever happens to the nodes, whichever of them leads at the time, each timer comes
// once, each run of a schedule is made once, and each parent has one child and hears of it once.
func TestNothingIsDoneTwiceOnACluster(t *testing.T) {
	rounds, between := rounds(4, 6, 12), 30*time.Second
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c := newCluster(t)
		r := rand.New(rand.NewPCG(5, 11))
		history := func(workflowID, id, want string) {
			t.Helper()
			c.must(c.ask(r, func(router *workflow.Router) error {
				reply, err := router.Load(context.Background(), &message.Load{Caller: boss, WorkflowID: workflowID, InstanceID: id, WithHistory: true})
				if err == nil {
					assert.Equal(t, want, events(t, reply), workflowID)
				}
				return err
			}))
		}
		faults := func() {
			for range rounds / 2 {
				c.fault(r)
				c.pass(between)
			}
			c.pass(time.Minute)
		}
		var timers, parents []string
		for i := range 40 {
			wait := fmt.Sprintf(`{"wait":"%dms"}`, r.IntN(rounds*int(between/time.Millisecond)))
			timers = append(timers, c.createWith(r, fmt.Sprint("timer", i), "remind", wait))
		}
		for i := range 12 {
			parents = append(parents, c.createWith(r, fmt.Sprint("parent", i), "above", `{"n":2}`))
			c.send(r, "above", parents[i], "go", "", fmt.Sprint("go", i))
		}
		faults()
		for i, id := range parents {
			var pending *message.Pending
			c.must(c.ask(r, func(router *workflow.Router) (err error) {
				pending, err = router.Pending(&message.Load{Caller: boss, WorkflowID: "above", InstanceID: id})
				return err
			}))
			require.True(t, len(pending.Children) == 1 && pending.Children[0].Status.String() == "running", "the instance has the children %v", pending.Children)
			c.send(r, "below", pending.Children[0].InstanceID, "finish", "", fmt.Sprint("finish", i))
		}
		faults()
		for _, id := range timers {
			history("remind", id, ",after.computed.waiting")
		}
		for _, id := range parents {
			history("above", id, ",go,done.invoke.busy")
		}
		if now := time.Now(); now.Truncate(time.Minute).Equal(now) {
			c.pass(time.Second)
		}
		runs := int(time.Since(begun) / time.Minute)
		for _, n := range c.nodes {
			rows := func(prefix []byte) (rows int) {
				c.must(n.Store.Scan(prefix, func(_, _ []byte) error { rows++; return nil }))
				return rows
			}
			for workflowID, want := range map[string]int{"remind": 40, "above": 12, "below": 12, "deepest": 12, "minutely": runs} {
				made, err := n.Store.CountAll(key.CountPrefix(nil, key.EveryShard, workflowID))
				c.must(err)
				assert.Equal(t, [2]int{want, want}, [2]int{int(made), rows(key.RecordPrefix(nil, key.EveryShard, workflowID))}, "%s: made, and records of %s", n.Name, workflowID)
			}
			assert.Zero(t, rows(key.TimerPrefix(nil, key.EveryShard))+rows(key.DeliveriesPrefix(nil, key.EveryShard)), "%s: timers and deliveries are left", n.Name)
			n.stop()
		}
	})
}
