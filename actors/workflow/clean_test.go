package workflow_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	require.True(t, repeat(0) && repeat(199), "a key of the same day was forgotten")
	h.Pass(25 * time.Hour)
	h.sleepAll() // what an instance knows about its rows must survive sleep
	for n := range 60 {
		h.MustSend(john, "leave", id, "note", "", key(1000+n))
	}
	n, err := h.KeysKept(h.ID(id))
	assert.True(t, err == nil && n >= 64 && n <= 200, "%d keys are left of 260, %v, want at least the last 64 and most old ones gone", n, err)
	assert.False(t, repeat(0), "the oldest key was not forgotten")
	for n := range 60 {
		require.True(t, repeat(1000+n), "key %d of today was forgotten", n)
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
	assert.Equal(t, first.InstanceID, create("a").InstanceID, "a key of the same day was forgotten")
	h.Pass(25 * time.Hour)
	h.Clean()
	assert.NotEqual(t, first.InstanceID, create("a").InstanceID, "a key of the day before was not cleaned")
}
