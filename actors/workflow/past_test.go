package workflow_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/instance"
	"troupe/actors/message"
	"troupe/actors/presentation"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/storetest"
)

// TestAMomentWaitsItsTurn: moments are made by no more than queries are, and a user has the same share of both.
func TestAMomentWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startOn(t, storetest.NewDisk(), workflow.Options{QueriesMax: 1})
		john, hold := workflowtest.John, make(chan struct{})
		id := h.Make(john, "order", `{"n":1}`)
		go func() {
			_ = h.Queries.Work(context.Background(), "mary", func(func() error) error {
				<-hold
				return nil
			})
		}()
		synctest.Wait()
		done := make(chan error, 1)
		go func() {
			_, err := h.Load(context.Background(), &message.Load{Caller: john, WorkflowID: "order", InstanceID: id, At: 1})
			done <- err
		}()
		synctest.Wait()
		assert.Empty(t, done, "a moment beside a query")
		close(hold)
		require.NoError(t, <-done)
	})
}

// TestMomentsBeforeAndBehindAMigration are those of their versions, with what the plan has assigned; and a reset goes back to its version, and
// forth again.
func TestMomentsBeforeAndBehindAMigration(t *testing.T) {
	h := startMigrations(t)
	john := workflowtest.John
	id := h.Make(john, "order", `{"n":1}`)
	var want []string
	keep := func() {
		reply := h.MustLook(john, "order", id)
		want = append(want, string(reply.AppendRecord(nil)))
		require.Len(t, want, int(reply.Sequence))
	}
	keep()
	h.MustSend(john, "order", id, "go", `{"n":2}`)
	keep()
	h.MustSend(john, "order", id, "go", "")
	keep()
	h.Publish(orderNext)
	total, _ := h.run(t, migrationBy(orderPlan))
	require.Equal(t, 1, total.Migrated)
	keep()
	h.MustSend(john, "order", id, "done", `{"n":3}`)
	keep()
	for _, to := range []uint64{3, 5, 2} { // of versions 1, 2 and 1
		of := message.Load{Caller: john, WorkflowID: "order", InstanceID: id, WithHistory: true}
		_, err := h.Reset(t.Context(), &message.Reset{Load: of, To: to, Reason: "the plan was wrong"})
		require.NoError(t, err)
		keep()
		one, two := h.versions(t)
		assert.True(t, one+two == 1 && (two == 1) == (to == 5), "to %d: %d of version 1, %d of version 2", to, one, two)
		h.CheckIndexes()
	}
	h.MustSend(john, "order", id, "go", `{"n":9}`)
	keep()
	h.Restart()
	for n, then := range want {
		reply, err := h.Load(t.Context(), &message.Load{Caller: john, WorkflowID: "order", InstanceID: id, WithHistory: true, At: uint64(n + 1)})
		require.NoError(t, err)
		assert.Equal(t, then, string(reply.AppendRecord(nil)), "after entry %d", n+1)
	}
	assert.Contains(t, want[3], `"by":"mary"`)
	shown := presentation.New(presentation.Options{Instances: h.Router.Router, Queries: h.Router.Queries, Catalog: h.Catalog, Store: h.Store, Clock: h.Clock})
	for n, version := range []uint64{1, 1, 1, 2, 2, 1, 2, 1, 1} {
		way, err := shown.Trace(t.Context(), &message.Load{Caller: john, WorkflowID: "order", InstanceID: id}, uint64(n+1))
		require.NoError(t, err)
		assert.Equal(t, version, way.Of.Version, "after entry %d", n+1)
		assert.Len(t, way.At, 1, "after entry %d", n+1)
	}
}

// TestAMomentOfAVersionThatWasReplacedIsReadAgain before an instance goes back to it.
func TestAMomentOfAVersionThatWasReplacedIsReadAgain(t *testing.T) {
	h := startMigrations(t)
	before, err := h.Catalog.Find("order", 1)
	require.NoError(t, err)
	require.NoError(t, h.HoldReset("order", before))
	h.Publish(strings.Replace(orderOld, "odd: strange", "even: strange", 1))
	require.ErrorIs(t, h.HoldReset("order", before), instance.ErrUnread)
	now, err := h.Catalog.Find("order", 1)
	require.NoError(t, err)
	require.NoError(t, h.HoldReset("order", now))
	h.Publish(orderOld)
	require.ErrorIs(t, h.HoldReset("order", now), instance.ErrUnread, "nothing holds it any more")
}

// TestAMigrationHasTheWholeInstance, when it has changed its data: behind it there are moments again.
func TestAMigrationHasTheWholeInstance(t *testing.T) {
	h := startMigrations(t)
	h.Publish(orderOld + "events: {odd: {history: false}}\n")
	john := workflowtest.John
	id := h.Make(john, "order", `{"n":1}`)
	h.MustSend(john, "order", id, "go", "")
	h.MustSend(john, "order", id, "odd", `{"n":2}`)
	h.MustSend(john, "order", id, "go", "")
	h.Publish(orderNext)
	total, _ := h.run(t, migrationBy(orderPlan))
	require.Equal(t, 1, total.Migrated)
	h.MustSend(john, "order", id, "done", "")
	now := h.MustLook(john, "order", id)
	for n, kept := range []bool{true, true, false, false, true, true} {
		of := &message.Load{Caller: john, WorkflowID: "order", InstanceID: id, WithHistory: true, At: uint64(n + 1)}
		reply, err := h.Load(t.Context(), of)
		if !kept {
			require.ErrorIs(t, err, failure.ErrNotKept)
			require.ErrorContains(t, err, "entry 3")
			continue
		}
		require.NoError(t, err, "after entry %d", n+1)
		if n == 5 {
			assert.Equal(t, string(now.AppendRecord(nil)), string(reply.AppendRecord(nil)))
		}
	}
	_, err := h.Reset(t.Context(), &message.Reset{Load: message.Load{Caller: john, WorkflowID: "order", InstanceID: id}, To: 5, Reason: "too early"})
	require.NoError(t, err)
}
