package workflow

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"troupe/actors/watch"
	"troupe/persistence"
)

// TestWhatOtherFeedsPushOutIsToldOrFilled also when nothing comes after it.
func TestWhatOtherFeedsPushOutIsToldOrFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.publish(leave, order, stock("stock", 1))
		id := h.create(boss, "stock", "")
		hold := make(chan struct{})
		one := h.watch(watch.Request{Caller: member, InstanceID: id}, hold)
		filtered := h.watch(watch.Request{Caller: member, InstanceID: id, Filter: `{"svcPublic.a":null}`}, hold)
		all := h.watch(watch.Request{Caller: member}, hold)
		for _, e := range []*ear{one, filtered, all} {
			e.expect("at first", "open") // and hangs in yield
		}
		h.mustSend(boss, "stock", id, "set", "", "")
		h.mustSend(boss, "stock", id, "close", "", "")
		other := h.watch(watch.Request{Caller: boss, WorkflowID: "order"}, nil)
		other.expect("of another workflow", "open")
		feed := h.watches.Feeds("order", persistence.ID{})[0]
		feed.Publish(&watch.Item{Gap: true, Entry: make([]byte, 64<<20)}) // all that is kept
		close(hold)
		one.expect("one instance is read from the store", "2 set", "3 close")
		filtered.expect("with a filter that cannot be", "lost")
		all.expect("all", "lost")
		h.mustSend(boss, "stock", id, "open", "", "")
		for _, e := range []*ear{one, filtered, all} {
			e.expect("afterwards", "4 open")
			if err := e.end(); !errors.Is(err, context.Canceled) || len(e.events) > 0 {
				t.Errorf("ended with %v and %d more events", err, len(e.events))
			}
		}
	})
}
