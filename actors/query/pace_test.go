package query_test

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
		open func(h *harness) int
		read func(h *harness, who *identity.Principal, item func()) error
		wait time.Duration // how long one more of the same user waits in vain
	}{
		"queries": {
			func(h *harness) int { queries, _ := h.Open(); return queries },
			func(h *harness, who *identity.Principal, item func()) error {
				_, err := h.Service.Query(h.t.Context(), &query.Request{Caller: who, WorkflowID: "order"}, func([]byte) error { item(); return nil })
				return err
			},
			2 * time.Second,
		},
		"lists": {
			func(h *harness) int { _, lists := h.Open(); return lists },
			func(h *harness, who *identity.Principal, item func()) error {
				return form.List(h.t.Context(), h.Service, &form.ListRequest{Kind: form.KindForm, User: who.ID}, func(form.Listed) error { item(); return nil })
			},
			time.Minute, // people are not sent away for others' sake
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := start(t, query.Options{QueriesMax: 2, ListsMax: 2, QueriesOpenMax: 8, ListsOpenMax: 8})
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
	h := start(t, query.Options{QueriesMax: 1, QueryWaitMax: time.Hour, TimeMax: time.Hour})
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
