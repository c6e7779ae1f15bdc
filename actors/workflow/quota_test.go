package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/quota"
	"troupe/actors/workflow"
)

// TestQuotasHoldEachUserToTheirRate, before anything is stored and whatever way a
// request comes, but for those of people at forms.
func TestQuotasHoldEachUserToTheirRate(t *testing.T) {
	h := start(t, workflow.Options{Quotas: quota.Limits{EventsPerSecond: 3, CreatesPerSecond: 2}})
	create := func(who *identity.Principal, key string) error {
		req := &message.Create{Caller: who, WorkflowID: "order"}
		if key != "" {
			req.Retry = message.Retry{Key: key, Fingerprint: [32]byte{1}}
		}
		_, err := h.Create(t.Context(), req)
		return err
	}
	for n, want := range []bool{true, true, false, false} {
		if err := create(john, fmt.Sprint("key", n)); (err == nil) != want || err != nil && !errors.Is(err, failure.ErrQuota) {
			t.Errorf("john's create %d: %v", n+1, err)
		}
	}
	if err := create(john, "key1"); err != nil {
		t.Errorf("one that was done before: %v, want the first answer", err)
	}
	if n := len(h.Instances("order")); n != 2 {
		t.Errorf("%d instances, want the 2 that were answered", n)
	}
	id := h.createForm(mary, "order", form.KindForm)
	send := func(who *identity.Principal) error {
		_, err := h.Try(who, "order", id, "pay", "", "")
		return err
	}
	for n, want := range []bool{true, true, true, false} {
		if err := send(john); (err == nil) != want {
			t.Errorf("john's event %d: %v", n+1, err)
		}
	}
	var over *failure.Error
	if err := send(john); !errors.As(err, &over) || over.Wait <= 0 || over.Wait > time.Second || errors.Is(err, failure.ErrBusy) {
		t.Errorf("john's next: got %v, want a failure.Error with a wait below a second", err)
	}
	if err := send(mary); err != nil {
		t.Errorf("mary, beside john: %v", err)
	}
	person := &message.Submit{Request: form.Request{Caller: john, WorkflowID: "order", InstanceID: id, Event: "approve"}}
	if _, err := h.Submit(t.Context(), person); err != nil {
		t.Errorf("john at a form: %v", err)
	}
	made := formOf(john, "order", form.KindForm)
	made.NoQuota = true
	if _, err := h.Create(t.Context(), made); err != nil {
		t.Errorf("a new form of john's: %v", err)
	}
	if got := h.MustLook(mary, "order", id).Sequence; got != 6 { // created, 3 of john's, mary's, the form's
		t.Errorf("%d entries, want 6: what was refused was not applied", got)
	}
	h.Pass(time.Second)
	if err := errors.Join(create(john, ""), send(john)); err != nil {
		t.Errorf("john a second later: %v", err)
	}
	if n := h.Metrics().OverQuota; n != 4 {
		t.Errorf("%d refusals were counted, want 4", n)
	}
}

// TestAHistoryHasAQuota, which leaves what it has as it is.
func TestAHistoryHasAQuota(t *testing.T) {
	h := start(t, workflow.Options{Quotas: quota.Limits{HistoryEntries: 3}})
	id := h.createForm(john, "leave", form.KindForm)
	h.MustSend(john, "leave", id, "note", "", "key")
	h.MustSend(john, "leave", id, "submit", "")
	h.MustSend(john, "leave", id, "note", "", "key") // gets its first answer
	_, err := h.Try(john, "leave", id, "back", `{"x":1}`, "")
	if !errors.Is(err, failure.ErrQuota) || !strings.Contains(err.Error(), "3 history entries") {
		t.Errorf("a fourth entry: got %v, want ErrQuota", err)
	}
	if over := (*failure.Error)(nil); !errors.As(err, &over) || over.Wait != time.Hour {
		t.Errorf("the wait of a quota that time does not give back: got %+v, want an hour", over)
	}
	h.MustSend(john, "leave", id, "drop", "") // leaves no entry
	person := form.Request{Caller: john, WorkflowID: "leave", InstanceID: id, Event: "back"}
	if _, err := h.Submit(t.Context(), &message.Submit{Request: person}); err != nil {
		t.Errorf("at a form: %v", err)
	}
	if got := events(t, h.MustLook(john, "leave", id)); got != ",note,submit,back" {
		t.Errorf("events: got %q", got)
	}
}
