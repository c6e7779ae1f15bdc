package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
)

func TestWhoMayNotGetsTheAnswerOfTheTable(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(john, "leave", "")
	other := h.Make(mary, "leave", `{"by": "mary"}`)
	anOrder := h.Make(john, "order", "")
	h.MustSend(john, "leave", id, "submit", "")
	create := func(who *identity.Principal, workflowID string) error {
		return workflowtest.Second(h.Create(t.Context(), &message.Create{Caller: who, WorkflowID: workflowID}))
	}
	look := func(who *identity.Principal, workflowID, id string) error {
		return workflowtest.Second(h.Look(who, workflowID, id))
	}
	send := func(id, name string) error { return workflowtest.Second(h.Try(john, "leave", id, name, "", "")) }
	back := func(ifMatch ...uint64) error {
		e := event(john, "leave", id, "back", "", "")
		e.IfMatch = ifMatch
		return workflowtest.Second(h.Send(t.Context(), e))
	}
	for _, c := range []struct {
		name      string
		got, want error
	}{
		{"create without the role", create(eve, "leave"), failure.ErrForbidden},
		{"create of an unknown workflow", create(john, "nope"), failure.ErrNotFound},
		{"load what a when hides", look(john, "leave", other), failure.ErrNotFound},
		{"send to what a when hides", send(other, "submit"), failure.ErrNotFound},
		{"load with another workflow's id", look(john, "order", id), failure.ErrNotFound},
		{"load with another workflow's id the other way", look(mary, "leave", anOrder), failure.ErrNotFound},
		{"load an unknown instance", look(john, "leave", "01ARZ3NDEKTSV4RRFFQ69G5FAV"), failure.ErrNotFound},
		{"load a lower-case id", look(john, "leave", strings.ToLower(id)), failure.ErrNotFound},
		{"load something else", look(john, "leave", "x"), failure.ErrNotFound},
		{"an event that only managers may send", send(id, "approve"), failure.ErrForbidden},
		{"an undeclared event", send(id, "nope"), failure.ErrInvalid},
		{"an impossible name", send(id, "a b"), failure.ErrInvalid},
		{"a rejected event", send(id, "refuse"), failure.ErrNotAllowed},
		{"an event whose action fails", send(id, "fail"), failure.ErrExecution},
		{"If-Match with another sequence", back(1, 7), failure.ErrPrecondition},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	if got := events(t, h.MustLook(john, "leave", id)); got != ",submit" {
		t.Errorf("refused requests left a trace: %s", got)
	}
	if err := back(1, 2); err != nil {
		t.Errorf("If-Match with the right sequence: %v", err)
	}
}

// TestARepeatedRequestGetsTheFirstAnswer holds persistence/PROMISES.md, "P6", one
// after the other. An instance keeps its state over sleep and restart.
func TestARepeatedRequestGetsTheFirstAnswer(t *testing.T) {
	h := start(t, workflow.Options{})
	create := func() *message.Create {
		return &message.Create{Caller: john, WorkflowID: "leave", WithHistory: true, Retry: message.Retry{Key: "create", Fingerprint: [32]byte{1}}}
	}
	first, err := h.Create(t.Context(), create())
	h.Must(err)
	id := first.InstanceID
	submitted := h.MustSend(john, "leave", id, "submit", `{"a": 1}`, "k")
	ignored := h.MustSend(john, "leave", id, "drop", "", "d")
	last := h.MustSend(john, "leave", id, "back", `{"a": 2}`)

	check := func(when string) {
		t.Helper()
		for _, c := range []struct {
			what string
			call func() (*message.Reply, error)
			want *message.Reply
		}{
			{"read", func() (*message.Reply, error) { return h.Look(john, "leave", id) }, last},
			{"create", func() (*message.Reply, error) { return h.Create(t.Context(), create()) }, first},
			{"event", func() (*message.Reply, error) { return h.Try(john, "leave", id, "submit", `{"a": 1}`, "k") }, submitted},
			{"ignored event", func() (*message.Reply, error) { return h.Try(john, "leave", id, "drop", "", "d") }, ignored},
		} {
			r, err := c.call()
			if err != nil {
				t.Fatalf("%s %s: %v", c.what, when, err)
			}
			if got, want := string(r.AppendRecord(nil)), string(c.want.AppendRecord(nil)); got != want {
				t.Errorf("%s %s:\n got %s\nwant %s", c.what, when, got, want)
			}
		}
		if _, err := h.Try(john, "leave", id, "submit", `{"a": 2}`, "k"); !errors.Is(err, failure.ErrKeyReused) {
			t.Errorf("same key, other body, %s: got %v", when, err)
		}
		other := create()
		other.Retry.Fingerprint[0] = 2
		if _, err := h.Create(t.Context(), other); !errors.Is(err, failure.ErrKeyReused) {
			t.Errorf("create with same key, other body, %s: got %v", when, err)
		}
	}
	check("at once")
	h.sleepAll()
	check("after sleep")
	h.Restart()
	check("after restart")
	// Keys belong to their caller.
	if got := events(t, h.MustSend(mary, "leave", id, "submit", `{"a": 1}`, "k")); got != ",submit,back,submit" {
		t.Errorf("another caller's same key: %s", got)
	}
}

// TestConcurrentRepeatsAreAppliedOnce holds persistence/PROMISES.md, "P6", for
// repeats that arrive together.
func TestConcurrentRepeatsAreAppliedOnce(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(john, "leave", "")
	var (
		wg      sync.WaitGroup
		answers sync.Map
	)
	for n := range 64 {
		wg.Go(func() {
			r, err := h.Try(john, "leave", id, "note", `{"n": 1}`, "same")
			if err != nil {
				t.Errorf("event %d: %v", n, err)
				return
			}
			answers.Store("event "+string(r.AppendRecord(nil)), true)
			c, err := h.Create(t.Context(), &message.Create{Caller: john, WorkflowID: "leave", Retry: message.Retry{Key: "c"}})
			if err != nil {
				t.Errorf("create %d: %v", n, err)
				return
			}
			answers.Store("create "+string(c.AppendRecord(nil)), true)
		})
	}
	wg.Wait()
	distinct := 0
	answers.Range(func(any, any) bool { distinct++; return true })
	if distinct != 2 {
		t.Errorf("%d different answers, want one for the event and one for the create", distinct)
	}
	if got := events(t, h.MustLook(john, "leave", id)); got != ",note" {
		t.Errorf("history %q, want one note", got)
	}
	if got := len(h.Instances("leave")); got != 2 {
		t.Errorf("%d instances, want 2", got)
	}
}

func TestARecordAboveItsLimitIsRefusedBeforeTheCommit(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(john, "leave", "")
	big := `{"k%d": "` + strings.Repeat("x", 300_000) + `"}`
	var err error
	for n := 0; n < 5 && err == nil; n++ {
		_, err = h.Try(john, "leave", id, "grow", fmt.Sprintf(big, n), "")
	}
	if !errors.Is(err, failure.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	if r := h.MustLook(john, "leave", id); r.Sequence != 4 {
		t.Errorf("sequence %d, want 4: three events fit", r.Sequence)
	}
}

// TestAPanicCostsOneAnswerAndNothingElse holds persistence/PROMISES.md, "P14", for
// a bug of our own.
func TestAPanicCostsOneAnswerAndNothingElse(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(john, "leave", "")
	broken := &message.Event{WorkflowID: "leave"} // no caller: a bug of ours
	if _, err := h.SendUnchecked(h.ID(id), broken); !errors.Is(err, failure.ErrInternal) {
		t.Errorf("got %v, want ErrInternal", err)
	}
	if got := events(t, h.MustSend(john, "leave", id, "submit", "")); got != ",submit" {
		t.Errorf("after the panic: history %s", got)
	}
	var create recipient
	h.CreateFor(&message.Create{WorkflowID: "leave"}, &create)
	if !errors.Is(create.err, failure.ErrInternal) {
		t.Errorf("a create: got %v, want ErrInternal", create.err)
	}
	if m := h.Metrics(); m.Panics != 2 || m.InFlight != 0 {
		t.Errorf("metrics %+v, want two panics and nothing in flight", m)
	}
}

// recipient has the error that it was answered.
type recipient struct {
	message.Recipient
	err error
}

func (r *recipient) Answered(_ *message.Reply, err error) { r.err = err }

// TestDamageStopsTheInstanceAndNotTheOthers holds persistence/PROMISES.md, "P7", for a
// store that lost an entry.
func TestDamageStopsTheInstanceAndNotTheOthers(t *testing.T) {
	h := start(t, workflow.Options{})
	spoilt, gap, good := h.Make(john, "leave", ""), h.Make(john, "leave", ""), h.Make(john, "leave", "")
	for range 3 {
		h.MustSend(john, "leave", gap, "note", "")
	}
	h.sleepAll()
	h.Spoil("leave", spoilt)
	sh := h.Store.ShardOf(h.ID(gap))
	h.Overwrite(sh, key.Entry(nil, sh, h.ID(gap), 2), nil)
	for name, id := range map[string]string{"a record": spoilt, "a history": gap} {
		if _, err := h.Look(john, "leave", id); !errors.Is(err, failure.ErrExecution) {
			t.Errorf("%s: got %v, want ErrExecution", name, err)
		}
	}
	h.MustLook(john, "leave", good)
}

func TestAHistoryTooLongForMemoryIsStillWhole(t *testing.T) {
	h := start(t, workflow.Options{HistoryResidentBytes: 1000})
	id := h.Make(john, "leave", "")
	for n := range 30 {
		want := strings.Repeat(",note", n+1)
		if got := events(t, h.MustSend(john, "leave", id, "note", "")); got != want {
			t.Fatalf("event %d: history %q, want %q", n+1, got, want)
		}
		if got := events(t, h.MustLook(john, "leave", id)); got != want {
			t.Fatalf("read after event %d: history %q, want %q", n+1, got, want)
		}
	}
	e := event(john, "leave", id, "note", "", "")
	e.WithHistory = false
	h.Must(workflowtest.Second(h.Send(t.Context(), e)))
	if r := h.MustLook(john, "leave", id); events(t, r) == "" || r.Sequence != 32 {
		t.Errorf("after an event with a minimal reply: sequence %d, want 32", r.Sequence)
	}
}

// TestLimitsRefuseBeforeTheMailbox holds persistence/PROMISES.md, "P13".
func TestLimitsRefuseBeforeTheMailbox(t *testing.T) {
	h := start(t, workflow.Options{InstanceInFlightMax: 2, InFlightMax: 3})
	id := h.Make(john, "leave", "")
	release := h.Occupy(h.ID(id), 2)
	if _, err := h.Look(john, "leave", id); !errors.Is(err, failure.ErrInstanceBusy) {
		t.Errorf("third call at an instance with room for two: got %v", err)
	}
	release()
	release = h.OccupyAll(3)
	if _, err := h.Create(t.Context(), &message.Create{Caller: john, WorkflowID: "leave"}); !errors.Is(err, failure.ErrBusy) {
		t.Errorf("fourth call at a service with room for three: got %v", err)
	}
	release()
	h.MustLook(john, "leave", id)
}

// TestEventsAreInOrderUnderLoad holds persistence/PROMISES.md, "P7", and of
// persistence/PROMISES.md, "P8", that the events of one sender keep their order. Instances
// are put to sleep all the time, but never one that owes an answer: protoactor would lose
// what waits in its mailbox (persistence/PROMISES.md, "F9").
func TestEventsAreInOrderUnderLoad(t *testing.T) {
	h := start(t, workflow.Options{IdleAfter: time.Nanosecond})
	ids := []string{h.Make(john, "leave", ""), h.Make(john, "leave", "")}
	var wg, sweeps sync.WaitGroup
	var enough atomic.Bool
	sweeps.Go(func() {
		for !enough.Load() {
			h.SweepAfter(time.Hour)
		}
	})
	for g := range 8 {
		wg.Go(func() {
			for n := range 30 {
				h.MustSend(john, "leave", ids[g%2], "note", fmt.Sprintf(`{"g%d": %d}`, g, n))
				h.Make(john, "leave", "")
			}
		})
	}
	wg.Wait()
	enough.Store(true)
	sweeps.Wait()
	for i, id := range ids {
		r := h.MustLook(john, "leave", id)
		if events(t, r); r.Sequence != 121 {
			t.Errorf("sequence %d, want 121", r.Sequence)
		}
		for g := i; g < 8; g += 2 {
			if want := fmt.Sprintf(`"g%d":29`, g); !strings.Contains(string(r.Public), want) {
				t.Errorf("last value of %d is missing in %s", g, r.Public)
			}
		}
	}
}

// TestStopWaitsForTheEndOfQueries: the store is closed after it. New calls are refused.
func TestStopWaitsForTheEndOfQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, workflow.Options{})
		id := h.Make(john, "order", "")
		release, done := make(chan struct{}), make(chan error, 2)
		go func() {
			_, err := h.Query(t.Context(), &query.Request{Caller: john, WorkflowID: "order"}, func([]byte) error { <-release; return nil })
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
		_, loaded := h.Look(john, "order", id)
		_, _, listed := h.list(query.Request{Caller: john, WorkflowID: "order"})
		if !errors.Is(loaded, failure.ErrUnavailable) || !errors.Is(listed, failure.ErrUnavailable) {
			t.Errorf("afterwards: got %v and %v, want ErrUnavailable", loaded, listed)
		}
	})
}
