package migration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/migration"
	"troupe/actors/pending"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

const (
	old = "id: order\nversion: 1\nowners: {users: [mary, john]}\nindexes: [svcPublic.n]\ncreate: {svcPrivate: false}\n" +
		"stateMachines: {m: {initial: checking, states: {checking: {after: {P2D: {actions: [{log: late}]}}, on: {go: packed}}, packed: {on: {go: checking, odd: strange}}, strange: {on: {go: packed}}}}}\n"
	next = "id: order\nversion: 2\nowners: {users: [mary, john]}\nindexes: [svcPublic.n, svcPublic.by]\nallow: {read: {users: [john]}}\n" +
		"stateMachines: {m: {initial: review, states: {review: {after: {P2D: {actions: [{log: late}]}}, on: {done: packed}}, packed: {on: {done: review}}}}}\n"
	plan = "from: 1\nto: 2\nnodes: {m: {checking: review}}\nassign: {svcPublic.by: '${user.id}'}\n"
)

type harness struct {
	*workflowtest.Router
	*migration.Service
}

func start(t *testing.T) *harness {
	h := &harness{Router: workflowtest.Start(t, workflowtest.Options{})}
	h.Publish(old)
	h.serve()
	return h
}

// serve makes the service for the router that runs.
func (h *harness) serve() {
	h.Service = migration.New(migration.Options{Instances: h.Router.Router, Queries: h.Router.Queries, Parser: h.Parser, Newest: h.Catalog.Newest, Pin: h.Catalog.PinVersion, MayAssign: h.Catalog.MayAssign, Log: zerolog.Nop()})
}

