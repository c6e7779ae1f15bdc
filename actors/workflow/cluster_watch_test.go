package workflow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/watch"
	"troupe/actors/workflow"
)

// watcher is a stream of one node.
type watcher struct {
	cancel context.CancelFunc
	ended  chan error

	mu     sync.Mutex
	events []string // the kind, or instance and sequence
	last   string   // the id of the last event
}

// watch watches all of stock, or one instance.
func (n *clusterNode) watch(instance, lastEventID string) *watcher {
	return n.watchOf(&watch.Request{Caller: boss, WorkflowID: "stock", InstanceID: instance, LastEventID: lastEventID})
}

func (n *clusterNode) watchOf(req *watch.Request) *watcher {
	w := &watcher{ended: make(chan error, 1)}
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background())
	go func() { w.ended <- n.router.Watches.Watch(ctx, req, w.note) }()
	return w
}

// leave ends the stream.
func (w *watcher) leave(t *testing.T) {
	t.Helper()
	w.cancel()
	err := <-w.ended
	assert.ErrorIs(t, err, context.Canceled, "a stream that was left")
}

func (w *watcher) note(e watch.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case watch.Entry:
		id, _ := value(string(e.Data)).Lookup("instanceId")
		sequence, _ := value(string(e.Data)).Lookup("sequence")
		w.events = append(w.events, fmt.Sprint(id.Text(), " ", string(sequence)))
	case watch.Lost:
		w.events = append(w.events, "lost")
	}
	if e.ID != "" {
		w.last = e.ID
	}
	return nil
}

// heard are the events so far, in order of instance and sequence.
func (w *watcher) heard() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.events))
}

// set sends an event to an instance.
func (c *cluster) set(r *rand.Rand, id, key string) { c.send(r, "stock", id, "set", `{"a":1}`, key) }

// send sends an event, however often it has to ask.
func (c *cluster) send(r *rand.Rand, workflowID, id, name, body, key string) {
	c.t.Helper()
	c.must(c.ask(r, func(router *workflow.Router) error {
		_, err := router.Send(context.Background(), event(boss, workflowID, id, name, body, key))
		return err
	}))
}

// TestAStreamOfAnyNodeHasAllEntries holds gateway/INTERFACE.md, "Streams in a cluster": whichever node leads the instances, before and after that
// changes.
func TestAStreamOfAnyNodeHasAllEntries(t *testing.T) {
	onClusterOfThree(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(1, 1))
		watched := c.create(r, "watched") // led by the first node
		var all []*watcher
		for _, n := range c.nodes {
			all = append(all, n.watch("", ""))
		}
		one := c.nodes[0].watch(watched, "")
		synctest.Wait()
		c.pass(time.Second)
		var want, wantOne []string
		for i := range 6 {
			id := c.create(r, fmt.Sprint(i))
			c.set(r, id, fmt.Sprint("set-", i))
			c.set(r, watched, fmt.Sprint("again-", i))
			want = append(want, id+" 1", id+" 2", fmt.Sprint(watched, " ", i+2))
			wantOne = append(wantOne, fmt.Sprint(watched, " ", i+2))
			if i == 2 {
				for sh := range c.nodes[0].Store.AllShards() {
					c.must(c.nodes[0].Store.Replica(sh).HandOver(t.Context(), c.nodes[1].Name))
				}
				c.pass(2 * time.Second)
			}
		}
		c.pass(2 * time.Second)
		slices.Sort(want)
		for i, w := range all {
			got := w.heard()
			assert.True(t, slices.Equal(got, want), "node %d: got\n%s\nwant\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		got := one.heard()
		assert.True(t, slices.Equal(got, wantOne), "one instance: got %v, want %v", got, wantOne)
		for _, w := range append(all, one) {
			w.leave(t)
		}
	})
}

// TestAStreamIsResumedOnAnotherNode with what was committed meanwhile, also after another node leads.
func TestAStreamIsResumedOnAnotherNode(t *testing.T) {
	onClusterOfThree(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(1, 1))
		id := c.create(r, "one")
		first := c.nodes[0].watch("", "")
		c.pass(time.Second)
		c.set(r, id, "a")
		c.pass(time.Second)
		assert.Equal(t, []string{id + " 2"}, first.heard(), "a stream of all")
		first.leave(t)
		c.set(r, id, "b")
		other := c.create(r, "two")
		want := []string{other + " 1", id + " 3"}
		slices.Sort(want)
		again := c.nodes[2].watch("", first.last)
		c.pass(time.Second)
		got := again.heard()
		assert.True(t, slices.Equal(got, want), "a stream of all on another node: got %v, want %v", got, want)
		for sh := range c.nodes[0].Store.AllShards() {
			c.must(c.nodes[0].Store.Replica(sh).HandOver(t.Context(), c.nodes[1].Name))
		}
		c.pass(2 * time.Second)
		one := c.nodes[1].watch(id, "1")
		c.pass(time.Second)
		assert.Equal(t, []string{id + " 2", id + " 3"}, one.heard(), "a stream of one instance on another node")
		c.set(r, id, "c")
		third := c.nodes[1].watch("", first.last)
		c.pass(time.Second)
		want = append(want, id+" 4")
		slices.Sort(want)
		for _, w := range []*watcher{again, third} {
			got := w.heard()
			assert.True(t, slices.Equal(got, want), "a stream of all after another node leads: got %v, want %v", got, want)
		}
		for _, w := range []*watcher{again, one, third} {
			w.leave(t)
		}
	})
}

// TestAStreamNeedsNoReplica of the node that is asked; one that is cut off gives none.
func TestAStreamNeedsNoReplica(t *testing.T) {
	onClusterOfThree(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(1, 1))
		n := c.nodes[1]
		w := n.watch("", "")
		c.pass(time.Second)
		c.must(n.Store.Leave(1, nil))
		later := n.watch("", "")
		c.pass(time.Second)
		want := []string{c.create(r, "one") + " 1", c.create(r, "two") + " 1"}
		slices.Sort(want)
		c.pass(time.Second)
		for _, w := range []*watcher{w, later} {
			assert.Equal(t, want, w.heard())
			w.leave(t)
		}
		c.nodes[2].Isolate(true)
		cut := c.nodes[2].watch("", "")
		err := <-cut.ended
		assert.ErrorIs(t, err, failure.ErrUnavailable, "a node that is cut off")
		c.nodes[2].Isolate(false)
	})
}
