package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
	w := &watcher{ended: make(chan error, 1)}
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background())
	go func() {
		req := &watch.Request{Caller: boss, WorkflowID: "stock", InstanceID: instance, LastEventID: lastEventID}
		w.ended <- n.router.Watch(ctx, req, w.note)
	}()
	return w
}

// leave ends the stream.
func (w *watcher) leave(t *testing.T) {
	t.Helper()
	w.cancel()
	if err := <-w.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a stream that was left: got %v", err)
	}
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
func (c *cluster) set(r *rand.Rand, id, key string) {
	c.must(c.ask(r, func(router *workflow.Router) error {
		_, err := router.Send(context.Background(), event(boss, "stock", id, "set", `{"a":1}`, key))
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
			if got := w.heard(); !slices.Equal(got, want) {
				t.Errorf("node %d: got\n%s\nwant\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		if got := one.heard(); !slices.Equal(got, wantOne) {
			t.Errorf("one instance: got %v, want %v", got, wantOne)
		}
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
		if got := first.heard(); !slices.Equal(got, []string{id + " 2"}) {
			t.Errorf("a stream of all: got %v, want the second entry", got)
		}
		first.leave(t)
		c.set(r, id, "b")
		other := c.create(r, "two")
		want := []string{other + " 1", id + " 3"}
		slices.Sort(want)
		again := c.nodes[2].watch("", first.last)
		c.pass(time.Second)
		if got := again.heard(); !slices.Equal(got, want) {
			t.Errorf("a stream of all on another node: got %v, want %v", got, want)
		}
		for sh := range c.nodes[0].Store.AllShards() {
			c.must(c.nodes[0].Store.Replica(sh).HandOver(t.Context(), c.nodes[1].Name))
		}
		c.pass(2 * time.Second)
		one := c.nodes[1].watch(id, "1")
		c.pass(time.Second)
		if got := one.heard(); !slices.Equal(got, []string{id + " 2", id + " 3"}) {
			t.Errorf("a stream of one instance on another node: got %v, want its second and third entry", got)
		}
		c.set(r, id, "c")
		third := c.nodes[1].watch("", first.last)
		c.pass(time.Second)
		want = append(want, id+" 4")
		slices.Sort(want)
		for _, w := range []*watcher{again, third} {
			if got := w.heard(); !slices.Equal(got, want) {
				t.Errorf("a stream of all after another node leads: got %v, want %v", got, want)
			}
		}
		for _, w := range []*watcher{again, one, third} {
			w.leave(t)
		}
	})
}

// TestAStreamEndsWhereEntriesPassItBy: and none begins where it would not have all.
func TestAStreamEndsWhereEntriesPassItBy(t *testing.T) {
	onClusterOfThree(t, func(t *testing.T, c *cluster) {
		n := c.nodes[1]
		w := n.watch("", "")
		c.pass(time.Second)
		c.must(n.Store.Leave(1))
		if err := <-w.ended; err != nil {
			t.Errorf("the end of a stream: got %v, want nil", err)
		}
		refused := n.watch("", "")
		if err := <-refused.ended; !errors.Is(err, failure.ErrNotLeader) {
			t.Errorf("a node without a replica: got %v, want ErrNotLeader", err)
		}
		c.nodes[2].Isolate(true)
		cut := c.nodes[2].watch("", "")
		if err := <-cut.ended; !errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("a node that is cut off: got %v, want ErrUnavailable", err)
		}
		c.nodes[2].Isolate(false)
	})
}
