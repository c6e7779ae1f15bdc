package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
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
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// bomb is a workflow with state machines that each invoke it again. What is refused counts in svcPublic.
func bomb(machines int) string {
	var text strings.Builder
	text.WriteString("id: bomb\nstateMachines:\n")
	for n := range machines {
		fmt.Fprintf(&text, "  m%d: {initial: a, states: {a: {invoke: {workflow: bomb, onError: {target: b, actions: [{assign: {svcPublic.refused: '${svcPublic.?refused.orValue(0) + 1}', svcPublic.why: '${event.data.message}'}}]}}}, b: {on: {again: a}}}}\n", n)
	}
	return text.String()
}

// bombMachines is how many the bomb of a cluster has.
const bombMachines = 5

// limited is a harness in which so many instances of a tree may run.
func limited(t *testing.T, most int, test func(h *harness)) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now, Sender: &receiver{}, TreeInstancesMax: most}, Disk: storetest.NewDisk()}), t}
		test(h)
		h.End()
	})
}

// running returns the instances of a workflow that run, and how many invocations their data says were refused.
func (h *harness) running(workflowID string) (ids []string, refused int) {
	h.t.Helper()
	for _, i := range h.Instances(workflowID) {
		id := instanceid.Text(i.ID)
		if h.pending(workflowID, id).IsEnded {
			continue
		}
		ids = append(ids, id)
		var public struct {
			Refused int    `json:"refused"`
			Why     string `json:"why"`
		}
		h.Must(json.Unmarshal(h.MustLook(boss, workflowID, id).Public, &public))
		if refused += public.Refused; public.Refused > 0 && !strings.Contains(public.Why, "treeInstancesMax") {
			h.t.Errorf("an invocation was refused with %q", public.Why)
		}
	}
	return ids, refused
}

// crew makes an instance of a workflow with state machines that each invoke a child, and returns it and the children that run.
func (h *harness) crew(machines int) (root string, children []string) {
	h.t.Helper()
	h.Publish(strings.NewReplacer("id: bomb", "id: workers", "workflow: bomb", "workflow: deepest").Replace(bomb(machines)), deepest)
	root = h.Make(boss, "workers", "")
	clocktest.Advance(time.Second)
	children, _ = h.running("deepest")
	return root, children
}

// TestATreeIsLimited: of a workflow that invokes itself a hundred times so many instances run as may, whatever restarts, and all others get
// error.invoke. There is one incident, at the root. Once its tree is stopped a new one may grow (gateway/INTERFACE.md, "Trees of instances").
func TestATreeIsLimited(t *testing.T) {
	most, machines := 20, 100
	if testing.Short() {
		most, machines = 8, 20
	}
	limited(t, most, func(h *harness) {
		h.Publish(bomb(machines))
		grown := func(root string, lost int) { // lost: refusals that a crash has forgotten
			t.Helper()
			clocktest.Advance(10 * time.Minute)
			ids, refused := h.running("bomb")
			want := most*machines - (most - 1)
			assert.True(t, len(ids) == most && refused == want, "%d instances run, and %d invocations were refused, want %d and %d", len(ids), refused, most, want)
			n := 0
			for _, in := range h.incidents() {
				if in.Row.Kind == incident.Tree && in.InstanceID == root {
					n++
					if count := int(in.Row.Count); count < refused-lost || count > refused+16 { // NB: what a restart has broken off may be refused twice
						t.Errorf("the incident counts %d, and %d were refused", count, refused)
					}
				}
			}
			assert.Equal(t, 1, n, "incidents at the root")
		}
		root := h.Make(boss, "bomb", "")
		h.Restart()
		grown(root, 0)
		assert.Len(t, h.incidents(), 1, "the incidents")
		h.Restart()
		ids, refused := h.running("bomb")
		for _, id := range ids[:3] { // once more, of machines that were refused
			h.MustSend(boss, "bomb", id, "again", "")
		}
		clocktest.Advance(10 * time.Minute)
		now, more := h.running("bomb")
		assert.True(t, len(now) == most && more > refused, "after a restart %d instances run, want %d, and %d invocations more are refused", len(now), most, more-refused)
		h.Must(h.StopTree("bomb", root, "olivia"))
		clocktest.Advance(10 * time.Minute)
		ids, _ = h.running("bomb")
		assert.Empty(t, ids, "instances run in a tree that was stopped")
		for _, i := range h.Instances("bomb") {
			if reply := h.MustLook(boss, "bomb", instanceid.Text(i.ID)); !strings.Contains(string(reply.AppendRecord(nil)), `"transitionEvent":"parent.cancelled"`) || lastUser(t, reply) != "olivia" {
				t.Errorf("the history of one ends with %q", lastUser(t, reply))
			}
		}
		root = h.Make(boss, "bomb", "")
		h.crashAt(3)
		grown(root, most*machines)
	})
}

