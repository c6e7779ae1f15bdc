package query_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
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
		if err := h.Choose(ctx, &req); !errors.Is(err, want) || errors.Is(err, failure.ErrInternal) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	for most, want := range map[int]bool{29: false, 30: true, 1000: true} {
		if n, all, err := h.Collected(&req, most); err != nil || all != want || all && n != 30 {
			t.Errorf("at most %d of 30: got %d, all %v, %v", most, n, all, err)
		}
	}
	id := h.ID(h.Make(boss, "stock", ""))
	if err := h.ReadHistory(cancelled, &req, id); !errors.Is(err, context.Canceled) || errors.Is(err, failure.ErrInternal) {
		t.Errorf("reading a history, which may be longer than all else: got %v, want context.Canceled", err)
	}
}

// TestAnAnswerThatWasReadHasEnded: it waits for no slot when nothing is left to do.
func TestAnAnswerThatWasReadHasEnded(t *testing.T) {
	h := start(t, query.Options{QueriesMax: 1, ListsMax: 1})
	h.Publish(workflowtest.Order)
	made := &form.Form{Kind: form.KindForm, TemplateID: "f", Name: "A form", By: string(john.ID), Role: "employee"}
	h.Must(workflowtest.Second(h.Create(t.Context(), &workflow.CreateRequest{Caller: john, WorkflowID: "order", Form: made})))
	read := 0
	taken := func(lists bool) error {
		read++
		got, err := h.Enter(t.Context(), lists, mary.ID)
		if err == nil {
			t.Cleanup(got.Leave)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // or it would wait for the slot
	defer cancel()
	if _, err := h.Query(ctx, &query.Request{Caller: boss, WorkflowID: "order"}, func([]byte) error { return taken(false) }); err != nil {
		t.Errorf("a query, while mary has the slot: %v", err)
	}
	if err := form.List(ctx, h.Service, &form.ListRequest{Kind: form.KindForm, User: john.ID}, func(form.Listed) error { return taken(true) }); err != nil {
		t.Errorf("a list, while mary has the slot: %v", err)
	}
	if read != 2 {
		t.Errorf("%d items were read, want 2", read)
	}
}

// TestUsersShareTheRestOfTheMachine: a user's queries rest as if others had one
// each, once what the user has saved up is spent.
func TestUsersShareTheRestOfTheMachine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // on a large machine nobody rests
	synctest.Test(t, usersShare)
}

func usersShare(t *testing.T) {
	h := start(t, query.Options{QueriesMax: 8})
	h.o.InFlight.Add(1 << 20) // events keep the machine busy
	slots := func(who *identity.Principal) query.Slots {
		got, err := h.Enter(t.Context(), false, who.ID)
		h.Must(err)
		t.Cleanup(got.Leave)
		return got
	}
	alone := slots(mary)
	slots(john)
	const saved = 50 * time.Millisecond
	for _, user := range []identity.UserID{"mary", "john"} {
		for worked := time.Duration(0); worked < saved; worked += time.Millisecond {
			if got := h.RestAfter(time.Millisecond, user); got != 0 {
				t.Fatalf("%s rests %s after %s of work, want to have %s without rest", user, got, worked, saved)
			}
		}
	}
	want := h.RestAfter(time.Millisecond, "mary")
	for range 3 {
		slots(john)
	}
	if got := h.RestAfter(time.Millisecond, "mary"); got != want || got == 0 {
		t.Errorf("mary rests %s beside four of john's, %s beside one, want the same", got, want)
	}
	if got := h.RestAfter(time.Millisecond, "john"); got <= 3*want {
		t.Errorf("one of john's four rests %s, want about four times %s", got, want)
	}
	clocktest.Advance(time.Second) // in which a user's share is 20 ms
	for _, want := range []bool{false, true} {
		h.RestAfter(5*time.Millisecond, "mary")
		h.RestAfter(5*time.Millisecond, "mary")
		h.RestAfter(5*time.Millisecond, "mary")
		if got := h.RestAfter(5*time.Millisecond, "mary"); (got != 0) != want {
			t.Errorf("mary rests %s after what was saved in a second, or twice that", got)
		}
	}
	for h.RestAfter(5*time.Millisecond, "john") == 0 { // so he has saved nothing again
	}
	alone.Pause()
	if got := h.RestAfter(time.Millisecond, "john"); got >= 3*want {
		t.Errorf("one of john's four rests %s while mary's waits for its reader, want about twice %s", got, want)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
