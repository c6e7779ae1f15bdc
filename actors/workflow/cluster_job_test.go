package workflow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/job"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
)

var limited = strings.NewReplacer("id: charging", "id: narrow", "charge:", "few:", "job: charge", "job: few", "timeout: PT1M", "timeout: PT1M, running: 4").Replace(charging)

func onClusterWithJobs(t *testing.T, test func(*testing.T, *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, of: replicatest.Options{Nodes: 3, Shards: 6}, more: []string{charging, limited}}
		c.start(c.publish)
		for sh := range key.Shard(c.of.Shards) { // each leads some
			for _, n := range c.nodes {
				_ = n.Store.Replica(sh).HandOver(t.Context(), c.nodes[int(sh)%3].Name) // another one may lead it
			}
		}
		c.pass(5 * time.Second)
		test(t, c)
		for _, n := range c.nodes {
			n.stop()
		}
	})
}

func (n *clusterNode) activate(ctx context.Context, typ string, most int, wait time.Duration) ([]job.Leased, error) {
	return n.router.Jobs.Activate(ctx, &job.Activation{Caller: payments, Types: []string{typ}, Worker: n.Name, Max: most, Wait: wait})
}

func (n *clusterNode) change(action job.Action, items ...job.Item) []error {
	errs, err := n.router.Jobs.Change(context.Background(), &job.Request{Caller: payments, Action: action, Items: items})
	n.c.must(err)
	return errs
}

func done(l *job.Leased) job.Item {
	return job.Item{JobID: l.JobID, Lease: l.Lease, Output: value(`{"receipt":"r"}`)}
}

// TestJobsOfAllNodes: any node gives the jobs of all, tells who waits, takes what is said of them, and lists them; and a lease
// outlives a change of leaders.
func TestJobsOfAllNodes(t *testing.T) {
	onClusterWithJobs(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(3, 5))
		a, b := c.nodes[0], c.nodes[1]
		waits := make(chan []job.Leased)
		go func() {
			leased, err := a.activate(t.Context(), "charge", 1, time.Minute)
			assert.NoError(t, err)
			waits <- leased
		}()
		synctest.Wait()
		seen := map[string]bool{}
		for i := range 12 {
			c.createWith(r, fmt.Sprint("job", i), "charging", "")
			if i == 0 {
				first := <-waits
				require.Len(t, first, 1, "who waits")
				seen[first[0].JobID] = true
				assert.Equal(t, []error{nil}, b.change(job.Complete, done(&first[0])))
				assert.Equal(t, []error{nil}, a.change(job.Complete, done(&first[0])), "again, on another node")
			}
		}
		var all []job.Leased
		for _, n := range c.nodes {
			leased, err := n.activate(t.Context(), "charge", 4, 0)
			require.NoError(t, err)
			all = append(all, leased...)
		}
		require.Len(t, all, 11)
		for _, n := range c.nodes {
			assert.NotZero(t, n.router.Jobs.Metrics().Activated, "jobs that %s gave", n.Name)
		}
		for _, l := range all {
			assert.False(t, seen[l.JobID], "it was given twice")
			seen[l.JobID] = true
		}
		counts, err := b.router.Jobs.Types(t.Context(), operator)
		require.NoError(t, err)
		require.Len(t, counts, 1)
		assert.Equal(t, int64(11), counts[0].Running)
		assert.Len(t, counts[0].Workers, 3)

		for _, n := range c.nodes {
			for sh := range n.Store.AllShards() {
				_ = n.Store.Replica(sh).HandOver(t.Context(), "") // it may lead nothing
			}
		}
		c.pass(5 * time.Second)
		leased, err := a.activate(t.Context(), "charge", 4, 0)
		require.NoError(t, err)
		assert.Empty(t, leased, "those of leases that go on")
		items := []job.Item{done(&all[0]), {JobID: all[1].JobID, Lease: "another", Output: value(`{"receipt":"r"}`)}, {JobID: all[2].JobID + "1", Lease: "x"}}
		for i := range all[3:] {
			items = append(items, done(&all[3+i]))
		}
		errs := b.change(job.Complete, items...)
		for i, err := range errs {
			switch i {
			case 1:
				assert.ErrorIs(t, err, failure.ErrLeaseLost)
			case 2:
				assert.ErrorIs(t, err, failure.ErrNotFound)
			default:
				assert.NoError(t, err)
			}
		}
		page, err := a.router.Jobs.List(t.Context(), &job.Query{Caller: operator, State: job.Running, Limit: 10})
		require.NoError(t, err)
		assert.Len(t, page.Jobs, 2)
	})
}

