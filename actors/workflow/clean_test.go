package workflow

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"troupe/actors/failure"
	"troupe/persistence"
)

func TestKeysAreKeptForADayAndAtLeastTheLastSixtyFour(t *testing.T) {
	h := newHouse(t, Options{})
	id := h.create(john, "leave", "")
	key := func(n int) string { return fmt.Sprintf("k%d", n) }
	for n := range 200 {
		h.mustSend(john, "leave", id, "note", "", key(n))
	}
	repeat := func(n int) bool {
		_, err := h.send(john, "leave", id, "note", `{"other": 1}`, key(n))
		return errors.Is(err, failure.ErrKeyReused)
	}
	if !repeat(0) || !repeat(199) {
		t.Fatal("a key of the same day was forgotten")
	}
	h.mu.Lock()
	h.now = h.now.Add(25 * time.Hour)
	h.mu.Unlock()
	h.sleepAll() // what an instance knows about its rows must survive sleep
	for n := range 60 {
		h.mustSend(john, "leave", id, "note", "", key(1000+n))
	}
	rows, err := h.rows(persistence.ReplyPrefix(nil, h.store.ShardOf(mustID(t, id)), mustID(t, id)))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 64 || len(rows) > 200 {
		t.Errorf("%d rows are left of 260, want at least the last 64 and most old ones gone", len(rows))
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
	h := newHouse(t, Options{})
	create := func(key string) *Reply {
		r, err := h.Create(t.Context(), &CreateRequest{Caller: john, WorkflowID: "leave", Retry: Retry{Key: key}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := create("a")
	h.clean()
	if again := create("a"); again.InstanceID != first.InstanceID {
		t.Error("a key of the same day was forgotten")
	}
	h.mu.Lock()
	h.now = h.now.Add(25 * time.Hour)
	h.mu.Unlock()
	h.clean()
	if again := create("a"); again.InstanceID == first.InstanceID {
		t.Error("a key of the day before was not cleaned")
	}
}
