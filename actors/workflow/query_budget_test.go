package workflow_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
)

// ways are queries that find their candidates in different ways among 250 instances, of
// which 50 have the label "few". Each way hands over more than one batch.
var ways = map[string]query.Request{
	"a scan":                {Filter: `{"svcPublic.u":{"$ne":1}}`},
	"a scan, down":          {Sort: "-_id"},
	"the order of an index": {Sort: "svcPublic.n"},
	"an index":              {Filter: `{"svcPublic.t":"few"}`},
	"sorted in memory":      {Filter: `{"svcPublic.t":"few"}`, Sort: "-svcPublic.n"},
}

// TestAQueryEnds at once when its time is over, when nobody wants it any more and at
// damage, whatever way it goes. Its iterators are closed, or the store could not be.
func TestAQueryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startQueries(t, query.Options{TimeMax: 10 * time.Second})
		h.Publish(stock("stock", 1, workflowtest.StockIndexes...))
		filler := strings.Repeat("x", (64<<10)/40)
		data := slices.Repeat([]string{`{"n":1,"u":"` + filler + `"}`}, 200)
		h.Fill("stock", append(data, slices.Repeat([]string{`{"n":2,"t":"few","u":"` + filler + `"}`}, 50)...))
		h.AwaitIndexes()
		gone := errors.New("gone")
		for name, req := range ways {
			req.Caller, req.WorkflowID, req.Count = boss, "stock", true
			for _, req.Limit = range []int{0, 1000} {
				for _, c := range []struct {
					end  func(cancel func()) error
					want error
				}{
					{func(func()) error { clocktest.Advance(11 * time.Second); return nil }, failure.ErrBusy},
					{func(cancel func()) error { cancel(); return nil }, context.Canceled},
					{func(func()) error { return gone }, gone},
				} {
					ctx, cancel := context.WithCancel(t.Context())
					seen := 0
					_, err := h.Service.Query(ctx, &req, func([]byte) error {
						if seen++; seen == 20 {
							return c.end(cancel)
						}
						return nil
					})
					assert.True(t, errors.Is(err, c.want) && (!errors.Is(err, failure.ErrInternal) || errors.Is(c.want, gone)) && seen == 20,
						"%s: got %v after %d entries, want %v after 20", name, err, seen, c.want)
					cancel()
				}
			}
		}
		assert.Zero(t, h.slotsHeld(), "slots are still held")
		all := h.Instances("stock")
		for _, filter := range []string{`{"svcPublic.n":1}`, `{"svcPublic.t":"few"}`} {
			h.Spoil("stock", obvious(t, all, boss, filter, "")[0])
		}
		for name, req := range ways {
			req.Caller, req.WorkflowID = boss, "stock"
			_, _, err := h.list(req)
			assert.ErrorIs(t, err, failure.ErrExecution, "%s, at damage", name)
		}
	})
}

// TestASlowFilterDoesNotOutliveItsQuery: not the budget, not the caller, not the
// service.
func TestASlowFilterDoesNotOutliveItsQuery(t *testing.T) {
	for _, filter := range []string{workflowtest.Slow, workflowtest.SlowNot} {
		for _, c := range []struct {
			name string
			o    query.Options
			end  func(h *queries, cancel func()) error
			want error
		}{
			{"the time is over", query.Options{TimeMax: 100 * time.Millisecond}, nil, failure.ErrBusy},
			{"the caller leaves", query.Options{}, func(_ *queries, cancel func()) error { cancel(); return nil }, context.Canceled},
			{"the service stops", query.Options{}, func(h *queries, _ func()) error { h.Stop(); return nil }, failure.ErrUnavailable},
		} {
			t.Run(c.name+" "+filter, func(t *testing.T) {
				h := startQueries(t, c.o)
				h.Publish(stock("stock", 1))
				for range 3 {
					h.Make(boss, "stock", workflowtest.Large(900_000))
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				seen := 0
				go func() {
					_, err := h.Service.Query(ctx, &query.Request{Caller: boss, WorkflowID: "stock", Filter: filter}, func([]byte) error { seen++; return nil })
					done <- err
				}()
				if c.end != nil {
					workflowtest.Await(t, "the query to run", func() bool { return h.slotsHeld() == 2 })
				}
				atOnce := workflowtest.PartOfSlow(t)
				if c.end != nil {
					assert.NoError(t, c.end(h, cancel))
				}
				err := <-done
				assert.True(t, errors.Is(err, c.want) && !errors.Is(err, failure.ErrInternal) && seen == 0, "%v %v %v", err, seen, c.want)
				assert.True(t, atOnce(), "it took as long as half of a look, want it to end at once")
				assert.Zero(t, h.slotsHeld(), "slots are still held")
			})
		}
	}
}

// TestAQueryLooksUpAfterSoManyBytes rather than after so many instances.
func TestAQueryLooksUpAfterSoManyBytes(t *testing.T) {
	h := startQueries(t, query.Options{})
	h.Publish(stock("stock", 1))
	for range 6 {
		h.Make(boss, "stock", workflowtest.Large(40_000))
	}
	for _, limit := range []int{0, 100} {
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		_, err := h.Service.Query(ctx, &query.Request{Caller: boss, WorkflowID: "stock", Limit: limit}, func([]byte) error { seen++; cancel(); return nil })
		assert.True(t, errors.Is(err, context.Canceled) && !errors.Is(err, failure.ErrInternal) && seen <= 2, "%v %v %v", limit, err, seen)
	}
}
