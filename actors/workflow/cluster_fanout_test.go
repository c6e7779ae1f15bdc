package workflow_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"

	"troupe/actors"
	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/pending"
	"troupe/actors/query"
	"troupe/actors/task"
	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
	"troupe/statemachine"
)

// onClusterOfFive runs a test on five nodes of which three have each shard: the first leads nothing but Meta and shard 0.
func onClusterOfFive(t *testing.T, test func(*testing.T, *cluster)) {
	onClusterOf(t, replicatest.Options{Nodes: 5, Shards: 7, Replicas: 3}, test)
}

func onClusterOf(t *testing.T, o replicatest.Options, test func(*testing.T, *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, of: o, indexes: []string{"svcPublic.a", "svcPublic.t"}}
		c.start(c.publish)
		test(t, c)
		for _, n := range c.nodes {
			n.stop()
		}
	})
}

// live makes a history of instances of several workflows.
func (c *cluster) live(r *rand.Rand) {
	for i := range 40 {
		id := c.createWith(r, fmt.Sprint("stock-", i), "stock", workflowtest.RandomPublic(r, i))
		if r.IntN(3) == 0 {
			c.sendAs(r, boss, "stock", id, "set", workflowtest.RandomSet(r))
		}
	}
	for i := range 12 {
		id := c.createWith(r, fmt.Sprint("desk-", i), "desk", fmt.Sprintf(`{"amount":%d,"by":"boss"}`, i))
		c.sendAs(r, clerk, "desk", id, "submit", `{}`)
		if i%3 == 0 {
			c.sendAs(r, manager, "desk", id, "approve", `{}`)
		}
		c.createWith(r, fmt.Sprint("remind-", i), "remind", fmt.Sprintf(`{"wait":"PT%dH"}`, 1+i%4))
		c.must(c.ask(r, func(router *workflow.Router) error {
			_, err := router.Create(context.Background(), &message.Create{
				Caller: boss, WorkflowID: "stock", Retry: event(boss, "", "", "", "", fmt.Sprint("form-", i)).Retry,
				Form: &form.Form{Kind: form.KindForm, TemplateID: "t", Name: fmt.Sprintf("Form %c", 'a'+i%5), By: string(boss.ID)},
			})
			return err
		}))
		c.pass(time.Millisecond)
	}
}

func (c *cluster) sendAs(r *rand.Rand, who *identity.Principal, workflowID, id, name, public string) {
	c.must(c.ask(r, func(router *workflow.Router) error {
		_, err := router.Send(context.Background(), event(who, workflowID, id, name, public, ""))
		return err
	}))
}

// alone starts a router on a standalone store that has the same rows as the leaders of all shards.
func (c *cluster) alone() (router *workflow.Router, stop func()) {
	o := replicatest.StoreOptions("alone", c.of.Shards)
	store, err := persistence.Open("store", o)
	c.must(err)
	c.must(c.publish(store))
	for sh := range key.Shard(store.Shards()) {
		w := store.NewBatch(sh)
		for _, n := range c.nodes {
			if n.Store.Epoch(sh) == 0 {
				continue
			}
			c.must(n.Store.Scan(key.ShardPrefix(nil, sh), func(rowKey, value []byte) error {
				switch k, _ := key.Parse(rowKey); k.Table {
				case "replica", "indexstate": // a store alone has none
				case "count":
					count, err := persistence.ParseCount(value)
					w.Add(rowKey, count)
					return err
				default:
					w.Set(rowKey, value)
				}
				return nil
			}))
		}
		c.must(store.Commit(w))
	}
	system := actors.NewSystem(zerolog.Nop())
	router, err = workflow.Start(workflow.Options{Store: store, System: system, Catalog: c.catalog(store), Log: zerolog.Nop(), Clock: time.Now})
	c.must(err)
	return router, func() {
		c.must(router.Stop(context.Background()))
		c.must(system.Stop(context.Background()))
		c.must(store.Close())
	}
}

// A list is asked page by page; it returns the items of a page as text, and the next cursor.
type list func(*workflow.Router, string) (items []string, next string, err error)

func textOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func queried(req query.Request) list {
	return func(r *workflow.Router, cursor string) (items []string, next string, err error) {
		of := req
		of.Cursor = cursor
		end, err := r.Queries.Query(context.Background(), &of, func(item []byte) error {
			items = append(items, string(item))
			return nil
		})
		if err != nil {
			return nil, "", err
		}
		return append(items, fmt.Sprint("count ", end.Count)), end.Next, nil
	}
}

