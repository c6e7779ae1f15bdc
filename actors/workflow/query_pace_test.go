package workflow_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// unread is answers that nobody reads.
type unread struct {
	release chan struct{}
	all     sync.WaitGroup
	ended   chan error
}

// begin runs n calls of read, which call the function that they get with what they
// read. It returns when each waits for its reader, or for a slot.
func (u *unread) begin(n int, read func(func()) error) {
	for range n {
		u.all.Go(func() { u.ended <- read(func() { <-u.release }) })
	}
	synctest.Wait()
}

// TestUnreadAnswersHoldUpNobody holds actors/query/DESIGN.md, "Fairness".
func TestUnreadAnswersHoldUpNobody(t *testing.T) {
	for name, c := range map[string]struct {
		open func(h *queries) int
		read func(h *queries, who *identity.Principal, item func()) error
		wait time.Duration // how long one more of the same user waits in vain
	}{
		"queries": {
			func(h *queries) int { queries, _ := h.Open(); return queries },
			func(h *queries, who *identity.Principal, item func()) error {
				_, err := h.Service.Query(h.t.Context(), &query.Request{Caller: who, WorkflowID: "order"}, func([]byte) error { item(); return nil })
				return err
			},
			2 * time.Second,
		},
		"lists": {
			func(h *queries) int { _, lists := h.Open(); return lists },
			func(h *queries, who *identity.Principal, item func()) error {
				return form.List(h.t.Context(), h.Service, &form.ListRequest{Kind: form.KindForm, User: who.ID}, func(form.Listed) error { item(); return nil })
			},
			time.Minute, // people are not sent away for others' sake
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := startQueries(t, query.Options{QueriesMax: 2, ListsMax: 2, QueriesOpenMax: 8, ListsOpenMax: 8})
				h.Publish(workflowtest.Order)
				h.Make(boss, "order", "")
				for _, who := range []*identity.Principal{john, mary} {
					made := &form.Form{Kind: form.KindForm, TemplateID: "f", Name: "A form", By: string(who.ID), Role: "employee"}
					h.Must(workflowtest.Second(h.Create(t.Context(), &message.Create{Caller: who, WorkflowID: "order", Form: made})))
				}
				u := &unread{release: make(chan struct{}), ended: make(chan error, 100)}
				read := sync.OnceFunc(func() { close(u.release) })
				t.Cleanup(read) // NB: else a test that fails would wait for its readers, and the time of the bubble run for ever
				begun := time.Now()
				for opened := range 4 {
					u.begin(1, func(item func()) error { return c.read(h, john, item) })
					require.Equal(t, opened+1, c.open(h), "are open")
					for _, who := range []*identity.Principal{mary, john} { // what is read is answered
						if opened == 3 && who == john {
							continue // he has half
						}
						assert.NoError(t, c.read(h, who, func() {}), "%s, while john does not read %d", who.ID, opened+1)
					}
				}
				assert.Zero(t, time.Since(begun), "somebody waited")
				u.begin(2, func(item func()) error { return c.read(h, john, item) })
				err := c.read(h, mary, func() {})
				assert.True(t, err == nil && time.Since(begun) == 0, "mary, while john waits for more than half: %v after %s", err, time.Since(begun))
				assert.Equal(t, 4, c.open(h), "john")
				clocktest.Advance(c.wait + time.Nanosecond)
				for range 2 {
					select {
					case err := <-u.ended:
						assert.ErrorIs(t, err, failure.ErrBusy, "john's fifth, %s", c.wait)
					default:
						t.Errorf("john's fifth still waits after %s", c.wait)
					}
				}
				read()
				u.all.Wait()
				assert.Zero(t, h.slotsHeld(), "slots are still held")
			})
		})
	}
}

// TestASlowFilterCostsItsOwnUser: others come in between, however many slots there
// are and however long it takes.
func TestASlowFilterCostsItsOwnUser(t *testing.T) {
	h := startQueries(t, query.Options{QueriesMax: 1, QueryWaitMax: time.Hour, TimeMax: time.Hour})
	h.Publish(workflowtest.Order, stock("stock", 1))
	for range 6 {
		h.Make(boss, "stock", workflowtest.Large(900_000))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const slowOnes = 3
	done := make(chan error, slowOnes)
	for range slowOnes {
		go func() {
			_, err := h.Service.Query(ctx, &query.Request{Caller: boss, WorkflowID: "stock", Filter: workflowtest.Slow}, func([]byte) error { return nil })
			done <- err
		}()
	}
	workflowtest.Await(t, "the slow queries to run", func() bool { return h.slotsHeld() == slowOnes+1 })
	for range 5 {
		_, _, err := h.list(query.Request{Caller: mary, WorkflowID: "order"})
		assert.NoError(t, err)
	}
	if len(done) > 0 {
		t.Errorf("mary waited for the end of a query of somebody else: %v", <-done)
	}
	cancel()
	for range slowOnes {
		err := <-done
		assert.ErrorIs(t, err, context.Canceled, "a slow query")
	}
}

// TestAnAnswerThatWasReadHasEnded: it waits for no slot when nothing is left to do.
func TestAnAnswerThatWasReadHasEnded(t *testing.T) {
	h := startQueries(t, query.Options{QueriesMax: 1, ListsMax: 1})
	h.Publish(workflowtest.Order)
	made := &form.Form{Kind: form.KindForm, TemplateID: "f", Name: "A form", By: string(john.ID), Role: "employee"}
	h.Must(workflowtest.Second(h.Create(t.Context(), &message.Create{Caller: john, WorkflowID: "order", Form: made})))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // or it would wait for the slot
	defer cancel()
	var marys sync.WaitGroup
	release := make(chan struct{})
	defer marys.Wait()
	defer close(release)
	read := 0
	taken := func(take func(working func()) error) error {
		read++
		has := make(chan struct{})
		marys.Go(func() { assert.NoError(t, take(func() { close(has); <-release })) })
		select {
		case <-has:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	history, err := filter.Parse([]byte(`{"svcHistory":{"$size":1}}`), filter.Options{})
	h.Must(err)
	_, err = h.Service.Query(ctx, &query.Request{Caller: boss, WorkflowID: "order"}, func([]byte) error {
		return taken(func(working func()) error {
			return workflowtest.Second(h.Match(ctx, mary.ID, history, filter.Document{History: func() data.Value { working(); return nil }}))
		})
	})
	assert.NoError(t, err, "a query, while mary has the slot")
	assert.NoError(t, form.List(ctx, h.Service, &form.ListRequest{Kind: form.KindForm, User: john.ID}, func(form.Listed) error {
		return taken(func(working func()) error {
			return h.Read(ctx, h.Store.Numbered(), mary.ID, func(*query.Reader) error { working(); return nil })
		})
	}))
	assert.Equal(t, 2, read, "items were read, want 2")
}
