package watch_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/statemachine/data"
)

func TestAWatcherHearsEachEntryInOrder(t *testing.T) {
	h := start(t, workflow.Options{})
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
	for _, e := range []*ear{all, single, other} {
		e.end()
	}
}

// holdEntries holds what was heard of an instance against its history.
func (h *harness) holdEntries(id string, entries []heard) {
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
	h := start(t, workflow.Options{})
	failed := errors.New("the writer is gone")
	assert.ErrorIs(t, h.Watches.Watch(t.Context(), &watch.Request{Caller: boss, WorkflowID: "stock"}, func(watch.Event) error { return failed }), failed)
}

// TestStopWatchingEndsAllWatches, also that of one who never catches up.
func TestStopWatchingEndsAllWatches(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(boss, "stock", "")
	busy := &ear{t: t, done: make(chan error, 1)}
	ears := []*ear{h.listen(watch.Request{Caller: member}), h.listen(watch.Request{Caller: member, InstanceID: id}), busy}
	told := 0
	busy.done <- h.Watches.Watch(t.Context(), &watch.Request{Caller: member, WorkflowID: "stock"}, func(watch.Event) error {
		if told++; told == 3 {
			h.StopWatching()
		}
		h.MustSend(boss, "stock", id, "set", "") // events go on
		return nil
	})
	h.StopWatching()
	for n, e := range ears {
		assert.NoError(t, e.ended(), "watch %d ended", n)
	}
	for _, req := range []watch.Request{{Caller: member}, {Caller: member, InstanceID: id}} {
		assert.ErrorIs(t, h.watch(req, nil).ended(), failure.ErrUnavailable, "a new watch")
	}
}

// TestAWatcherIsAskedForAgain: rights are those of the moment.
func TestAWatcherIsAskedForAgain(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(boss, "stock", "")
	var now atomic.Pointer[identity.Principal]
	var gone atomic.Bool
	withdrawn := errors.New("withdrawn")
	now.Store(member)
	again := func() (*identity.Principal, error) {
		if gone.Load() {
			return nil, withdrawn
		}
		return now.Load(), nil
	}
	all, one := h.listen(watch.Request{Caller: member, Reauthorize: again}), h.listen(watch.Request{Caller: member, InstanceID: id, Reauthorize: again})
	h.MustSend(boss, "stock", id, "set", `{"secret":true}`)
	all.expect("a member", "2 set")
	one.expect("a member", "2 set")
	now.Store(guest)
	h.MustSend(boss, "stock", id, "set", "")
	h.MustSend(boss, "stock", id, "close", `{"secret":false}`)
	all.expect("who became a guest", "4 close")
	one.expect("who became a guest", "4 close")
	gone.Store(true)
	h.MustSend(boss, "stock", id, "open", "")
	for name, e := range map[string]*ear{"all": all, "one": one} {
		assert.ErrorIs(t, e.ended(), withdrawn, "%s: ended", name)
		if len(e.events) > 0 {
			t.Errorf("%s: heard %s after the right was withdrawn", name, <-e.events)
		}
	}
}

// TestWhatIsAcknowledgedAfterTheOpeningIsHeard: watches open while events are on
// their way, also several at a time.
func TestWhatIsAcknowledgedAfterTheOpeningIsHeard(t *testing.T) {
	h := start(t, workflow.Options{})
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
		all := []*ear{h.watch(every, nil), h.watch(every, nil)}
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
func (h *harness) holdSince(e *ear, ids []string, atOpening map[string]uint64) {
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

// TestTwoWatchesThatOpenWhileTheDiskHangsMissNothing: the feed is there, but a
// commit on its way does not know of it.
func TestTwoWatchesThatOpenWhileTheDiskHangsMissNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, workflow.Options{})
		id := h.Make(boss, "stock", "")
		hanging := h.Disk.Hold()
		var wg sync.WaitGroup
		wg.Go(func() { h.MustSend(boss, "stock", id, "set", "") })
		<-hanging
		var ears []*ear
		for range 3 {
			ears = append(ears, h.watch(watch.Request{Caller: member}, nil))
			synctest.Wait() // it waits for the commit, or is open
		}
		for _, e := range ears {
			if len(e.events) > 0 {
				t.Errorf("heard %s while a commit is on its way that does not know of the feed", <-e.events)
			}
		}
		h.Disk.Release()
		wg.Wait()
		for _, e := range ears {
			e.expect("at first", "open")
		}
		h.MustSend(boss, "stock", id, "close", "")
		for _, e := range ears {
			e.expect("what comes then", "3 close")
		}
		for _, e := range ears {
			e.end()
		}
	})
}

// TestAnEntryWhoseOutcomeIsUnknown is a gap in the stream of all, and read again
// for one instance, as far as it may be seen.
func TestAnEntryWhoseOutcomeIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, workflow.Options{})
		open, hidden := h.Make(boss, "stock", ""), h.Make(boss, "stock", "")
		all, one, secret := h.listen(watch.Request{Caller: member}), h.listen(watch.Request{Caller: guest, InstanceID: open}), h.listen(watch.Request{Caller: guest, InstanceID: hidden})
		hanging := h.Disk.Hold()
		var wg sync.WaitGroup
		for id, body := range map[string]string{open: "", hidden: `{"secret":true}`} {
			wg.Go(func() {
				_, err := h.Try(boss, "stock", id, "close", body, "")
				assert.ErrorIs(t, err, failure.ErrOutcomeUnknown)
			})
		}
		<-hanging
		late := h.watch(watch.Request{Caller: member, WorkflowID: "order"}, nil)
		wg.Wait()
		assert.ErrorIs(t, late.ended(), failure.ErrUnavailable, "a watch while the disk hangs")
		all.expect("while the outcome is not known", "lost", "lost")
		h.Disk.Release()
		clocktest.Advance(2 * time.Second)
		for _, id := range []string{open, hidden} {
			h.MustSend(boss, "stock", id, "side", "")
		}
		synctest.Wait() // all is heard: rights are those of the moment
		h.MustSend(boss, "stock", hidden, "open", `{"secret":false}`)
		all.expect("afterwards", "3 side", "3 side", "4 open")
		one.expect("the one that may be seen", "2 close", "3 side")
		secret.expect("the one that was hidden", "4 open")
		for _, e := range []*ear{all, one, secret} {
			e.end()
		}
	})
}

// TestAWatcherHearsThatThereIsNothing also when others have something to hear.
func TestAWatcherHearsThatThereIsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, workflow.Options{})
		id := h.Make(boss, "stock", "")
		quiet := h.listen(watch.Request{Caller: member, Filter: `{"svcPublic.a":"never"}`})
		loud := h.listen(watch.Request{Caller: member, InstanceID: id})
		quiet.beats.Store(true)
		loud.beats.Store(true)
		begun := time.Now()
		for range 20 {
			clocktest.Advance(3 * time.Second)
			h.MustSend(boss, "stock", id, "set", "")
			loud.expect("an entry every 3 s", fmt.Sprintf("%d set", h.MustLook(boss, "stock", id).Sequence))
		}
		beats := len(quiet.events)
		want := int(time.Since(begun)/heartbeatEvery) - 1
		assert.True(t, beats >= want && beats <= want+1, "%d beats in %s, want one every %s", beats, time.Since(begun), heartbeatEvery)
		loud.expect("when it is quiet", "beat")
		assert.Equal(t, 60*time.Second+heartbeatEvery, time.Since(begun), "the first beat came, %s", heartbeatEvery)
		loud.end()
	})
}