// run asks for one page after the other.
func (h *harness) run(t *testing.T, req migration.Request) (total migration.Answer, pages int) {
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

func request(text string) migration.Request {
	return migration.Request{Caller: workflowtest.Mary, WorkflowID: "order", File: "plan.yaml", Plan: []byte(text), Limit: 10}
}

// versions counts the instances of each version, as the store has it.
func (h *harness) versions(t *testing.T) (one, two int64) {
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
	h := start(t)
	id := h.Make(workflowtest.John, "order", "{}")
	h.Publish(next)
	other := strings.Replace(next, "done: packed", "ready: packed", 1)
	var refused error
	h.Service = migration.New(migration.Options{
		Instances: h.Router.Router, Queries: meanwhile{h.Router.Queries, func() { refused = h.Catalog.Publish(h.Sources(other)) }},
		Parser: h.Parser, Newest: h.Catalog.Newest, Pin: h.Catalog.PinVersion, MayAssign: h.Catalog.MayAssign, Log: zerolog.Nop(),
	})
	dry := request(plan)
	dry.DryRun = true
	if h.run(t, dry); refused == nil {
		t.Error("other content was published under a plan")
	}
	h.Publish(other)
	a, _ := h.run(t, request(plan))
	assert.Equal(t, 1, a.Migrated)
	h.MustSend(workflowtest.John, "order", id, "ready", "")
}

func TestAPlanIsTriedAndCarriedOut(t *testing.T) {
	h := start(t)
	publics := make([]string, 25)
	for i := range publics {
		publics[i] = fmt.Sprintf(`{"n":%d}`, i)
	}
	ids := h.Fill("order", publics)
	h.MustSend(workflowtest.John, "order", ids[3], "go", "")
	h.MustSend(workflowtest.John, "order", ids[3], "odd", "")
	h.MustSend(workflowtest.John, "order", ids[4], "go", "")
	h.Publish(next)

	dry := request(plan)
	dry.DryRun = true
	want := migration.Refusal{InstanceID: ids[3], Reason: `version 2 has no node "strange" in machine "m": map it`}
	a, pages := h.run(t, dry)
	assert.True(t, a.Matched == 25 && a.Migrated == 24 && len(a.Refused) == 1 && a.Refused[0] == want && pages == 3, "tried: got %+v in %d pages", a, pages)
	one, two := h.versions(t)
	assert.True(t, one == 25 && two == 0, "tried: got %d and %d instances of the versions", one, two)

	filtered := request(plan)
	filtered.Filter = `{"svcPublic.n": {"$lt": 5}}`
	if _, err := h.Service.Migrate(t.Context(), &filtered); !errors.Is(err, failure.ErrForbidden) {
		t.Errorf("filtered by data that she may not read: %v", err)
	}
	filtered.Caller = workflowtest.John
	a, _ = h.run(t, filtered)
	assert.True(t, a.Matched == 5 && a.Migrated == 4 && len(a.Refused) == 1, "filtered: got %+v", a)
	a, _ = h.run(t, request(plan))
	assert.True(t, a.Matched == 21 && a.Migrated == 20 && slices.Equal(a.Refused, []migration.Refusal{want}), "the rest: got %+v", a)
	one, two = h.versions(t)
	assert.True(t, one == 1 && two == 24, "got %d and %d instances of the versions, want 1 and 24", one, two)
	h.AwaitIndexes()
	h.CheckIndexes()

	// What runs is the other version, now and after it was read again.
	for range 2 {
		h.MustSend(workflowtest.John, "order", ids[4], "done", "")
		h.Restart()
		h.serve()
	}
	for _, in := range h.Instances("order") {
		assert.False(t, in.ID == h.ID(ids[4]) && !strings.Contains(string(in.Document.Public), `"by":"john"`), "assigned: got %s", in.Document.Public)
	}
	pending, err := h.Pending(&message.Load{Caller: workflowtest.Mary, WorkflowID: "order", InstanceID: ids[0]})
	assert.False(t, !errors.Is(err, failure.ErrForbidden) && !errors.Is(err, failure.ErrNotFound), "version 2 does not let her read: got %+v, %v", pending, err)
	last := request(strings.Replace(plan, "checking: review", "checking: review, strange: packed", 1))
	a, _ = h.run(t, last)
	assert.True(t, a.Matched == 1 && a.Migrated == 1, "with a node for it: got %+v", a)
	a, _ = h.run(t, last)
	assert.Zero(t, a.Matched, "again")
}

// TestAMigrationTellsNothingHidden: for instances that the caller may not read a trial looks at nothing but where they stand, and a plan assigns nothing
// that it has read in them.
func TestAMigrationTellsNothingHidden(t *testing.T) {
	h := start(t)
	ids := h.Fill("order", []string{`{"n":1}`, `{"n":2}`})
	h.Publish(next + "schema: {svcPublic: {properties: {n: {maximum: 1}}}}\n")
	dry := request("from: 1\nto: 2\nnodes: {m: {checking: review}}\n")
	dry.DryRun = true
	a, _ := h.run(t, dry)
	assert.True(t, a.Migrated == 2 && len(a.Refused) == 0, "tried by mary: got %+v", a)
	reading := request(assigning("${svcPublic.n > 1 ? 1 / 0 : 1}"))
	for _, reading.DryRun = range []bool{true, false} {
		a, _ := h.run(t, reading)
		if a.Migrated != 0 || len(a.Refused) != 2 || a.Refused[0].Reason != a.Refused[1].Reason || !strings.Contains(a.Refused[0].Reason, "you may not read that") {
			t.Errorf("a plan that reads, by mary, dry %t: got %+v", reading.DryRun, a)
		}
	}
	dry.Caller, reading.Caller, reading.DryRun = workflowtest.John, workflowtest.John, true
	for name, req := range map[string]migration.Request{"the schema": dry, "the plan": reading} {
		a, _ := h.run(t, req)
		assert.True(t, a.Migrated == 1 && len(a.Refused) == 1 && a.Refused[0].InstanceID == ids[1], "%s, by john, who may read: got %+v", name, a)
	}
}

// assigning is a plan that assigns a value.
func assigning(value string) string {
	return "from: 1\nto: 2\nnodes: {m: {checking: review}}\nassign: {svcPublic.n: '" + value + "'}\n"
}

// TestInstancesMoveWhileTheyAreMigrated: each instance is migrated once, whatever comes in between.
func TestInstancesMoveWhileTheyAreMigrated(t *testing.T) {
	h := start(t)
	ids := h.Fill("order", slices.Repeat([]string{`{"n":1}`}, 40))
	h.Publish(next)
	back := request("from: 2\nto: 1\nnodes: {m: {review: checking}}\n")
	var all sync.WaitGroup
	migrated := make([]int, 4)
	for i := range migrated {
		all.Go(func() {
			req := request(plan)
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

// TestAnIncidentGoesAlong: its row stays, and it can be retried in the other version.
func TestAnIncidentGoesAlong(t *testing.T) {
	const failing = "id: order\nversion: 1\nstateMachines: {m: {initial: checking, states: {checking: {after: {PT1S: {target: late, actions: [{assign: {svcPublic.x: '${1 / 0}'}}]}}, on: {go: late}}, late: {on: {go: checking}}}}}\n"
	synctest.Test(t, func(t *testing.T) {
		h := &harness{Router: workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now}, Disk: storetest.NewDisk()})}
		h.Publish(failing)
		h.serve()
		id := h.Make(workflowtest.John, "order", `{}`)
		clocktest.Advance(2 * time.Second)
		h.Publish(strings.NewReplacer("version: 1", "version: 2", "checking", "review", "1 / 0", "1").Replace(failing))
		a, _ := h.run(t, request("from: 1\nto: 2\nnodes: {m: {checking: review}}\n"))
		require.Equal(t, 1, a.Migrated)
		incidents := func() []pending.Incident {
			t.Helper()
			page, err := h.Waiting.Incidents(t.Context(), &pending.IncidentList{Caller: workflowtest.John, Limit: 10})
			require.NoError(t, err)
			return page.Incidents
		}
		list := incidents()
		require.True(t, len(list) == 1 && list[0].Error != "", "got the incidents %+v", list)
		require.NoError(t, h.ChangeIncident(t.Context(), workflowtest.John, list[0].ID, false))
		assert.Empty(t, incidents(), "after it was retried")
		assert.Contains(t, string(h.MustLook(workflowtest.John, "order", id).States), "late")
		h.End()
	})
}
