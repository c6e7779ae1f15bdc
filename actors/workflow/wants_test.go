package workflow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/identity"
	"troupe/actors/watch"
	"troupe/persistence/clocktest"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// TestSlowFiltersOfWatchesShareTheSlots: however many they are, only so many look at
// a time, queries of others come in between, and whoever ends does so at once.
func TestSlowFiltersOfWatchesShareTheSlots(t *testing.T) {
	for name, size := range map[string]int{"large": 900_000, "small, with a filter that takes long": 12_000} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, Options{QueriesMax: 2})
			h.publish(leave, order, stock("stock", 1))
			id := h.create(boss, "stock", large(size))
			var ears []*ear
			for range 8 {
				ears = append(ears, h.listen(watch.Request{Caller: member, InstanceID: id, Filter: slow}))
			}
			var sender sync.WaitGroup
			var seen atomic.Bool
			sender.Go(func() { // until two looks are seen, or they may be over before
				most := (8 << 20) / 2 / size // or a watcher is told that it lost some
				for n := 0; n < most && (n < 20 || !seen.Load()); n++ {
					h.mustSend(boss, "stock", id, "set", "", "")
				}
			})
			await(t, "two looks", func() bool { return h.slotsHeld() == 2 })
			seen.Store(true)
			sender.Wait()
			h.query(boss, "order", "")
			if n := h.slotsHeld(); n > 2 {
				t.Errorf("%d slots are held, want 2 at most", n)
			}
			atOnce := partOfSlow(t)
			for _, e := range ears[:4] {
				if err := e.end(); !errors.Is(err, context.Canceled) {
					t.Errorf("a watcher who left: got %v", err)
				}
			}
			h.StopWatching()
			for _, e := range ears[4:] {
				if err := e.ended(); err != nil {
					t.Errorf("StopWatching: got %v, want nil", err)
				}
				if n := len(e.events); n != 0 {
					t.Errorf("heard %s, want nothing", <-e.events)
				}
			}
			if !atOnce() {
				t.Error("it took as long as half of a look, want all to end at once")
			}
			if n := h.slotsHeld(); n != 0 {
				t.Errorf("%d slots are still held", n)
			}
		})
	}
}

// TestALookThatTakesTooLongIsLost: it says neither that the entry matches nor
// that it does not.
func TestALookThatTakesTooLongIsLost(t *testing.T) {
	h := newHouse(t, Options{QueryTimeMax: 30 * time.Millisecond})
	h.publish(leave, order, stock("stock", 1))
	big, small := h.create(boss, "stock", large(900_000)), h.create(boss, "stock", `{"t":"xy"}`)
	for _, filter := range []string{slow, `{"$nor":[` + slow + `,{"svcPublic.a":1}]}`} {
		all := h.listen(watch.Request{Caller: member, Filter: filter})
		one := h.listen(watch.Request{Caller: member, InstanceID: big, Filter: filter})
		n := h.mustSend(boss, "stock", big, "set", "", "").Sequence
		all.expect("all", "lost")
		one.expect("one", "lost")
		n = max(n, h.mustSend(boss, "stock", small, "set", "", "").Sequence)
		if filter == slow {
			all.expect("all", fmt.Sprintf("%d set", n))
		}
		for _, e := range []*ear{all, one} {
			if err := e.end(); !errors.Is(err, context.Canceled) || len(e.events) > 0 {
				t.Errorf("ended with %v, and %d more events", err, len(e.events))
			}
		}
	}
}

// TestAWatcherHearsBeatsWhileItWaitsForASlot and the entry after that.
func TestAWatcherHearsBeatsWhileItWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{QueriesMax: 1})
		h.publish(leave, order, stock("stock", 1))
		id := h.create(boss, "stock", large(16<<10))
		e := h.listen(watch.Request{Caller: member, Filter: `{"svcPublic.a":1}`})
		e.beats.Store(true)
		release := h.holdSlot(boss)
		h.mustSend(boss, "stock", id, "set", `{"a":1}`, "")
		for range 3 {
			clocktest.Advance(heartbeatEvery)
			e.expect("while another has the slot", "beat")
		}
		release()
		e.expect("after it", "2 set")
		if err := e.end(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// holdSlot takes one of the slots to work with, until release is called: a filter
// that looks at a history waits for it.
func (h *house) holdSlot(who *identity.Principal) (release func()) {
	h.t.Helper()
	f, err := filter.Parse([]byte(`{"svcHistory.user":"x"}`), filter.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	held, free := make(chan struct{}), make(chan struct{})
	d := filter.Document{Public: value(`{}`), Private: value(`{}`), States: value(`[]`), History: func() data.Value { close(held); <-free; return value(`[]`) }}
	go func() { _, _ = h.queries.Match(h.t.Context(), who.ID, f, d) }()
	<-held
	return func() { close(free) }
}
