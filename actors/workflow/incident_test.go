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
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
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
