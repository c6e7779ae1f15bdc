package workflow

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"troupe/actors/form"
	"troupe/actors/identity"
)

// TestQuotasHoldEachUserToTheirRate, before anything is stored and whatever way a
// request comes, but for those of people at forms.
func TestQuotasHoldEachUserToTheirRate(t *testing.T) {
	h := newHouse(t, Options{Quotas: Quotas{EventsPerSecond: 3, CreatesPerSecond: 2}})
	create := func(who *identity.Principal, key string) error {
		req := &CreateRequest{Caller: who, WorkflowID: "order"}
		if key != "" {
			req.Retry = Retry{Key: key, Fingerprint: [32]byte{1}}
		}
		_, err := h.Create(t.Context(), req)
		return err
	}
	for n, want := range []bool{true, true, false, false} {
		if err := create(john, fmt.Sprint("key", n)); (err == nil) != want || err != nil && !errors.Is(err, ErrQuota) {
			t.Errorf("john's create %d: %v", n+1, err)
		}
	}
	if err := create(john, "key1"); err != nil {
		t.Errorf("one that was done before: %v, want the first answer", err)
	}
	if n := len(h.instances("order")); n != 2 {
		t.Errorf("%d instances, want the 2 that were answered", n)
	}
	id := h.create(mary, "order", "")
	send := func(who *identity.Principal) error {
		_, err := h.send(who, "order", id, "pay", "", "")
		return err
	}
	for n, want := range []bool{true, true, true, false} {
		if err := send(john); (err == nil) != want {
			t.Errorf("john's event %d: %v", n+1, err)
		}
	}
	var over *QuotaError
	if err := send(john); !errors.As(err, &over) || over.Wait <= 0 || over.Wait > time.Second || errors.Is(err, ErrBusy) {
		t.Errorf("john's next: got %v, want a QuotaError with a wait below a second", err)
	}
	if err := send(mary); err != nil {
		t.Errorf("mary, beside john: %v", err)
	}
	person := event(john, "order", id, "pay", "", "")
	person.NoQuota = true
	if _, err := h.Send(t.Context(), person); err != nil {
		t.Errorf("john at a form: %v", err)
	}
	made := formOf(john, "order", form.Plain)
	made.NoQuota = true
	if _, err := h.Create(t.Context(), made); err != nil {
		t.Errorf("a new form of john's: %v", err)
	}
	if got := h.mustLoad(mary, "order", id).Sequence; got != 6 { // created, 3 of john's, mary's, the form's
		t.Errorf("%d entries, want 6: what was refused was not applied", got)
	}
	h.mu.Lock()
	h.now = h.now.Add(time.Second)
	h.mu.Unlock()
	if err := errors.Join(create(john, ""), send(john)); err != nil {
		t.Errorf("john a second later: %v", err)
	}
	if n := h.Metrics().OverQuota; n != 4 {
		t.Errorf("%d refusals were counted, want 4", n)
	}
}

// TestIdleBucketsAreDropped: their number is bounded by who is there now.
func TestIdleBucketsAreDropped(t *testing.T) {
	b, now := newBuckets("event", 0.5), time.Unix(1_700_000_000, 0)
	for n := range 1000 {
		if err := b.take(identity.UserID(fmt.Sprint(n)), now); err != nil {
			t.Fatal(err)
		}
	}
	if b.sweep(now.Add(time.Second)); len(b.byUser) != 1000 {
		t.Errorf("%d buckets are kept that are half full, want 1000", len(b.byUser))
	}
	if err := b.take("7", now.Add(time.Second)); err == nil {
		t.Error("a bucket that is half full gave a token")
	}
	if b.sweep(now.Add(2 * time.Second)); len(b.byUser) != 0 {
		t.Errorf("%d buckets are kept that are full, want none", len(b.byUser))
	}
}

// TestAHistoryHasAQuota, which leaves what it has as it is.
func TestAHistoryHasAQuota(t *testing.T) {
	h := newHouse(t, Options{Quotas: Quotas{HistoryEntries: 3}})
	id := h.create(john, "leave", "")
	h.mustSend(john, "leave", id, "note", "", "key")
	h.mustSend(john, "leave", id, "submit", "", "")
	h.mustSend(john, "leave", id, "note", "", "key") // gets its first answer
	_, err := h.send(john, "leave", id, "back", `{"x":1}`, "")
	if !errors.Is(err, ErrQuota) || !strings.Contains(err.Error(), "3 history entries") {
		t.Errorf("a fourth entry: got %v, want ErrQuota", err)
	}
	if over := (*QuotaError)(nil); !errors.As(err, &over) || over.Wait != time.Hour {
		t.Errorf("the wait of a quota that time does not give back: got %+v, want an hour", over)
	}
	h.mustSend(john, "leave", id, "drop", "", "") // leaves no entry
	person := event(john, "leave", id, "back", "", "")
	person.NoQuota = true
	if _, err := h.Send(t.Context(), person); err != nil {
		t.Errorf("at a form: %v", err)
	}
	if got := events(t, h.mustLoad(john, "leave", id)); got != ",note,submit,back" {
		t.Errorf("events: got %q", got)
	}
}

func TestQuotasThatCannotBe(t *testing.T) {
	for _, q := range []Quotas{{EventsPerSecond: -1}, {CreatesPerSecond: math.NaN()}, {EventsPerSecond: math.Inf(1)}, {HistoryEntries: -1}} {
		if q.Validate() == nil {
			t.Errorf("%+v is taken", q)
		}
	}
	if err := (&Quotas{EventsPerSecond: 0.1, HistoryEntries: 1}).Validate(); err != nil {
		t.Error(err)
	}
}
