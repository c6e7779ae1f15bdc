package workflow

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/persistence/clocktest"
)

// slots takes slots among the queries. It ends with the test.
func (h *house) slots(who *identity.Principal) *slots {
	h.t.Helper()
	slots, err := h.enter(h.t.Context(), h.queries, who.ID, time.Minute)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(slots.leave)
	return slots
}

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

// TestUnreadAnswersHoldUpNobody holds actors/workflow/DESIGN.md, "Fairness".
func TestUnreadAnswersHoldUpNobody(t *testing.T) {
	for name, c := range map[string]struct {
		open func(h *house) int
		read func(h *house, who *identity.Principal, item func()) error
		wait time.Duration // how long one more of the same user waits in vain
	}{
		"queries": {
			func(h *house) int { return h.queries.open.Held() },
			func(h *house, who *identity.Principal, item func()) error {
				_, err := h.Query(h.t.Context(), &QueryRequest{Caller: who, WorkflowID: "order"}, func([]byte) error { item(); return nil })
				return err
			},
			2 * time.Second,
		},
		"lists": {
			func(h *house) int { return h.lists.open.Held() },
			func(h *house, who *identity.Principal, item func()) error {
				return h.Forms(h.t.Context(), form.Plain, who.ID, func(ListedForm) error { item(); return nil })
			},
			time.Minute, // people are not sent away for others' sake
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, Options{QueriesMax: 2, ListsMax: 2, QueriesOpenMax: 8, ListsOpenMax: 8})
				h.create(boss, "order", "")
				h.createForm(john, "leave", form.Plain)
				h.createForm(mary, "leave", form.Plain)
				u := &unread{release: make(chan struct{}), ended: make(chan error, 100)}
				begun := time.Now()
				for opened := range 4 {
					u.begin(1, func(item func()) error { return c.read(h, john, item) })
					if n := c.open(h); n != opened+1 {
						t.Fatalf("%d are open, want %d", n, opened+1)
					}
					for _, who := range []*identity.Principal{mary, john} { // what is read is answered
						if opened == 3 && who == john {
							continue // he has half
						}
						if err := c.read(h, who, func() {}); err != nil {
							t.Errorf("%s, while john does not read %d: %v", who.ID, opened+1, err)
						}
					}
				}
				if waited := time.Since(begun); waited != 0 {
					t.Errorf("somebody waited %s", waited)
				}
				u.begin(2, func(item func()) error { return c.read(h, john, item) })
				if err := c.read(h, mary, func() {}); err != nil || time.Since(begun) != 0 {
					t.Errorf("mary, while john waits for more than half: %v after %s", err, time.Since(begun))
				}
				if n := c.open(h); n != 4 {
					t.Errorf("john has %d of 8 open, want half", n)
				}
				clocktest.Advance(c.wait + time.Nanosecond)
				for range 2 {
					select {
					case err := <-u.ended:
						if !errors.Is(err, failure.ErrBusy) {
							t.Errorf("john's fifth: got %v, want failure.ErrBusy after %s", err, c.wait)
						}
					default:
						t.Errorf("john's fifth still waits after %s", c.wait)
					}
				}
				close(u.release)
				u.all.Wait()
				if n := h.queries.count() + h.lists.count(); n != 0 {
					t.Errorf("%d slots are still held", n)
				}
			})
		})
	}
}

// TestAListWaitsForASlot: nobody is refused because of one's own other lists, as
// long as those are read in time.
func TestAListWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{ListsMax: 1, ListsOpenMax: 2})
		h.createForm(john, "leave", form.Plain)
		u := &unread{release: make(chan struct{}), ended: make(chan error, 100)}
		u.begin(100, func(item func()) error {
			return h.Forms(t.Context(), form.Plain, john.ID, func(ListedForm) error { item(); return nil })
		})
		clocktest.Advance(10 * time.Second)
		close(u.release)
		u.all.Wait()
		for range 100 {
			if err := <-u.ended; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestAnAnswerThatWasReadHasEnded: it waits for no slot when nothing is left to do.
func TestAnAnswerThatWasReadHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{QueriesMax: 1, ListsMax: 1})
		h.create(boss, "order", "")
		h.createForm(john, "leave", form.Plain)
		begun := time.Now()
		taken := func(of *readers) error {
			slots, err := h.enter(t.Context(), of, mary.ID, time.Second)
			if err == nil {
				t.Cleanup(slots.leave)
			}
			return err
		}
		if _, err := h.Query(t.Context(), &QueryRequest{Caller: boss, WorkflowID: "order"}, func([]byte) error { return taken(h.queries) }); err != nil {
			t.Errorf("a query, while mary has the slot: %v", err)
		}
		if err := h.Forms(t.Context(), form.Plain, john.ID, func(ListedForm) error { return taken(h.lists) }); err != nil {
			t.Errorf("a list, while mary has the slot: %v", err)
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("they waited %s", waited)
		}
	})
}

// TestASlowFilterCostsItsOwnUser: others come in between, however many slots there
// are and however long it takes.
func TestASlowFilterCostsItsOwnUser(t *testing.T) {
	h := newHouse(t, Options{QueriesMax: 1, QueryWaitMax: time.Hour, QueryTimeMax: time.Hour})
	h.publish(leave, order, stock("stock", 1))
	for range 6 {
		id := h.create(boss, "stock", large(900_000))
		h.mustSend(boss, "stock", id, "set", large(900_000), "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const slowOnes = 3
	done := make(chan error, slowOnes)
	for range slowOnes {
		go func() {
			_, err := h.Router.Query(ctx, &QueryRequest{Caller: boss, WorkflowID: "stock", Filter: slow}, func([]byte) error { return nil })
			done <- err
		}()
	}
	await(t, "the slow queries to run", func() bool { return h.queries.open.Held() == slowOnes })
	for range 5 {
		h.query(mary, "order", "")
	}
	if len(done) > 0 {
		t.Errorf("mary waited for the end of a query of somebody else: %v", <-done)
	}
	cancel()
	for range slowOnes {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("a slow query: got %v, want context.Canceled", err)
		}
	}
}

// TestUsersShareTheRestOfTheMachine: a user's queries rest as if others had one
// each.
func TestUsersShareTheRestOfTheMachine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // on a large machine nobody rests
	h := newHouse(t, Options{QueriesMax: 8})
	h.inFlight.Add(1 << 20) // events keep the machine busy
	defer h.inFlight.Add(-1 << 20)
	alone := h.slots(mary)
	h.slots(john)
	want := h.restAfter(time.Millisecond, "mary")
	for range 3 {
		h.slots(john)
	}
	if got := h.restAfter(time.Millisecond, "mary"); got != want || got == 0 {
		t.Errorf("mary rests %s beside four of john's, %s beside one, want the same", got, want)
	}
	if got := h.restAfter(time.Millisecond, "john"); got <= 3*want {
		t.Errorf("one of john's four rests %s, want about four times %s", got, want)
	}
	alone.pause()
	if got := h.restAfter(time.Millisecond, "john"); got >= 3*want {
		t.Errorf("one of john's four rests %s while mary's waits for its reader, want about twice %s", got, want)
	}
}
