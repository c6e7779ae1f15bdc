package workflow_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/pending"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
)

// TestAnActorThatPanicsAgainAndAgain: an instance that panics a hundred times in a row answers every caller, its neighbors in the shard
// notice nothing, there is an incident, and it goes on after its rest with all that it had acknowledged. protoactor would have
// stopped it without a word after ten times.
func TestAnActorThatPanicsAgainAndAgain(t *testing.T) {
	h := start(t, workflow.Options{})
	id, neighbor := h.Make(boss, "order", `{"n":1}`), h.Make(boss, "order", `{"n":2}`)
	for h.Store.ShardOf(h.ID(neighbor)) != h.Store.ShardOf(h.ID(id)) {
		neighbor = h.Make(boss, "order", `{"n":2}`)
	}
	const panics = 100
	var internal, resting int
	for n := range panics {
		err := h.Panic("order", id)
		switch {
		case errors.Is(err, failure.ErrInternal):
			internal++
		case errors.Is(err, failure.ErrUnavailable) && failure.Of(err).Wait > 0 && strings.Contains(err.Error(), "rests"):
			resting++
		default:
			t.Fatalf("panic %d was answered %v", n+1, err)
		}
		if n%10 == 0 {
			_, err := h.Look(boss, "order", neighbor)
			require.NoError(t, err, "the neighbor after %d panics", n+1)
		}
	}
	// NB: a caller has its answer before the supervisor has heard of the panic, and can be there again.
	assert.True(t, internal >= 11 && resting != 0, "%d callers were told of a panic and %d of a rest, want at least 11 and 1", internal, resting)
	m := h.Metrics()
	assert.True(t, int(m.Restarts) == internal && m.Rests == 1 && m.DeadLetters == 0, "%v %v %v %v", m.Restarts, m.Rests, m.DeadLetters, internal)
	told := false
	for _, shard := range h.System.Tree().Children {
		for _, b := range shard.Children {
			told = told || b.Kind == "instances" && b.State == "1 resting" && b.Restarts == int64(internal)
		}
	}
	if !told {
		t.Errorf("the tree does not tell: %+v", h.System.Tree())
	}
	workflowtest.Await(t, "the incident", func() bool {
		page, err := h.Waiting.Incidents(t.Context(), &pending.IncidentList{Caller: boss, Limit: 10})
		h.Must(err)
		return len(page.Incidents) == 1 && page.Incidents[0].InstanceID == id && strings.Contains(page.Incidents[0].Error, "11 times within a minute")
	})
	h.Pass(2 * time.Minute)
	reply, err := h.Look(boss, "order", id)
	require.True(t, err == nil && string(reply.Public) == `{"n":1}`, "after its rest: %v", err)
	h.MustSend(boss, "order", id, "approve", `{}`)
}

// TestWhoWaitsAtAnActorThatPanicsIsAnswered: what is in its mailbox is not lost with it.
func TestWhoWaitsAtAnActorThatPanicsIsAnswered(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(boss, "order", `{"n":1}`)
	var all sync.WaitGroup
	answers := make(chan error, 200)
	for range cap(answers) {
		all.Go(func() { answers <- h.Panic("order", id) })
	}
	all.Wait()
	close(answers)
	for err := range answers {
		assert.False(t, !errors.Is(err, failure.ErrInternal) && !errors.Is(err, failure.ErrUnavailable), "a caller was answered %v", err)
	}
	m := h.Metrics()
	assert.True(t, m.DeadLetters == 0 && m.InFlight == 0, "%d dead letters, and %d calls still open", m.DeadLetters, m.InFlight)
}