// lists are what the nodes are asked.
func lists() map[string]list {
	all := map[string]list{}
	for _, who := range []*identity.Principal{boss, guest} {
		for _, text := range append(slices.Clone(indexFilters), `{"states.nodeId":"open"}`, `{"svcPublic.secret":true}`) {
			for _, sort := range []string{"", "-_id", "svcPublic.a", "-svcPublic.t"} {
				for _, limit := range []int{1, 7, 1000} {
					req := query.Request{Caller: who, WorkflowID: "stock", Filter: text, Sort: sort, Limit: limit, Count: limit == 7, Fields: []string{"title", "svcHistory"}}
					all[fmt.Sprintf("%s: %s by %s, %d", who.ID, text, sort, limit)] = queried(req)
				}
			}
		}
		all["everything for "+string(who.ID)] = queried(query.Request{Caller: who, WorkflowID: "stock"})
	}
	for _, who := range []*identity.Principal{manager, clerk, boss} {
		for _, scope := range []task.Scope{task.ScopeAll, task.ScopeOpen, task.ScopeMine, task.ScopeDone, task.ScopeEvery} {
			for _, sort := range []string{"due", "-created", "priority", "title", "-title"} {
				if scope == task.ScopeDone {
					sort = ""
				}
				req := task.ListRequest{Caller: who, Scope: scope, Sort: sort, Limit: 5, Count: true}
				all[fmt.Sprintf("tasks of %s: %s by %s", who.ID, scope, sort)] = func(r *workflow.Router, cursor string) (items []string, next string, err error) {
					of := req
					of.Cursor = cursor
					page, err := r.Worklists.List(context.Background(), &of)
					if err != nil {
						return nil, "", err
					}
					for _, i := range page.Items {
						items = append(items, textOf(i))
					}
					return append(items, textOf(page.Count)), page.Next, nil
				}
			}
		}
	}
	for _, sort := range []form.Sort{form.NewestFirst, form.OldestFirst, form.ByName} {
		for _, words := range []string{"", "form b"} {
			all[fmt.Sprintf("forms by %s with %q", sort, words)] = func(r *workflow.Router, cursor string) (items []string, next string, err error) {
				req := form.PageRequest{ListRequest: form.ListRequest{Kind: form.KindForm, User: boss.ID, Category: form.Every}, Sort: sort, Query: words, Limit: 4, Cursor: cursor, Count: true}
				req.Title = func(from query.Loader, l form.Listed) (statemachine.Text, error) {
					return statemachine.Plain("of " + l.WorkflowID), nil
				}
				page, err := form.ReadPage(context.Background(), r.Queries, &req)
				if err != nil {
					return nil, "", err
				}
				for _, l := range page.Forms {
					items = append(items, textOf(l))
				}
				return append(items, textOf(page.Count)), page.Next, nil
			}
		}
	}
	for _, limit := range []int{3, 1000} {
		all[fmt.Sprint("timers, ", limit)] = func(r *workflow.Router, cursor string) (items []string, next string, err error) {
			page, err := r.Waiting.Timers(context.Background(), &pending.TimerList{User: boss.ID, Cursor: cursor, Limit: limit})
			if err != nil {
				return nil, "", err
			}
			return []string{textOf(page.Timers)}, page.Next, nil
		}
		all[fmt.Sprint("changes, ", limit)] = func(r *workflow.Router, cursor string) (items []string, next string, err error) {
			if cursor == "" {
				cursor = "0"
			}
			page, err := r.Changes.Changes(context.Background(), &changefeed.Request{Caller: boss, WorkflowID: "stock", Since: cursor, Limit: limit})
			if err != nil || page.Next == cursor {
				return nil, "", err
			}
			for _, e := range page.Changes {
				items = append(items, fmt.Sprintf("%s %d %s %s", e.Name, e.Sequence, e.Text, e.States))
			}
			return items, page.Next, nil
		}
	}
	all["standing"] = func(r *workflow.Router, _ string) (items []string, next string, err error) {
		at := []statemachine.Position{{Machine: "main", Node: "open"}, {Machine: "main", Node: "closed"}, {Machine: "side", Node: "open"}}
		standing, err := r.Queries.Standing(context.Background(), boss, "stock", at)
		return []string{textOf(standing)}, "", err
	}
	return all
}

