package workflow_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/statemachine/data"
)

func TestAWatcherHearsEachEntryInOrder(t *testing.T) {
	h := startWatched(t, workflow.Options{})
	one := h.Make(boss, "stock", `{"a":1}`)
	all, single, other := h.listen(watch.Request{Caller: member}), h.listen(watch.Request{Caller: member, InstanceID: one}), h.listen(watch.Request{Caller: john, WorkflowID: "order"})
	const senders, each = 8, 30
	var wg sync.WaitGroup
	for g := range senders {
		wg.Go(func() {
			id := one
			if g > 0 {
				id = h.Make(boss, "stock", `{"a":2}`)
			}
			for n := range each {
				h.MustSend(boss, "stock", id, []string{"close", "side", "set", "open"}[n%4], "")
			}
		})
	}
	wg.Wait()
	byInstance := map[string][]heard{}
	for range senders*each + senders - 1 {
		e := all.next()
		require.True(t, e.Kind == watch.Entry && e.WorkflowID == "stock", "heard %s of %s, want an entry of stock", e, e.WorkflowID)
		byInstance[e.InstanceID] = append(byInstance[e.InstanceID], e)
	}
	assert.Len(t, byInstance, senders, "heard")
	for id, entries := range byInstance {
		h.holdEntries(id, entries)
	}
	var entries []heard
	for range each {
		entries = append(entries, single.next())
	}
	h.holdEntries(one, entries)
	for n, e := range entries {
		assert.Equal(t, fmt.Sprint(n+2), e.ID, "place of entry %d", n+2)
	}
	for _, e := range []*listener{all, single, other} {
		e.end()
	}
}

// holdEntries holds what was heard of an instance against its history.
func (h *watched) holdEntries(id string, entries []heard) {
	h.t.Helper()
	var history []data.Value
	for _, e := range h.StoredHistory(h.Store, h.ID(id)).Elements() {
		history = append(history, e)
	}
	for _, e := range entries {
		require.True(h.t, e.InstanceID == id && e.Sequence != 0 && int(e.Sequence) <= len(history), "%v %v %v %v", e, e.InstanceID, len(history), id)
		assert.Equal(h.t, string(history[e.Sequence-1]), string(e.Entry), "entry %d", e.Sequence)
		end, _ := e.Entry.Lookup("endState")
		var nodes []string
		for _, s := range data.Value(e.States).Elements() {
			node, _ := s.Lookup("nodeId")
			nodes = append(nodes, string(node))
		}
		got := "[" + strings.Join(nodes, ",") + "]"
		assert.Equal(h.t, string(end), got, "entry %d: states %s, want those", e.Sequence, e.States)
	}
	for n := range entries[1:] {
		assert.Equal(h.t, entries[n].Sequence+1, entries[n+1].Sequence, "after entry %d came", entries[n].Sequence)
	}
	last := entries[len(entries)-1].Sequence
	assert.Equal(h.t, len(history), int(last), "the last entry of %s that was heard is %d", id, last)
	assert.Equal(h.t, string(h.stored(id).Record.States), entries[len(entries)-1].States, "the last states")
}

func TestAWatchEndsWithItsReader(t *testing.T) {
	h := startWatched(t, workflow.Options{})
	failed := errors.New("the writer is gone")
	assert.ErrorIs(t, h.Watches.Watch(t.Context(), &watch.Request{Caller: boss, WorkflowID: "stock"}, func(watch.Event) error { return failed }), failed)
}

// TestStopWatchingEndsAWatch of one who never catches up.
func TestStopWatchingEndsAWatch(t *testing.T) {
	h := startWatched(t, workflow.Options{})
	id := h.Make(boss, "stock", "")
	told := 0
	assert.NoError(t, h.Watches.Watch(t.Context(), &watch.Request{Caller: member, WorkflowID: "stock"}, func(watch.Event) error {
		if told++; told == 3 {
			h.StopWatching()
		}
		h.MustSend(boss, "stock", id, "set", "") // events go on
		return nil
	}))
}

// TestWhatIsAcknowledgedAfterTheOpeningIsHeard: watches open while events are on
// their way, also several at a time.
func TestWhatIsAcknowledgedAfterTheOpeningIsHeard(t *testing.T) {
	h := startWatched(t, workflow.Options{})
	const senders, rounds = 3, 20
	var definitions []string
	for n := range rounds {
		definitions = append(definitions, stock(fmt.Sprintf("stock%d", n), 1))
	}
	h.Publish(definitions...)
	for n := range rounds { // each begins with new feeds
		workflowID := fmt.Sprintf("stock%d", n)
		ids := h.Fill(workflowID, slices.Repeat([]string{"{}"}, senders+1))
		busy, ids := ids[senders], ids[:senders]
		var wg sync.WaitGroup
		var acked [senders]atomic.Uint64 // perhaps one less than what is acknowledged
		var enough atomic.Bool
		for g, id := range ids {
			wg.Go(func() {
				for !enough.Load() {
					acked[g].Store(h.MustSend(boss, workflowID, id, "set", "").Sequence)
				}
			})
		}
		for range 3 { // so that one is on its way when the instance answers
			wg.Go(func() {
				for !enough.Load() {
					h.MustSend(boss, workflowID, busy, "set", "")
				}
			})
		}
		workflowtest.Await(t, "events", func() bool { return acked[0].Load() > 0 && acked[1].Load() > 0 && acked[2].Load() > 0 })
		every := watch.Request{Caller: member, WorkflowID: workflowID}
		all := []*listener{h.watch(every, nil), h.watch(every, nil)}
		every.InstanceID, every.Filter = busy, `{"svcPublic.u":null}` // with a filter, what was missed is lost
		one := h.watch(every, nil)
		opened, atOpening := one.next(), map[string]uint64{}
		for _, e := range all {
			e.expect("at first", "open")
			for g, id := range ids { // the later opening counts: it is the weaker promise
				atOpening[id] = acked[g].Load()
			}
		}
		enough.Store(true)
		wg.Wait()
		place, _ := strconv.ParseUint(opened.ID, 10, 64)
		for n := place + 1; n <= h.MustLook(boss, workflowID, busy).Sequence; n++ {
			one.expect("one instance", fmt.Sprintf("%d set", n))
		}
		for _, id := range ids {
			h.MustSend(boss, workflowID, id, "close", "")
		}
		for _, e := range all {
			h.holdSince(e, ids, atOpening)
		}
		for _, e := range append(all, one) {
			e.stop()
		}
	}
}

// holdSince listens until each instance is closed, and holds that no entry was
// missed since the opening.
func (h *watched) holdSince(e *listener, ids []string, atOpening map[string]uint64) {
	h.t.Helper()
	last := map[string]uint64{}
	for closed := 0; closed < len(ids); {
		got := e.next()
		switch before, ok := last[got.InstanceID]; {
		case got.Kind == watch.Entry && !slices.Contains(ids, got.InstanceID):
		case got.Kind != watch.Entry:
			h.t.Fatalf("heard %s", got)
		case ok && got.Sequence != before+1:
			h.t.Errorf("after entry %d came %d", before, got.Sequence)
		case !ok && got.Sequence > atOpening[got.InstanceID]+2:
			h.t.Errorf("%d was acknowledged at the opening, the first entry that was heard is %d", atOpening[got.InstanceID], got.Sequence)
		}
		last[got.InstanceID] = got.Sequence
		if strings.HasSuffix(got.String(), "close") {
			closed++
		}
	}
}