// TestLimitsOfAllNodes: running holds over all nodes together, and who waits for it gets what others are done with.
func TestLimitsOfAllNodes(t *testing.T) {
	onClusterWithJobs(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(4, 5))
		for i := range 10 {
			c.createWith(r, fmt.Sprint("job", i), "narrow", "")
		}
		got := make(chan []job.Leased)
		for _, n := range c.nodes {
			go func() {
				leased, err := n.activate(t.Context(), "few", 3, 0)
				assert.NoError(t, err)
				got <- leased
			}()
		}
		var all []job.Leased
		for range c.nodes {
			all = append(all, <-got...)
		}
		assert.Len(t, all, 4)
		go func() {
			leased, err := c.nodes[2].activate(t.Context(), "few", 3, time.Minute)
			assert.NoError(t, err)
			got <- leased
		}()
		c.pass(10 * time.Second)
		assert.Equal(t, []error{nil}, c.nodes[1].change(job.Complete, done(&all[0])))
		assert.Len(t, <-got, 1)
	})
}

// TestASilentNodeHoldsUpNobody: the jobs of others come at once, and those of the node when it answers again. While it does not, and
// while a shard has no leader, nobody can say that there are none.
func TestASilentNodeHoldsUpNobody(t *testing.T) {
	onClusterWithJobs(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(8, 11))
		for i := range 40 {
			c.createWith(r, fmt.Sprint("job", i), "charging", "")
			c.createWith(r, fmt.Sprint("few", i), "narrow", "")
		}
		a := c.nodes[0]
		setMute := func(name string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.mute = name
		}
		take := func(most int, typ string) (got int, took time.Duration, err error) {
			begun := time.Now()
			leased, err := a.activate(t.Context(), typ, most, 0)
			return len(leased), time.Since(begun), err
		}
		setMute(c.nodes[1].Name)
		total := 0
		for i := range 5 {
			got, took, err := take(2, "charge")
			require.NoError(t, err)
			assert.Equal(t, 2, got)
			if total += got; i > 2 {
				assert.Less(t, took, 100*time.Millisecond, "it is not waited for again")
			}
			assert.LessOrEqual(t, took, 500*time.Millisecond)
		}
		var err error
		for got := 1; got > 0; total += got {
			var took time.Duration
			got, took, err = take(1000, "charge")
			assert.LessOrEqual(t, took, 500*time.Millisecond)
		}
		assert.ErrorIs(t, err, failure.ErrUnavailable, "it may have some")
		assert.True(t, total > 10 && total < 40, "%d jobs of the others", total)
		_, took, _ := take(10, "few")
		assert.LessOrEqual(t, took, 2*time.Second, "of a type with a limit")

		setMute("")
		c.pass(2 * time.Second)
		_, _, _ = take(1, "charge") // it is asked whether it is there
		c.pass(time.Second)
		got, _, err := take(1000, "charge")
		require.NoError(t, err)
		assert.Equal(t, 40, total+got)
		got, _, err = take(1000, "charge")
		assert.True(t, err == nil && got == 0, "%d jobs, %v", got, err)

		a.Isolate(true)
		c.pass(30 * time.Second)
		_, took, err = take(1, "charge")
		assert.ErrorIs(t, err, failure.ErrUnavailable)
		assert.Less(t, took, 3*time.Second)
		a.Isolate(false)
		c.pass(10 * time.Second)
	})
}

// TestJobsAreDoneOnceOnACluster: whatever happens to the nodes while workers ask them, each job is done once.
func TestJobsAreDoneOnceOnACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, more: []string{charging}}
		c.start(c.publish)
		r := rand.New(rand.NewPCG(6, 11))
		var ids []string
		for i := range 30 {
			ids = append(ids, c.createWith(r, fmt.Sprint("job", i), "charging", ""))
		}
		stop, over := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			work := rand.New(rand.NewPCG(7, 11))
			for stop.Err() == nil {
				c.pass(200 * time.Millisecond)
				c.mu.Lock()
				at, other := c.nodes[work.IntN(clusterNodes)].router, c.nodes[work.IntN(clusterNodes)].router
				c.mu.Unlock()
				if at == nil || other == nil {
					continue
				}
				leased, _ := at.Jobs.Activate(stop, &job.Activation{Caller: payments, Types: []string{"charge"}, Max: 2, Wait: time.Second})
				for i := range leased {
					if work.IntN(3) > 0 { // else its lease runs out
						_, _ = other.Jobs.Change(stop, &job.Request{Caller: payments, Action: job.Complete, Items: []job.Item{done(&leased[i])}})
					}
				}
			}
		}()
		for range rounds(3, 5, 12) {
			c.fault(r)
			c.pass(30 * time.Second)
		}
		c.pass(10 * time.Minute)
		over()
		<-ended
		for _, id := range ids {
			c.must(c.ask(r, func(router *workflow.Router) error {
				reply, err := router.Load(context.Background(), &message.Load{Caller: boss, WorkflowID: "charging", InstanceID: id, WithHistory: true})
				if err == nil {
					got := events(t, reply)
					assert.Contains(t, []string{",done.invoke.busy", ",error.invoke.busy"}, got)
				}
				return err
			}))
		}
		for _, n := range c.nodes {
			n.stop()
		}
	})
}
