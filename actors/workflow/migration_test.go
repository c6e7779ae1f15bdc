package workflow_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/migration"
	"troupe/actors/query"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
)

const (
	orderOld = "id: order\nversion: 1\nowners: {users: [mary, john]}\nindexes: [svcPublic.n]\ncreate: {svcPrivate: false}\n" +
		"stateMachines: {m: {initial: checking, states: {checking: {after: {P2D: {actions: [{log: late}]}}, on: {go: packed}}, packed: {on: {go: checking, odd: strange}}, strange: {on: {go: packed}}}}}\n"
	orderNext = "id: order\nversion: 2\nowners: {users: [mary, john]}\nindexes: [svcPublic.n, svcPublic.by]\nallow: {read: {users: [john]}}\n" +
		"stateMachines: {m: {initial: review, states: {review: {after: {P2D: {actions: [{log: late}]}}, on: {done: packed}}, packed: {on: {done: review}}}}}\n"
	orderPlan = "from: 1\nto: 2\nnodes: {m: {checking: review}}\nassign: {svcPublic.by: '${user.id}'}\n"
)

type migrations struct {
	*workflowtest.Router
	*migration.Service
}

func startMigrations(t *testing.T) *migrations {
	h := &migrations{Router: workflowtest.Start(t, workflowtest.Options{})}
	h.Publish(orderOld)
	h.serve()
	return h
}

// serve makes the service for the router that runs.
func (h *migrations) serve() {
	h.Service = migration.New(migration.Options{Instances: h.Router.Router, Queries: h.Router.Queries, Parser: h.Parser, Newest: h.Catalog.Newest, Pin: h.Catalog.PinVersion, MayAssign: h.Catalog.MayAssign, Log: zerolog.Nop()})
}

// run asks for one page after the other.
func (h *migrations) run(t *testing.T, req migration.Request) (total migration.Answer, pages int) {
	t.Helper()
	for {
		a, err := h.Service.Migrate(t.Context(), &req)
		require.NoError(t, err)
		pages++
		total.Matched += a.Matched
		total.Migrated += a.Migrated
		total.Refused = append(total.Refused, a.Refused...)
		if req.Cursor = a.Next; req.Cursor == "" {
			return total, pages
		}
	}
}

func migrationBy(text string) migration.Request {
	return migration.Request{Caller: workflowtest.Mary, WorkflowID: "order", File: "plan.yaml", Plan: []byte(text), Limit: 10}
}

// versions counts the instances of each version, as the store has it.
func (h *migrations) versions(t *testing.T) (one, two int64) {
	t.Helper()
	for number, to := range map[uint64]*int64{1: &one, 2: &two} {
		n, err := h.Store.CountAll(key.Count(nil, key.EveryShard, "order", number))
		require.NoError(t, err)
		*to = n
	}
	return one, two
}

// meanwhile does something behind each list of instances.
type meanwhile struct {
	migration.Queries
	do func()
}

func (m meanwhile) Query(ctx context.Context, req *query.Request, item func([]byte) error) (*query.End, error) {
	end, err := m.Queries.Query(ctx, req, item)
	m.do()
	return end, err
}

// TestAPlanKeepsItsVersions: a version without instances may get other content, but not between a plan and its instances.
func TestAPlanKeepsItsVersions(t *testing.T) {
	h := startMigrations(t)
	id := h.Make(workflowtest.John, "order", "{}")
	h.Publish(orderNext)
	other := strings.Replace(orderNext, "done: packed", "ready: packed", 1)
	var refused error
	h.Service = migration.New(migration.Options{
		Instances: h.Router.Router, Queries: meanwhile{h.Router.Queries, func() { refused = h.Catalog.Publish(h.Sources(other)) }},
		Parser: h.Parser, Newest: h.Catalog.Newest, Pin: h.Catalog.PinVersion, MayAssign: h.Catalog.MayAssign, Log: zerolog.Nop(),
	})
	dry := migrationBy(orderPlan)
	dry.DryRun = true
	if h.run(t, dry); refused == nil {
		t.Error("other content was published under a plan")
	}
	h.Publish(other)
	a, _ := h.run(t, migrationBy(orderPlan))
	assert.Equal(t, 1, a.Migrated)
	h.MustSend(workflowtest.John, "order", id, "ready", "")
}

// TestInstancesMoveWhileTheyAreMigrated: each instance is migrated once, whatever comes in between.
func TestInstancesMoveWhileTheyAreMigrated(t *testing.T) {
	h := startMigrations(t)
	ids := h.Fill("order", slices.Repeat([]string{`{"n":1}`}, 40))
	h.Publish(orderNext)
	back := migrationBy("from: 2\nto: 1\nnodes: {m: {review: checking}}\n")
	var all sync.WaitGroup
	migrated := make([]int, 4)
	for i := range migrated {
		all.Go(func() {
			req := migrationBy(orderPlan)
			for {
				a, err := h.Service.Migrate(context.Background(), &req)
				if !assert.True(t, err == nil && len(a.Refused) <= 0, "got %+v, %v", a, err) {
					return
				}
				migrated[i] += a.Migrated
				if req.Cursor = a.Next; req.Cursor == "" {
					return
				}
			}
		})
	}
	all.Go(func() {
		for _, id := range ids {
			_, err := h.Try(workflowtest.John, "order", id, "go", "", "") // which only version 1 knows
			assert.False(t, err != nil && !errors.Is(err, failure.ErrInvalid), "an event beside: %v", err)
		}
	})
	all.Wait()
	total := 0
	for _, n := range migrated {
		total += n
	}
	one, two := h.versions(t)
	assert.True(t, total == 40 && one == 0 && two == 40, "migrated %d times; %d and %d instances of the versions, want 40, 0 and 40", total, one, two)
	h.AwaitIndexes()
	h.CheckIndexes()
	a, _ := h.run(t, back)
	assert.Equal(t, 40, a.Migrated, "back")
}
