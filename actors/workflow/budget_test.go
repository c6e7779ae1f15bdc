package workflow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/statemachine/filter"
)

// ways are queries that find their candidates in different ways among 1,400
// instances of which 300 have the label "few".
var ways = map[string]query.Request{
	"a scan":                {Filter: `{"svcPublic.u":{"$ne":1}}`},
	"a scan, down":          {Sort: "-_id"},
	"the order of an index": {Sort: "svcPublic.n"},
	"an index":              {Filter: `{"svcPublic.t":"few"}`},
	"sorted in memory":      {Filter: `{"svcPublic.t":"few"}`, Sort: "-svcPublic.n"},
}

func fillForWays(h *house) {
	h.publish(leave, order, stock("stock", 1, stockIndexes...))
	data := slices.Repeat([]string{`{"n":1}`}, 1100)
	h.fill("stock", append(data, slices.Repeat([]string{`{"n":2,"t":"few"}`}, 300)...))
	h.awaitIndexes()
}

// TestAQueryHasABudget: what takes too long is busy, at once and whatever way it
// goes.
func TestAQueryHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{QueryTimeMax: 10 * time.Second})
		fillForWays(h)
		for name, req := range ways {
			for _, req.Limit = range []int{0, 1000} {
				seen := 0
				req.Caller, req.WorkflowID, req.Count = boss, "stock", true
				_, err := h.Query(t.Context(), &req, func([]byte) error {
					if seen++; seen == 20 {
						clocktest.Advance(11 * time.Second)
					}
					return nil
				})
				if !errors.Is(err, failure.ErrBusy) || errors.Is(err, failure.ErrInternal) {
					t.Errorf("%s: got %v, want ErrBusy", name, err)
				}
				if seen > 20+256 {
					t.Errorf("%s: %d entries, of which %d after the time was over", name, seen, seen-20)
				}
			}
		}
	})
}

