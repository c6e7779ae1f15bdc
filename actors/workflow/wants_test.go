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

	"troupe/persistence/clocktest"
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
				ears = append(ears, h.listen(WatchRequest{Caller: member, InstanceID: id, Filter: slow}))
			}
			var sender sync.WaitGroup
			var seen atomic.Bool
			sender.Go(func() { // until two looks are seen, or they may be over before
				most := feedBytesMax / 2 / size // or a watcher is told that it lost some
				for n := 0; n < most && (n < 20 || !seen.Load()); n++ {
					h.mustSend(boss, "stock", id, "set", "", "")
				}
			})
			await(t, "two looks", func() bool { return h.queries.busy.Held() == 2 })
			seen.Store(true)
			sender.Wait()
			h.query(boss, "order", "")
			if n := h.queries.busy.Held(); n > 2 {
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
			if n := h.queries.count(); n != 0 {
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
		all := h.listen(WatchRequest{Caller: member, Filter: filter})
		one := h.listen(WatchRequest{Caller: member, InstanceID: big, Filter: filter})
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
		id := h.create(boss, "stock", large(lightBytes))
		e := h.listen(WatchRequest{Caller: member, Filter: `{"svcPublic.a":1}`})
		e.beats.Store(true)
		taken := h.slots(boss)
		h.mustSend(boss, "stock", id, "set", `{"a":1}`, "")
		for range 3 {
			clocktest.Advance(beatEvery)
			e.expect("while another has the slot", "beat")
		}
		taken.leave()
		e.expect("after it", "2 set")
		if err := e.end(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
