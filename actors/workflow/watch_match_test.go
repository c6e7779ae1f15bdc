package workflow_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// TestSlowFiltersOfWatchesShareTheSlots: however many they are, only so many match at a
// time, and whoever ends does so at once.
func TestSlowFiltersOfWatchesShareTheSlots(t *testing.T) {
	for name, size := range map[string]int{"large": 900_000, "small, with a filter that takes long": 12_000} {
		t.Run(name, func(t *testing.T) {
			h := startOwn(t)
			id := h.Make(boss, "stock", workflowtest.Large(size))
			var ears []*listener
			for range 8 {
				ears = append(ears, h.listen(watch.Request{Caller: member, InstanceID: id, Filter: workflowtest.Slow}))
			}
			for range 20 {
				h.announce(id, "set", "")
			}
			workflowtest.Await(t, "two matches", func() bool { queries, _ := h.queries.Open(); return queries == 2 })
			atOnce := workflowtest.PartOfSlow(t)
			for _, e := range ears[:4] {
				e.end()
			}
			h.own.Stop()
			for _, e := range ears[4:] {
				assert.NoError(t, e.ended(), "Stop")
				if n := len(e.events); n != 0 {
					t.Errorf("heard %s, want nothing", <-e.events)
				}
			}
			assert.True(t, atOnce(), "it took as long as half of a match, want all to end at once")
			n, _ := h.queries.Open()
			assert.Zero(t, n, "slots are still held")
		})
	}
}

// TestALookThatTakesTooLongIsLost: it says neither that the entry matches nor
// that it does not.
func TestALookThatTakesTooLongIsLost(t *testing.T) {
	h := startWatched(t, workflow.Options{QueryTimeMax: 30 * time.Millisecond})
	big, small := h.Make(boss, "stock", workflowtest.Large(900_000)), h.Make(boss, "stock", `{"t":"xy"}`)
	for _, filter := range []string{workflowtest.Slow, `{"$nor":[` + workflowtest.Slow + `,{"svcPublic.a":1}]}`} {
		all := h.listen(watch.Request{Caller: member, Filter: filter})
		one := h.listen(watch.Request{Caller: member, InstanceID: big, Filter: filter})
		n := h.MustSend(boss, "stock", big, "set", "").Sequence
		all.expect("all", "lost")
		one.expect("one", "lost")
		n = max(n, h.MustSend(boss, "stock", small, "set", "").Sequence)
		if filter == workflowtest.Slow {
			all.expect("all", fmt.Sprintf("%d set", n))
		}
		for _, e := range []*listener{all, one} {
			e.end()
		}
	}
}

// TestAWatcherHearsBeatsWhileItWaitsForASlot and the entry after that.
func TestAWatcherHearsBeatsWhileItWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startOwn(t)
		id := h.Make(boss, "stock", workflowtest.Large(16<<10))
		e := h.listen(watch.Request{Caller: member, Filter: `{"svcPublic.a":1}`})
		e.beats.Store(true)
		release := h.holdSlots()
		h.announce(id, "set", `{"a":1}`)
		for range 3 {
			clocktest.Advance(heartbeatEvery)
			e.expect("while another has the slot", "beat")
		}
		release()
		e.expect("after it", "2 set")
		e.end()
	})
}

// holdSlots takes both slots to match with, until release is called: a filter that looks
// at a history waits for it.
func (h *watched) holdSlots() (release func()) {
	h.t.Helper()
	f, err := filter.Parse([]byte(`{"svcHistory.user":"x"}`), filter.Options{})
	h.Must(err)
	held, free := make(chan struct{}), make(chan struct{})
	d := filter.Document{
		Public: workflowtest.Value(`{}`), Private: workflowtest.Value(`{}`), States: workflowtest.Value(`[]`),
		History: func() data.Value { held <- struct{}{}; <-free; return workflowtest.Value(`[]`) },
	}
	for range 2 {
		go func() { _, _ = h.queries.Match(h.t.Context(), boss.ID, f, d) }()
		<-held
	}
	return func() { close(free) }
}

// TestASlowWatcherLosesItsPlace and reads what it missed from the store.
func TestASlowWatcherLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startOwn(t)
		id := h.Make(boss, "stock", "")
		hold := make(chan struct{})
		all := h.watch(watch.Request{Caller: member}, hold)
		one := h.watch(watch.Request{Caller: member, InstanceID: id}, hold)
		filtered := h.watch(watch.Request{Caller: member, InstanceID: id, Filter: `{"svcPublic.a":null}`}, hold)
		for _, e := range []*listener{all, one, filtered} {
			e.expect("at first", "open") // and hangs in yield
		}
		h.announce(id, "set", "")
		h.announce(id, "side", "")
		for range 4096 {
			for _, f := range h.own.Feeds("stock", h.ID(id)) {
				f.Publish(&watch.Item{Gap: true})
			}
		}
		h.announce(id, "close", "")
		close(hold)
		all.expect("all is read from the store", "2 set", "3 side", "4 close")
		all.expect("the gaps that are kept", slices.Repeat([]string{"lost"}, 4095)...)
		synctest.Wait()
		if len(all.events) > 0 {
			t.Errorf("heard %s twice", <-all.events)
		}
		one.expect("one instance is read from the store", "2 set", "3 side", "4 close")
		filtered.expect("with a filter that cannot be", "lost", "4 close")
	})
}

// TestWhatOtherFeedsPushOutIsToldOrFilled also when nothing comes after it.
func TestWhatOtherFeedsPushOutIsToldOrFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startOwn(t)
		h.Publish(workflowtest.Order, stock("stock", 1))
		id := h.Make(boss, "stock", "")
		hold := make(chan struct{})
		one := h.watch(watch.Request{Caller: member, InstanceID: id}, hold)
		filtered := h.watch(watch.Request{Caller: member, InstanceID: id, Filter: `{"svcPublic.a":null}`}, hold)
		all := h.watch(watch.Request{Caller: member}, hold)
		for _, e := range []*listener{one, filtered, all} {
			e.expect("at first", "open") // and hangs in yield
		}
		h.announce(id, "set", "")
		h.announce(id, "close", "")
		other := h.watch(watch.Request{Caller: boss, WorkflowID: "order"}, nil)
		other.expect("of another workflow", "open")
		feed := h.own.Feeds("order", key.ID{})[0]
		feed.Publish(&watch.Item{Gap: true, Entry: make([]byte, 64<<20)}) // all that is kept
		close(hold)
		one.expect("one instance is read from the store", "2 set", "3 close")
		filtered.expect("with a filter that cannot be", "lost")
		all.expect("all is read from the store", "2 set", "3 close")
		h.announce(id, "open", "")
		for _, e := range []*listener{one, filtered, all} {
			e.expect("afterwards", "4 open")
			e.end()
		}
	})
}
