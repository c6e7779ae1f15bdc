package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
		err := create(john, fmt.Sprint("key", n))
		assert.True(t, (err == nil) == want && (err == nil || errors.Is(err, failure.ErrQuota)), "john's create %d: %v", n+1, err)
	}
	assert.NoError(t, create(john, "key1"), "one that was done before")
	assert.Len(t, h.Instances("order"), 2, "instances, want the 2 that were answered")
	id := h.createForm(mary, "order", form.KindForm)
	send := func(who *identity.Principal) error {
		_, err := h.Try(who, "order", id, "pay", "", "")
		return err
	}
	for n, want := range []bool{true, true, true, false} {
		err := send(john)
		assert.Equal(t, want, err == nil, "john's event %d: %v", n+1, err)
	}
	var over *failure.Error
	err := send(john)
	assert.True(t, errors.As(err, &over) && over.Wait > 0 && over.Wait <= time.Second && !errors.Is(err, failure.ErrBusy), err)
	assert.NoError(t, send(mary), "mary, beside john")
	person := &message.Submit{Request: form.Request{Caller: john, WorkflowID: "order", InstanceID: id, Event: "approve"}}
	_, err = h.Submit(person)
	assert.NoError(t, err, "john at a form")
	made := formOf(john, "order", form.KindForm)
	made.NoQuota = true
	_, err = h.Create(t.Context(), made)
	assert.NoError(t, err, "a new form of john's")
	if got := h.MustLook(mary, "order", id).Sequence; got != 6 { // created, 3 of john's, mary's, the form's
		t.Errorf("%d entries, want 6: what was refused was not applied", got)
	}
	h.Pass(time.Second)
	assert.NoError(t, errors.Join(create(john, ""), send(john)), "john a second later")
	assert.Equal(t, int64(4), h.Metrics().OverQuota, "refusals were counted, want 4")
}

// TestAHistoryHasAQuota, which leaves what it has as it is.
func TestAHistoryHasAQuota(t *testing.T) {
	h := start(t, workflow.Options{Quotas: quota.Limits{HistoryEntries: 3}})
	id := h.createForm(john, "leave", form.KindForm)
	h.MustSend(john, "leave", id, "note", "", "key")
	h.MustSend(john, "leave", id, "submit", "")
	h.MustSend(john, "leave", id, "note", "", "key") // gets its first answer
	_, err := h.Try(john, "leave", id, "back", `{"x":1}`, "")
	assert.True(t, errors.Is(err, failure.ErrQuota) && strings.Contains(err.Error(), "3 history entries"), "a fourth entry: got %v, want ErrQuota", err)
	over := (*failure.Error)(nil)
	assert.True(t, errors.As(err, &over) && over.Wait == time.Hour, "the wait of a quota that time does not give back: got %+v, want an hour", over)
	h.MustSend(john, "leave", id, "drop", "") // leaves no entry
	person := form.Request{Caller: john, WorkflowID: "leave", InstanceID: id, Event: "back"}
	_, err = h.Submit(&message.Submit{Request: person})
	assert.NoError(t, err, "at a form")
	assert.Equal(t, ",note,submit,back", events(t, h.MustLook(john, "leave", id)), "events")
}
