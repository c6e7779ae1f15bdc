package workflow_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/workflow"
)

func TestKeysAreKeptForADayAndAtLeastTheLastSixtyFour(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(john, "leave", "")
	key := func(n int) string { return fmt.Sprintf("k%d", n) }
	for n := range 200 {
		h.MustSend(john, "leave", id, "note", "", key(n))
	}
	repeat := func(n int) bool {
		_, err := h.Try(john, "leave", id, "note", `{"other": 1}`, key(n))
		return errors.Is(err, failure.ErrKeyReused)
	}
	if !repeat(0) || !repeat(199) {
		t.Fatal("a key of the same day was forgotten")
	}
	h.Pass(25 * time.Hour)
	h.sleepAll() // what an instance knows about its rows must survive sleep
	for n := range 60 {
		h.MustSend(john, "leave", id, "note", "", key(1000+n))
	}
	if n, err := h.KeysKept(h.ID(id)); err != nil || n < 64 || n > 200 {
		t.Errorf("%d keys are left of 260, %v, want at least the last 64 and most old ones gone", n, err)
	}
	if repeat(0) {
		t.Error("the oldest key was not forgotten")
	}
	for n := range 60 {
		if !repeat(1000 + n) {
			t.Fatalf("key %d of today was forgotten", n)
		}
	}
}

func TestKeysOfOldCreatesAreCleaned(t *testing.T) {
	h := start(t, workflow.Options{})
	create := func(key string) *message.Reply {
		r, err := h.Create(t.Context(), &message.Create{Caller: john, WorkflowID: "leave", Retry: message.Retry{Key: key}})
		h.Must(err)
		return r
	}
	first := create("a")
	h.Clean()
	if again := create("a"); again.InstanceID != first.InstanceID {
		t.Error("a key of the same day was forgotten")
	}
	h.Pass(25 * time.Hour)
	h.Clean()
	if again := create("a"); again.InstanceID == first.InstanceID {
		t.Error("a key of the day before was not cleaned")
	}
}