// TestATreeWhoseInstancesEnd never comes to its limit, however many it has had: thirty times as many children as may run at a time, in a child
// of a child of the root.
func TestATreeWhoseInstancesEnd(t *testing.T) {
	const most, machines = 10, 6
	workers := strings.Replace(bomb(machines), "id: bomb", "id: workers", 1)
	workers = strings.NewReplacer("workflow: bomb", "workflow: quick, onDone: {target: b}", "states: {a:", "states: {rest: {on: {go: a}}, a:", "initial: a", "initial: rest").Replace(workers)
	const foremen = "id: foremen\nstateMachines: {m: {initial: a, states: {a: {invoke: {workflow: workers}, on: {end: b}}, b: {type: final}}}}\n"
	limited(t, most, func(h *harness) {
		h.Publish(strings.NewReplacer("id: foremen", "id: roots", "workers", "foremen").Replace(foremen), foremen, workers, quick)
		root := h.Make(boss, "roots", "")
		clocktest.Advance(time.Second)
		middle, _ := h.child("roots", root)
		low, _ := h.child("foremen", middle)
		for round := range 50 {
			event := "again"
			if round == 0 {
				event = "go"
			}
			h.MustSend(boss, "workers", low, event, "")
			clocktest.Advance(time.Second)
			if round == 20 {
				h.Restart()
			}
		}
		clocktest.Advance(time.Minute)
		assert.Equal(t, 50*machines, h.made("quick"), "children were made")
		ids, _ := h.running("workers")
		require.Len(t, ids, 1, "workers run")
		assert.Empty(t, h.incidents(), "incidents")
	})
}

// TestAFullTreeTakesMoreLater: ten seconds after it was found full, once one of its instances has ended.
func TestAFullTreeTakesMoreLater(t *testing.T) {
	const most, machines = 4, 6
	limited(t, most, func(h *harness) {
		root, ids := h.crew(machines)
		require.Len(t, ids, most-1, "children run")
		h.MustSend(boss, "deepest", ids[0], "finish", "")
		for _, c := range []struct {
			after time.Duration
			made  int
		}{{time.Second, most - 1}, {10 * time.Second, most}} {
			clocktest.Advance(c.after)
			h.MustSend(boss, "workers", root, "again", "") // the machines that were refused try once more
			clocktest.Advance(time.Second)
			assert.Equal(t, c.made, h.made("deepest"), "children were made")
		}
	})
}

// TestADamagedInstanceOfATree counts as one that runs, and holds up nobody.
func TestADamagedInstanceOfATree(t *testing.T) {
	const most, machines = 4, 6
	limited(t, most, func(h *harness) {
		root, ids := h.crew(machines)
		h.Spoil("deepest", ids[0])
		clocktest.Advance(10 * time.Second)
		h.MustSend(boss, "workers", root, "again", "")
		clocktest.Advance(time.Second)
		n, left := h.made("deepest"), h.rows(key.DeliveriesPrefix)
		assert.True(t, n == most-1 && left == 0, "%d children were made, want %d, and %d messages are left", n, most-1, left)
	})
}

