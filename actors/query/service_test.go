package query_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow/workflowtest"
)

// TestCollecting ends soon, before the first candidate too, and is bounded: an index whose
// rows were too many is not collected, whatever was guessed.
func TestCollecting(t *testing.T) {
	h := start(t, query.Options{})
	h.Publish(stock("stock", 1, "svcPublic.t"))
	h.Fill("stock", append(slices.Repeat([]string{`{"t":"many"}`}, 150), slices.Repeat([]string{`{"t":"few"}`}, 30)...))
	h.AwaitIndexes()
	req := query.Request{Caller: boss, WorkflowID: "stock", Filter: `{"svcPublic.t":"few"}`}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	for ctx, want := range map[context.Context]error{cancelled: context.Canceled, late: context.DeadlineExceeded} {
		err := h.Choose(ctx, &req)
		assert.True(t, errors.Is(err, want) && !errors.Is(err, failure.ErrInternal), "got %v, want %v", err, want)
	}
	for most, want := range map[int]bool{29: false, 30: true, 1000: true} {
		n, all, err := h.Collected(&req, most)
		assert.True(t, err == nil && all == want && (!all || n == 30), "at most %d of 30: got %d, all %v, %v", most, n, all, err)
	}
	id := h.ID(h.Make(boss, "stock", ""))
	err := h.ReadHistory(cancelled, &req, id)
	assert.True(t, errors.Is(err, context.Canceled) && !errors.Is(err, failure.ErrInternal), err)
}

// counting counts how often somebody looks whether it has ended.
type counting struct {
	context.Context
	looks int
}

func (c *counting) Err() error { c.looks++; return c.Context.Err() }

// TestPlanningLooksUpAlsoWhereThereIsNothing: to look for a value costs time, whether it
// is there or not.
func TestPlanningLooksUpAlsoWhereThereIsNothing(t *testing.T) {
	h := start(t, query.Options{})
	h.Publish(stock("stock", 1, "svcPublic.t", "svcPublic.n"))
	h.Fill("stock", append(slices.Repeat([]string{`{"t":"some"}`}, 100), slices.Repeat([]string{`{}`}, 500)...))
	h.AwaitIndexes()
	h.Limits().ProbeKeys = 40
	none := make([]string, 640)
	for n := range none {
		none[n] = fmt.Sprint(n)
	}
	in := `{"svcPublic.n":{"$in":[` + strings.Join(none, ",") + `]}}`
	all := len(none) * int(h.Store.Shards()) // places to look at
	var branches []string
	for n := range 64 {
		branches = append(branches, `{"svcPublic.n":{"$in":[`+strings.Join(none[10*n:10*n+10], ",")+`]}}`)
	}
	for name, c := range map[string]struct {
		filter string
		steps  int // at least
	}{
		"a list of values":                       {in, all},
		"branches":                               {`{"$or":[` + strings.Join(branches, ",") + `]}`, all},
		"what is counted in part, and collected": {`{"svcPublic.t":{"$in":["some","` + strings.Join(none, `","`) + `"]}}`, all + all/2},
	} {
		ctx := &counting{Context: t.Context()}
		assert.NoError(t, h.Choose(ctx, &query.Request{Caller: boss, WorkflowID: "stock", Filter: c.filter, Sort: "svcPublic.n"}), name)
		want := c.steps / query.CheckEvery
		assert.GreaterOrEqual(t, ctx.looks, want, "%s: the query looks up", name)
	}
}

// TestAnAnswerThatWasReadHasEnded: it waits for no slot when nothing is left to do.
func TestAnAnswerThatWasReadHasEnded(t *testing.T) {
	h := start(t, query.Options{QueriesMax: 1, ListsMax: 1})
	h.Publish(workflowtest.Order)
	made := &form.Form{Kind: form.KindForm, TemplateID: "f", Name: "A form", By: string(john.ID), Role: "employee"}
	h.Must(workflowtest.Second(h.Create(t.Context(), &message.Create{Caller: john, WorkflowID: "order", Form: made})))
	read := 0
	taken := func(lists bool) error {
		read++
		got, err := h.Enter(t.Context(), lists, mary.ID)
		if err == nil {
			t.Cleanup(got.Leave)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // or it would wait for the slot
	defer cancel()
	_, err := h.Service.Query(ctx, &query.Request{Caller: boss, WorkflowID: "order"}, func([]byte) error { return taken(false) })
	assert.NoError(t, err, "a query, while mary has the slot")
	assert.NoError(t, form.List(ctx, h.Service, &form.ListRequest{Kind: form.KindForm, User: john.ID}, func(form.Listed) error { return taken(true) }))
	assert.Equal(t, 2, read, "items were read, want 2")
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
