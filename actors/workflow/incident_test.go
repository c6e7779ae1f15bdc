package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/incident"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/statemachine/expr"
)

const faulty = `id: faulty
context: {svcPublic: {item: chair}, svcPrivate: {limit: 3}}
events: {go: {}, other: {}, many: {}}
stateMachines:
  main:
    states:
      a:
        on:
          go: {actions: [{log: '${svcPublic.itm + svcPrivate.limit}'}]}
          other: {actions: [{redirect: 'javascript:x'}]}
          many: {guard: 'has(svcPublic.many)', actions: [{assign: {svcPublic.x: '${1 / 0}'}}]}
          end: b
      b: {type: final}
`

// TestAFailureOfACallerIsAnIncident: one for each place, with its line, its values, for whom, when and how often, also after a restart.
func TestAFailureOfACallerIsAnIncident(t *testing.T) {
	timed(t, func(h *harness, _ *atomic.Int64) {
		h.Publish(remind, faulty)
		id, twin := h.Make(boss, "faulty", ""), h.Make(boss, "faulty", "")
		begun := time.Now()
		for k, of := range []string{id, id, twin} {
			_, err := h.Try(john, "faulty", of, "go", "", "")
			got := failure.Of(err)
			require.True(t, got.Kind == failure.ErrExecution && got.Reference != "", "failure %d: got %v", k, err)
			clocktest.Advance(700 * time.Millisecond)
		}
		_, err := h.Try(mary, "faulty", twin, "other", "", "")
		reference := failure.Of(err).Reference
		clocktest.Advance(time.Second)
		assert.Equal(t, int64(4), h.Metrics().Incidents, "failures are counted")
		assert.Contains(t, h.Log.String(), `"line":9,"expression":"svcPublic.itm + svcPrivate.limit"`, "the log")
		h.Restart()
		list := h.incidents()
		require.Len(t, list, 2)
		first, other := list[0], list[1]
		if strings.HasPrefix(first.ID, reference) {
			first, other = other, first
		}
		assert.True(t, strings.HasPrefix(other.ID, reference+"-") && other.Row.Line == 10 && other.Row.Expression == "" && other.Row.Count == 1, "got %+v", other.Row)
		r := first.Row
		want := []expr.Read{{Path: "svcPublic.itm"}, {Path: "svcPrivate.limit", Value: "3"}}
		if r.Kind != incident.Expression || r.Workflow != "faulty" || r.Version != 1 || r.Line != 9 || r.Expression != "svcPublic.itm + svcPrivate.limit" ||
			fmt.Sprint(r.Read) != fmt.Sprint(want) || r.User != "john" || r.Count != 3 || !r.First.Equal(begun) || r.Last.Sub(begun) != 1400*time.Millisecond {
			t.Errorf("got %+v", r)
		}
		assert.True(t, first.InstanceID == twin && first.Event == "go" && strings.Contains(first.Error, "no such key: itm"), "got %+v", first)
		ctx := context.Background()
		err = h.ChangeIncident(ctx, boss, first.ID, false)
		assert.True(t, errors.Is(err, failure.ErrConflict) && strings.Contains(failure.Of(err).Reason, "nothing to retry"), "retry: got %v", err)
		h.Must(h.ChangeIncident(ctx, boss, first.ID, true))
		assert.ErrorIs(t, h.ChangeIncident(ctx, boss, first.ID, true), failure.ErrNotFound, "dropped twice")
		list = h.incidents()
		assert.True(t, len(list) == 1 && list[0].ID == other.ID, "dropped, but got %v", list)
		_ = workflowtest.Second(h.Try(john, "faulty", id, "go", "", ""))
		clocktest.Advance(2 * time.Second)
		list = h.incidents()
		assert.True(t, len(list) == 2 && list[0].ID != first.ID && list[1].ID != first.ID, "the id came twice, or not at all: %v", list)
	})
}

// TestACreateThatFailsIsAnIncident without an instance.
func TestACreateThatFailsIsAnIncident(t *testing.T) {
	timed(t, func(h *harness, _ *atomic.Int64) {
		h.Publish(remind, "id: never\nstateMachines: {m: {states: {a: {entry: [{log: '${svcPublic.none}'}], on: {go: b}}, b: {type: final}}}}\n")
		_, err := h.Create(context.Background(), &message.Create{Caller: boss, WorkflowID: "never"})
		clocktest.Advance(time.Second)
		list := h.incidents()
		assert.True(t, len(list) == 1 && list[0].InstanceID == "" && list[0].Event == "" && list[0].Row.Line == 2 && failure.Of(err).Reference != "", "%v %v", list, err)
	})
}

// TestAFloodOfFailuresIsWrittenOnceASecond, whatever callers do.
func TestAFloodOfFailuresIsWrittenOnceASecond(t *testing.T) {
	timed(t, func(h *harness, _ *atomic.Int64) {
		h.Publish(remind, faulty)
		id := h.Make(boss, "faulty", "")
		_ = workflowtest.Second(h.Try(john, "faulty", id, "go", "", ""))
		clocktest.Advance(time.Millisecond) // it is written
		before := h.Store.Metrics().Committed
		for range 500 {
			_ = workflowtest.Second(h.Try(john, "faulty", id, "go", "", ""))
		}
		clocktest.Advance(900 * time.Millisecond)
		n := h.Store.Metrics().Committed - before
		assert.Zero(t, n, "commits in the first second")
		clocktest.Advance(200 * time.Millisecond)
		n = h.Store.Metrics().Committed - before
		assert.Equal(t, uint64(1), n, "commits, want one")
		list := h.incidents()
		assert.True(t, len(list) == 1 && list[0].Row.Count == 501, "got %+v", list)
	})
}

// TestIDsOfIncidentsDoNotRepeat, also when the one before is dropped and the instance has no new entry.
func TestIDsOfIncidentsDoNotRepeat(t *testing.T) {
	delivering(t, func(h *harness, to *receiver) {
		var late atomic.Bool
		to.answer = func(a outbox.Attempt) outbox.Answer {
			if a.Queue == "other" && !late.Load() {
				return outbox.Answer{Status: 503, Err: errors.New("the answer was 503")}
			}
			return outbox.Answer{Status: 200}
		}
		h.Publish(notify, "id: told\nwebhooks: {hook: {url: 'https://example.org', onDone: done}, other: {url: 'https://example.org', onDone: done}}\n"+
			"stateMachines:\n  m:\n    states:\n      a:\n        on:\n          tell: {actions: [{webhook: {to: hook}}, {webhook: {to: other}}]}\n"+
			"          done: {actions: [{log: '${1 / 0}'}]}\n          end: b\n      b: {type: final}\n")
		id := h.Make(boss, "told", "")
		h.MustSend(boss, "told", id, "tell", "")
		clocktest.Advance(time.Second)
		first := h.incidents()
		require.True(t, len(first) == 1 && first[0].InstanceID == id, "got %v", first)
		if err := h.ChangeIncident(context.Background(), boss, first[0].ID, false); !errors.Is(err, failure.ErrExecution) || !strings.Contains(failure.Of(err).Reason, "the event failed again: ") || !strings.Contains(failure.Of(err).Reason, "division by zero") {
			t.Errorf("retry: got %v", err)
		}
		h.Must(h.ChangeIncident(context.Background(), boss, first[0].ID, true))
		late.Store(true)
		clocktest.Advance(time.Hour)
		next := h.incidents()
		assert.True(t, len(next) == 1 && next[0].ID != first[0].ID, "got %v behind %v", next, first)
	})
}

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