// TestARepairedAncestorBelongsToItsTree: while it cannot be read, what is below counts apart; once it can, nothing does any more.
func TestARepairedAncestorBelongsToItsTree(t *testing.T) {
	const most, fingers = 5, 4 // the root, the one between, the hand, and two children
	const upper = "id: roots\nstateMachines: {m: {initial: a, states: {a: {invoke: {workflow: foremen}, on: {end: b}}, b: {type: final}}}}\n"
	limited(t, most, func(h *harness) {
		h.Publish(upper, strings.NewReplacer("id: roots", "id: foremen", "workflow: foremen", "workflow: hand").Replace(upper), hand(), deepest)
		root := h.Make(boss, "roots", "")
		clocktest.Advance(time.Second)
		middle, _ := h.child("roots", root)
		low, _ := h.child("foremen", middle)
		sh := h.Store.ShardOf(h.ID(middle))
		key := key.Record(nil, sh, "foremen", h.ID(middle))
		record, err := h.Store.Load(key)
		h.Must(err)
		h.Spoil("foremen", middle)
		for n := range fingers {
			h.MustSend(boss, "hand", low, fmt.Sprint("finger", n), "")
			clocktest.Advance(time.Second)
			if n == 0 {
				h.Overwrite(sh, key, record)
			}
		}
		if n := h.made("deepest"); n != fingers-1 { // NB: the tree did not know of the one that had counted apart until it was full
			t.Errorf("%d children were made, want %d", n, fingers-1)
		}
	})
}

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
		c := &cluster{t: t, begun: time.Now(), treeMax: most}
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
			return router.StopTree("bomb", root, "olivia")
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

// hand is a workflow whose state machines invoke a child each, one event after the other.
func hand() string {
	text := "id: hand\nstateMachines:\n"
	for n := range 4 {
		text += fmt.Sprintf("  m%d: {initial: rest, states: {rest: {on: {finger%d: a}}, a: {invoke: {workflow: deepest}, on: {back: rest}}}}\n", n, n)
	}
	return text
}

// TestAWorkflowRestsBehindDearChildren: children that take long to make come one after the other, each behind a rest of its parent's workflow.
// Here a look at the clock takes as long.
func TestAWorkflowRestsBehindDearChildren(t *testing.T) {
	for _, c := range []struct {
		look        time.Duration
		least, most time.Duration
	}{{0, 0, 0}, {time.Millisecond, 5 * 16 * time.Millisecond, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			var look atomic.Int64
			clock := func() time.Time {
				<-time.After(time.Duration(look.Load()))
				return time.Now()
			}
			h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: clock, Sender: &receiver{}}, Disk: storetest.NewDisk()}), t}
			h.Publish("id: leaf\nstateMachines: {m: {states: {a: {on: {go: a}}}}}\n", "id: top\nstateMachines:\n"+machinesThatInvoke(6, "leaf"))
			h.Make(boss, "top", "")
			look.Store(int64(c.look))
			begun := time.Now()
			synctest.Wait()
			for range 10_000 {
				if len(h.Instances("leaf")) == 6 {
					break
				}
				clocktest.Advance(time.Millisecond)
			}
			took := time.Since(begun)
			assert.True(t, took >= c.least && took <= c.most, "with looks of %s it took %s, want %s to %s", c.look, took, c.least, c.most)
			look.Store(0)
			h.End()
		})
	}
}

func machinesThatInvoke(n int, workflowID string) string {
	var text strings.Builder
	for k := range n {
		fmt.Fprintf(&text, "  m%d: {initial: a, states: {a: {invoke: {workflow: %s}, on: {go: a}}}}\n", k, workflowID)
	}
	return text.String()
}
