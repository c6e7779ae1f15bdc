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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
)

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
			if !assert.NoError(t, err, "event %d", n) {
				return
			}
			answers.Store("event "+string(r.AppendRecord(nil)), true)
			c, err := h.Create(t.Context(), &message.Create{Caller: john, WorkflowID: "leave", Retry: message.Retry{Key: "c"}})
			if !assert.NoError(t, err, "create %d", n) {
				return
			}
			answers.Store("create "+string(c.AppendRecord(nil)), true)
		})
	}
	wg.Wait()
	distinct := 0
	answers.Range(func(any, any) bool { distinct++; return true })
	assert.Equal(t, 2, distinct, "different answers, want one for the event and one for the create")
	assert.Equal(t, ",note", events(t, h.MustLook(john, "leave", id)), "history")
	assert.Len(t, h.Instances("leave"), 2, "instances, want 2")
}

// TestAPanicCostsOneAnswerAndNothingElse holds persistence/PROMISES.md, "P14", for
// a bug of our own.
func TestAPanicCostsOneAnswerAndNothingElse(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(john, "leave", "")
	broken := &message.Event{WorkflowID: "leave"} // no caller: a bug of ours
	_, err := h.SendUnchecked(h.ID(id), broken)
	assert.ErrorIs(t, err, failure.ErrInternal)
	assert.Equal(t, ",submit", events(t, h.MustSend(john, "leave", id, "submit", "")), "after the panic: history")
	var create recipient
	h.CreateFor(&message.Create{WorkflowID: "leave"}, &create)
	assert.ErrorIs(t, create.err, failure.ErrInternal, "a create")
	m := h.Metrics()
	assert.True(t, m.Panics == 2 && m.InFlight == 0, "metrics %+v, want two panics and nothing in flight", m)
}

// recipient has the error that it was answered.
type recipient struct {
	message.Recipient
	err error
}

func (r *recipient) Answered(_ *message.Reply, err error) { r.err = err }

func TestAHistoryTooLongForMemoryIsStillWhole(t *testing.T) {
	h := start(t, workflow.Options{HistoryResidentBytes: 1000})
	id := h.Make(john, "leave", "")
	for n := range 30 {
		want := strings.Repeat(",note", n+1)
		require.Equal(t, want, events(t, h.MustSend(john, "leave", id, "note", "")), "event %d: history", n+1)
		require.Equal(t, want, events(t, h.MustLook(john, "leave", id)), "read after event %d: history", n+1)
	}
	e := event(john, "leave", id, "note", "", "")
	e.WithHistory = false
	h.Must(workflowtest.Second(h.Send(t.Context(), e)))
	r := h.MustLook(john, "leave", id)
	assert.True(t, events(t, r) != "" && r.Sequence == 32, "after an event with a minimal reply: sequence %d, want 32", r.Sequence)
}

// TestLimitsRefuseBeforeTheMailbox holds persistence/PROMISES.md, "P13".
func TestLimitsRefuseBeforeTheMailbox(t *testing.T) {
	h := start(t, workflow.Options{InstanceInFlightMax: 2, InFlightMax: 3})
	id := h.Make(john, "leave", "")
	release := h.Occupy(h.ID(id), 2)
	_, err := h.Look(john, "leave", id)
	assert.ErrorIs(t, err, failure.ErrInstanceBusy, "third call at an instance with room for two")
	release()
	release = h.OccupyAll(3)
	_, err = h.Create(t.Context(), &message.Create{Caller: john, WorkflowID: "leave"})
	assert.ErrorIs(t, err, failure.ErrBusy, "fourth call at a service with room for three")
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
			assert.Contains(t, string(r.Public), fmt.Sprintf(`"g%d":29`, g), "last value of %d is missing", g)
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
			_, err := h.Queries.Query(t.Context(), &query.Request{Caller: john, WorkflowID: "order"}, func([]byte) error { <-release; return nil })
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, h.Stop(ctx), context.DeadlineExceeded, "while a query hangs")
		close(release)
		assert.NoError(t, h.Stop(t.Context()), "when it has ended")
		assert.Len(t, done, 1, "Stop has returned before the query")
		_, loaded := h.Look(john, "order", id)
		_, _, listed := h.list(query.Request{Caller: john, WorkflowID: "order"})
		assert.True(t, errors.Is(loaded, failure.ErrUnavailable) && errors.Is(listed, failure.ErrUnavailable), "%v %v", loaded, listed)
	})
}
