package workflow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/persistence/key"
)

// TestTimersComeOnceOnACluster, whichever node leads when they are due.
func TestTimersComeOnceOnACluster(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		r := rand.New(rand.NewPCG(1, 7))
		var ids []string
		for i := range 40 {
			wait := fmt.Sprintf(`{"wait":"%dms"}`, r.IntN(4000*rounds))
			ids = append(ids, c.createWith(r, fmt.Sprint(i), "remind", wait))
		}
		for range rounds {
			c.fault(r)
		}
		c.pass(time.Minute)
		for _, id := range ids {
			var reply *message.Reply
			c.must(c.ask(r, func(router *workflow.Router) (err error) {
				reply, err = router.Load(context.Background(), &message.Load{Caller: boss, WorkflowID: "remind", InstanceID: id, WithHistory: true})
				return err
			}))
			assert.Equal(t, ",after.computed.waiting", events(t, reply))
		}
		for _, n := range c.nodes {
			left := 0
			c.must(n.Store.Scan(key.TimerPrefix(nil, key.EveryShard), func(_, _ []byte) error { left++; return nil }))
			assert.Zero(t, left, n.Name)
			n.stop()
		}
	})
}
