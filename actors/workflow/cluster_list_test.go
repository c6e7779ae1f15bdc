package workflow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
)

// onClusterOfThree runs a test on a cluster whose first node leads everything.
func onClusterOfThree(t *testing.T, test func(*testing.T, *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		test(t, c)
		for _, n := range c.nodes {
			n.stop()
		}
	})
}

// list asks a node for what matches, and counts on the side.
func (n *clusterNode) list(filter string) (found []string, err error) {
	end, err := n.router.Queries.Query(context.Background(), &query.Request{Caller: boss, WorkflowID: "stock", Filter: filter, Limit: 1000, Count: true},
		func(item []byte) error {
			found = append(found, string(item))
			return nil
		})
	if err == nil && end.Count != int64(len(found)) {
		err = fmt.Errorf("the count is %d, and %d are listed", end.Count, len(found))
	}
	return found, err
}

// TestAListOfAnyNodeHasWhatWasAcknowledged holds gateway/INTERFACE.md, "Lists in a cluster": right
// after the answer, whichever node is asked.
func TestAListOfAnyNodeHasWhatWasAcknowledged(t *testing.T) {
	onClusterOfThree(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(1, 1))
		for i := range 12 {
			id := c.create(r, fmt.Sprint(i))
			c.must(c.ask(r, func(router *workflow.Router) error {
				_, err := router.Send(context.Background(), event(boss, "stock", id, "set", fmt.Sprintf(`{"a":%d}`, i+1), fmt.Sprint("set-", i)))
				return err
			}))
			n := c.nodes[1+i%2] // NB: none leads
			for filter, want := range map[string]int{``: i + 1, fmt.Sprintf(`{"svcPublic.a":%d}`, i+1): 1} {
				found, err := n.list(filter)
				require.True(t, err == nil && len(found) == want, "%s, %q after %d creates: got %d, %v", n.Name, filter, i+1, len(found), err)
			}
		}
	})
}

// TestFormsOfAnyNodeAreThoseThatWereAcknowledged: so are the lists of forms.
func TestFormsOfAnyNodeAreThoseThatWereAcknowledged(t *testing.T) {
	onClusterOfThree(t, func(t *testing.T, c *cluster) {
		for i := range 6 {
			reply, err := c.nodes[0].router.Create(context.Background(), &message.Create{
				Caller: boss, WorkflowID: "stock", Form: &form.Form{Kind: form.KindForm, TemplateID: "t", Name: "T", By: string(boss.ID)},
			})
			c.must(err)
			n := c.nodes[1+i%2]
			var ids []string
			err = form.List(context.Background(), n.router.Queries, &form.ListRequest{Kind: form.KindForm, User: boss.ID}, func(l form.Listed) error {
				ids = append(ids, l.InstanceID)
				return nil
			})
			assert.True(t, err == nil && len(ids) == i+1 && slices.Contains(ids, reply.InstanceID), "%s after %d forms: got %d, %v", n.Name, i+1, len(ids), err)
			_, err = n.router.FormOf("stock", reply.InstanceID)
			assert.ErrorIs(t, err, failure.ErrNotLeader, "what a form is made of, where it is not led")
			f, err := c.nodes[0].router.FormOf("stock", reply.InstanceID)
			assert.True(t, err == nil && f.Name == "T", "what a form is made of: got %+v, %v", f, err)
		}
	})
}

// TestANodeThatIsCutOffListsNothing: what it has may be old, and a part of a list looks whole.
func TestANodeThatIsCutOffListsNothing(t *testing.T) {
	onClusterOfThree(t, func(t *testing.T, c *cluster) {
		c.create(rand.New(rand.NewPCG(1, 1)), "one")
		n := c.nodes[1]
		lists := map[string]func() error{
			"a query": func() error { _, err := n.list(``); return err },
			"a list of forms": func() error {
				return form.List(context.Background(), n.router.Queries, &form.ListRequest{Kind: form.KindForm, User: boss.ID}, func(form.Listed) error { return nil })
			},
		}
		for what, list := range lists {
			c.must(list())
			n.Isolate(true)
			begun := time.Now()
			assert.ErrorIs(t, list(), failure.ErrUnavailable, "%s on a node that is cut off", what)
			assert.LessOrEqual(t, time.Since(begun), 15*time.Second, "%s: the refusal took", what)
			n.Isolate(false)
			c.pass(10 * time.Second)
			c.must(list())
		}
	})
}

// TestANodeWithoutAShardHasItsLists: it asks the node that leads it.
func TestANodeWithoutAShardHasItsLists(t *testing.T) {
	onClusterOfThree(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(1, 1))
		id := c.create(r, "one")
		first, n := c.nodes[0], c.nodes[1]
		parsed, _ := instanceid.Parse(id)
		for _, gone := range []key.Shard{1 - first.Store.ShardOf(parsed), first.Store.ShardOf(parsed)} {
			c.must(first.Store.Replica(gone).HandOver(t.Context(), n.Name))
			c.must(first.Store.Leave(gone, nil))
			found, err := first.list(``)
			require.True(t, err == nil && len(found) == 1, "without shard %d the list has %d, %v", gone, len(found), err)
			c.must(form.List(context.Background(), first.router.Queries, &form.ListRequest{Kind: form.KindForm, User: boss.ID}, func(form.Listed) error { return nil }))
		}
	})
}

// TestAReplicaThatIsTakenAwayDuringAListEndsIt: after it was current, and before it is read.
func TestAReplicaThatIsTakenAwayDuringAListEndsIt(t *testing.T) {
	onClusterOfThree(t, func(t *testing.T, c *cluster) {
		c.create(rand.New(rand.NewPCG(1, 1)), "one")
		n := c.nodes[1]
		for sh := range n.Store.AllShards() {
			c.must(c.nodes[0].Store.Replica(sh).HandOver(t.Context(), n.Name))
		}
		c.pass(2 * time.Second)
		n.after = func(sh key.Shard) {
			if sh == 1 {
				c.must(n.Store.Leave(sh, nil))
			}
		}
		err := n.router.Queries.Read(t.Context(), n.Store.Numbered(), boss.ID, func(*query.Reader) error { return nil })
		assert.ErrorIs(t, err, failure.ErrNotLeader)
	})
}

// TestPagesAcrossNodes: a page may be asked of another node than the one before.
func TestPagesAcrossNodes(t *testing.T) {
	onClusterOfThree(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(1, 1))
		var want []string
		for i := range 9 {
			want = append(want, c.create(r, fmt.Sprint(i)))
		}
		slices.Sort(want)
		var got []string
		req := query.Request{Caller: boss, WorkflowID: "stock", Limit: 2}
		for page := 0; ; page++ {
			ids, end, err := workflowtest.IDs(t, c.nodes[page%clusterNodes].router.Queries.Query, req)
			c.must(err)
			got = append(got, ids...)
			if req.Cursor = end.Next; req.Cursor == "" || len(got) > len(want) {
				break
			}
		}
		assert.True(t, slices.Equal(got, want), "got %v\nwant %v", got, want)
	})
}