// TestAQueryEndsWhenNobodyWants: the iterators are closed, or the store could
// not be.
func TestAQueryEndsWhenNobodyWants(t *testing.T) {
	h := newHouse(t, Options{})
	fillForWays(h)
	gone := errors.New("gone")
	for name, req := range ways {
		req.Caller, req.WorkflowID, req.Count = boss, "stock", true
		for _, req.Limit = range []int{0, 1000} {
			ctx, cancel := context.WithCancel(t.Context())
			seen := 0
			_, err := h.Query(ctx, &req, func([]byte) error {
				if seen++; seen == 20 {
					cancel()
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) || errors.Is(err, failure.ErrInternal) || seen > 20+256 {
				t.Errorf("%s: got %v after %d entries, want context.Canceled soon after 20", name, err, seen)
			}
			cancel()
			seen = 0
			_, err = h.Query(t.Context(), &req, func([]byte) error {
				if seen++; seen == 20 {
					return gone
				}
				return nil
			})
			if !errors.Is(err, gone) || seen != 20 {
				t.Errorf("%s: got %v after %d entries, want the error of yield", name, err, seen)
			}
		}
	}
	if n := h.slotsHeld(); n != 0 {
		t.Errorf("%d slots are still held", n)
	}
}

// TestAQueryThatMeetsDamageSaysSo rather than to leave something out.
func TestAQueryThatMeetsDamageSaysSo(t *testing.T) {
	h := newHouse(t, Options{})
	fillForWays(h)
	for _, s := range []storedInstance{one(t, h, `{"svcPublic.n":1}`), one(t, h, `{"svcPublic.t":"few"}`)} {
		w := h.store.NewWrites(h.store.ShardOf(s.id))
		w.Set(persistence.RecordKey(nil, h.store.ShardOf(s.id), "stock", s.id), []byte("not a record"))
		done := make(confirmed, 1)
		h.store.Append(w, done)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for name, req := range ways {
		req.Caller, req.WorkflowID = boss, "stock"
		if _, _, err := h.list(req); !errors.Is(err, failure.ErrExecution) {
			t.Errorf("%s: got %v, want ErrExecution", name, err)
		}
	}
}

// one returns an instance of stock that matches.
func one(t *testing.T, h *house, filter string) storedInstance {
	t.Helper()
	all := h.instances("stock")
	names := matching(t, all, filter)
	i := slices.IndexFunc(all, func(s storedInstance) bool { return s.name == names[0] })
	return all[i]
}

func TestAQueryOfARouterThatStopsIsRefused(t *testing.T) {
	h := newHouse(t, Options{})
	if err := h.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.list(query.Request{Caller: john, WorkflowID: "order"}); !errors.Is(err, failure.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

// slow is a filter that takes seconds for a megabyte, and slowNot one that is true
// of what slow does not match.
const (
	slow    = `{"svcPublic.t":{"$regex":"(x?){250}y"}}`
	slowNot = `{"svcPublic.t":{"$not":{"$regex":"(x?){250}y"}}}`
)

// large is data of n bytes that slow does not match.
func large(n int) string { return `{"t":"` + strings.Repeat("x", n) + `"}` }

// partOfSlow begins half of what slow takes for a large instance. What ends
// at once has ended before it, on however slow a machine: atOnce says so.
func partOfSlow(t *testing.T) (atOnce func() bool) {
	t.Helper()
	f, err := filter.Parse([]byte(slow), filter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Match(filter.Document{Public: value(large(900_000 / 2)), Ended: ended.Load})
	}()
	return func() bool {
		select {
		case <-done:
			return false
		default:
			ended.Store(true)
			<-done
			return true
		}
	}
}

// TestASlowFilterDoesNotOutliveItsQuery: not the budget, not the caller, not the
// service.
func TestASlowFilterDoesNotOutliveItsQuery(t *testing.T) {
	for _, filter := range []string{slow, slowNot} {
		for _, c := range []struct {
			name string
			o    Options
			end  func(h *house, cancel func()) error
			want error
		}{
			{"the time is over", Options{QueryTimeMax: 100 * time.Millisecond}, nil, failure.ErrBusy},
			{"the caller leaves", Options{}, func(_ *house, cancel func()) error { cancel(); return nil }, context.Canceled},
			{"the router stops", Options{}, func(h *house, _ func()) error { return h.Stop(context.Background()) }, failure.ErrUnavailable},
		} {
			t.Run(c.name+" "+filter, func(t *testing.T) {
				h := newHouse(t, c.o)
				h.publish(leave, order, stock("stock", 1))
				for range 3 {
					id := h.create(boss, "stock", large(900_000))
					h.mustSend(boss, "stock", id, "set", large(900_000), "")
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				seen := 0
				go func() {
					_, err := h.Router.Query(ctx, &query.Request{Caller: boss, WorkflowID: "stock", Filter: filter}, func([]byte) error { seen++; return nil })
					done <- err
				}()
				if c.end != nil {
					await(t, "the query to run", func() bool { return h.slotsHeld() == 2 })
				}
				atOnce := partOfSlow(t)
				if c.end != nil {
					if err := c.end(h, cancel); err != nil {
						t.Error(err)
					}
				}
				if err := <-done; !errors.Is(err, c.want) || errors.Is(err, failure.ErrInternal) || seen != 0 {
					t.Errorf("got %v and %d instances, want %v and none", err, seen, c.want)
				}
				if !atOnce() {
					t.Error("it took as long as half of a look, want it to end at once")
				}
				if n := h.slotsHeld(); n != 0 {
					t.Errorf("%d slots are still held", n)
				}
			})
		}
	}
}

// TestAQueryLooksUpAfterSoManyBytes rather than after so many instances.
func TestAQueryLooksUpAfterSoManyBytes(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1))
	for range 6 {
		h.create(boss, "stock", large(40_000))
	}
	for _, limit := range []int{0, 100} {
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		_, err := h.Query(ctx, &query.Request{Caller: boss, WorkflowID: "stock", Limit: limit}, func([]byte) error { seen++; cancel(); return nil })
		if !errors.Is(err, context.Canceled) || errors.Is(err, failure.ErrInternal) || seen > 2 {
			t.Errorf("limit %d: got %v after %d instances, want context.Canceled after 2", limit, err, seen)
		}
	}
}

// TestStopWaitsForTheEndOfQueries: the store is closed after it.
func TestStopWaitsForTheEndOfQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.create(boss, "order", "")
		release, done := make(chan struct{}), make(chan error, 2)
		go func() {
			_, err := h.Router.Query(t.Context(), &query.Request{Caller: boss, WorkflowID: "order"}, func([]byte) error { <-release; return nil })
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while a query hangs: got %v, want context.DeadlineExceeded", err)
		}
		close(release)
		if err := h.Stop(t.Context()); err != nil {
			t.Errorf("when it has ended: %v", err)
		}
		if len(done) != 1 {
			t.Error("Stop has returned before the query")
		}
	})
}