// TestFiveNodesAnswerAsOne: the same requests of the same history have the same answers, page by page and to the last byte
// of a cursor, on a node that stands alone and on each of five that have some of the shards.
func TestFiveNodesAnswerAsOne(t *testing.T) {
	for seed := range *seeds {
		onClusterOfFive(t, func(t *testing.T, c *cluster) {
			r := rand.New(rand.NewPCG(seed, 37))
			c.live(r)
			for sh := range key.Shard(c.of.Shards) { // and some have moved to where they were not
				c.must(c.moveReplica(t.Context(), sh, c.nodes[int(sh)%5], c.nodes[(int(sh)+3)%5]))
			}
			one, stop := c.alone()
			defer stop()
			c.pass(time.Minute) // the indexes are whole
			pages, all := 0, lists()
			for i, name := range slices.Sorted(maps.Keys(all)) {
				if testing.Short() && i%7 > 0 { // some of each kind, with the race detector
					continue
				}
				ask, cursor, gotCursor := all[name], "", ""
				for page := 0; ; page++ {
					n := c.nodes[r.IntN(len(c.nodes))]
					want, next, failed := ask(one, cursor)
					got, gotNext, err := ask(n.router, gotCursor)
					if failed != nil {
						assert.Equal(t, failure.Of(failed).Kind, failure.Of(cmp.Or(err, error(failure.ErrInternal))).Kind, "%s, of %s: %v", name, n.Name, err)
						break
					}
					same := assert.NoError(t, err, "%s, page %d, of %s", name, page, n.Name) &&
						assert.Equal(t, want, got, "%s, page %d, of %s", name, page, n.Name) &&
						// NB: of changes, the one node looks at some more rows of other workflows with the next page.
						(strings.HasPrefix(name, "changes") || assert.Equal(t, next, gotNext, "%s, page %d, of %s: the cursor", name, page, n.Name))
					pages++
					if next == "" && gotNext == "" || !same {
						break
					}
					cursor, gotCursor = cmp.Or(next, cursor), cmp.Or(gotNext, gotCursor)
				}
			}
			t.Logf("%d lists, %d pages", len(all), pages)
		})
	}
}

// TestAListWaitsForEachLeader: a shard without one makes it 503 after ten seconds, and no list has a hole.
func TestAListWaitsForEachLeader(t *testing.T) {
	onClusterOfFive(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(1, 37))
		c.live(r)
		for i, cut := range []*clusterNode{c.nodes[2], c.nodes[3]} { // NB: shard 2 lives on 2, 3 and 4, and has no majority without them
			cut.Isolate(true)
			if i == 0 {
				continue
			}
			c.pass(10 * time.Second)
			var asked sync.WaitGroup
			for name, ask := range lists() {
				if !strings.Contains(name, "every by") && (strings.Contains(name, "boss: {}") || !strings.ContainsAny(name, "{")) {
					asked.Go(func() {
						begun := time.Now()
						_, _, err := ask(c.nodes[0].router, "")
						assert.ErrorIs(t, err, failure.ErrUnavailable, name)
						assert.LessOrEqual(t, time.Since(begun), 20*time.Second, name)
					})
				}
			}
			asked.Wait()
		}
		c.nodes[2].Isolate(false)
		c.nodes[3].Isolate(false)
		c.pass(10 * time.Second)
		for name, ask := range lists() {
			if strings.Contains(name, "everything") {
				items, _, err := ask(c.nodes[0].router, "")
				assert.True(t, err == nil && len(items) > 30, "%s: %d items, %v", name, len(items), err)
			}
		}
	})
}

// TestAWatchFollowsTheLeaders: it goes on from its place when a shard has another leader, and nothing is missing or told twice.
func TestAWatchFollowsTheLeaders(t *testing.T) {
	onClusterOfFive(t, func(t *testing.T, c *cluster) {
		r := rand.New(rand.NewPCG(1, 37))
		ctx, cancel := context.WithCancel(t.Context())
		opened, done := make(chan struct{}), make(chan error)
		var told []string
		go func() {
			done <- c.nodes[1].router.Watches.Watch(ctx, &watch.Request{Caller: boss, WorkflowID: "stock"}, func(e watch.Event) error {
				switch e.Kind {
				case watch.Opened:
					close(opened)
				case watch.Entry, watch.Lost:
					told = append(told, string(e.Data))
				}
				return nil
			})
		}()
		<-opened
		var want []string
		for i := range 30 {
			if i == 10 {
				for sh := range key.Shard(c.of.Shards) {
					from, to := c.nodes[int(sh)%5], c.nodes[(int(sh)+1)%5]
					for to.Store.Epoch(sh) == 0 {
						_ = from.Store.Replica(sh).HandOver(t.Context(), to.Name) // NB: it may be behind
						c.pass(100 * time.Millisecond)
					}
				}
			}
			want = append(want, c.create(r, fmt.Sprint(i)))
		}
		c.pass(30 * time.Second)
		cancel()
		assert.ErrorIs(t, <-done, context.Canceled)
		assert.Len(t, told, len(want))
		for _, id := range want {
			assert.Len(t, slices.DeleteFunc(slices.Clone(told), func(text string) bool { return !strings.Contains(text, id) }), 1, id)
		}
	})
}
