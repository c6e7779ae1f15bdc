package workflow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// TestNoReplyShowsWhatACrashCouldTakeBack holds persistence/PROMISES.md, "P10":
// while the fsync behind an event hangs, no request that would show the event is
// answered. The control is a read of the store itself, which does show it
// (persistence/PROMISES.md, "F5").
func TestNoReplyShowsWhatACrashCouldTakeBack(t *testing.T) {
	disk := storetest.NewDisk()
	h := newHouseOn(t, disk, Options{})
	id := h.create(john, "leave", "")
	hanging := disk.Hold()
	answers := make(chan string, 10)
	var readers sync.WaitGroup
	ask := func(what string, call func() error) {
		readers.Go(func() {
			if err := call(); err != nil {
				what += ": " + err.Error()
			}
			answers <- what
		})
	}
	ask("the event itself", func() error { _, err := h.send(john, "leave", id, "submit", "", "k"); return err })
	<-hanging
	await(t, "the store to show the event: a dirty read is possible", func() bool { return storedSequence(t, h.store, id) == 2 })
	ask("a read", func() error { _, err := h.load(john, "leave", id); return err })
	ask("the repeated event", func() error { _, err := h.send(john, "leave", id, "submit", "", "k"); return err })
	ask("an event that is ignored", func() error { _, err := h.send(john, "leave", id, "drop", "", ""); return err })
	ask("a query", func() error {
		_, err := h.Query(t.Context(), &query.Request{Caller: john, WorkflowID: "leave"}, func([]byte) error { answers <- "a row of the query"; return nil })
		return err
	})
	select {
	case what := <-answers:
		t.Errorf("%s was answered while the fsync hung", what)
	case <-time.After(300 * time.Millisecond):
	}
	crashed := disk.AfterCrash()
	disk.Release()
	readers.Wait()
	close(answers)
	count := 0
	for what := range answers {
		if count++; len(what) > 30 {
			t.Errorf("after the fsync: %s", what)
		}
	}
	if count != 6 {
		t.Errorf("%d answers, want 6", count)
	}
	store, err := crashed.Open(persistence.Options{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if got := storedSequence(t, store, id); got != 1 {
		t.Errorf("the crash left sequence %d, want 1: it did not take the event back, so this test showed nothing", got)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestNoListShowsWhatACrashCouldTakeBack is the same for what came later: lists
// by an index, pages, counts, events, histories and watches.
func TestNoListShowsWhatACrashCouldTakeBack(t *testing.T) {
	disk := storetest.NewDisk()
	h := newHouseOn(t, disk, Options{QueriesMax: 20, QueryWaitMax: 20 * time.Second})
	h.publish(leave, order, stock("stock", 1, "svcPublic.a"))
	id := h.create(boss, "stock", `{"a":"old"}`)
	h.fill("stock", slices.Repeat([]string{`{"a":"other"}`}, 20))
	h.awaitIndexes()
	answers := make(chan string, 100)
	var readers sync.WaitGroup
	ask := func(what string, call func() error) {
		readers.Go(func() {
			if err := call(); err != nil {
				what += ": " + err.Error()
			}
			answers <- what
		})
	}
	list := func(what string, req query.Request) {
		req.Caller, req.WorkflowID = boss, "stock"
		ask(what, func() error {
			_, err := h.Query(t.Context(), &req, func([]byte) error { answers <- what + ": a row"; return nil })
			return err
		})
	}
	watches, over := context.WithCancel(t.Context())
	watching := func(what string, req watch.Request) {
		req.Caller, req.WorkflowID = boss, "stock"
		opened := make(chan struct{})
		readers.Go(func() {
			_ = h.Watch(watches, &req, func(e watch.Event) error {
				switch e.Kind {
				case watch.Opened:
					close(opened)
				case watch.Heartbeat: // on a slow machine
				default:
					answers <- what
				}
				return nil
			})
		})
		<-opened
	}
	watching("a watch of all", watch.Request{})
	watching("a watch of one", watch.Request{InstanceID: id})
	watching("a watch with a filter", watch.Request{Filter: `{"svcPublic.a":"new"}`})
	hanging := disk.Hold()
	ask("the event itself", func() error { _, err := h.send(boss, "stock", id, "close", `{"a":"new"}`, ""); return err })
	<-hanging
	await(t, "the store to show the event: a dirty read is possible", func() bool { // NB: the log is synced before that
		row := h.instances("stock")[0]
		return row.name == id && strings.Contains(string(row.record.Public), "new")
	})
	list("by an index", query.Request{Filter: `{"svcPublic.a":"new"}`})
	list("what is no longer there", query.Request{Filter: `{"svcPublic.a":"old"}`})
	list("by node", query.Request{Filter: `{"states.nodeId":"closed"}`})
	list("by id", query.Request{Filter: `{"_id":"` + id + `"}`, Fields: []string{"svcHistory"}})
	list("sorted", query.Request{Sort: "svcPublic.a", Limit: 1, Count: true, Explain: true})
	list("sorted in memory", query.Request{Filter: `{"svcPublic.a":"new"}`, Sort: "-svcPublic.a", Limit: 5})
	list("a count", query.Request{Filter: `{"svcPublic.a":"nothing"}`, Limit: 1, Count: true})
	look := &LoadRequest{Caller: boss, WorkflowID: "stock", InstanceID: id}
	ask("the events", func() error { _, err := h.Events(t.Context(), look); return err })
	ask("a history", func() error {
		_, err := h.History(t.Context(), &HistoryRequest{Caller: boss, WorkflowID: "stock", InstanceID: id, Limit: 10})
		return err
	})
	select {
	case what := <-answers:
		t.Errorf("%s was answered while the fsync hung", what)
	case <-time.After(300 * time.Millisecond):
	}
	disk.Release()
	const calls, rows, heard = 10, 5, 3
	await(t, "all answers", func() bool { return len(answers) >= calls+rows+heard })
	for range calls + rows + heard {
		if what := <-answers; strings.Contains(what, "unavailable") || strings.Contains(what, "unknown") {
			t.Errorf("after the fsync: %s", what)
		}
	}
	over()
	readers.Wait()
	if len(answers) > 0 {
		t.Errorf("%d answers too many, the first is %q", len(answers), <-answers)
	}
}

func storedSequence(t *testing.T, store *persistence.Store, id string) uint64 {
	t.Helper()
	key := mustID(t, id)
	value, err := store.Load(persistence.RecordKey(nil, store.ShardOf(key), "leave", key))
	if err != nil {
		t.Fatal(err)
	}
	record, err := statemachine.ParseRecord(value)
	if err != nil {
		t.Fatal(err)
	}
	return record.Sequence
}

// TestAFullDiskRefusesAndLosesNothing: what the store refuses was never there,
// also when the actor had already made its step.
func TestAFullDiskRefusesAndLosesNothing(t *testing.T) {
	disk := storetest.NewDisk()
	h := newHouseOn(t, disk, Options{})
	id := h.create(john, "leave", "")
	disk.SetFree(0)
	storetest.AwaitAccepting(t, h.store, false)
	if _, err := h.send(john, "leave", id, "note", "", ""); !errors.Is(err, failure.ErrUnavailable) {
		t.Errorf("on a full disk: got %v, want ErrUnavailable", err)
	}
	// A call that was admitted just before meets the refusal inside the actor.
	e, _ := h.awake.Load(mustID(t, id))
	for range 3 {
		if err := e.acquire(); err != nil {
			t.Fatal(err)
		}
		h.inFlight.Add(1)
		if _, err := h.wait(h.Router.send(e, sendEvent{EventRequest: event(john, "leave", id, "note", "", "")})); !errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("inside the actor: got %v, want ErrUnavailable", err)
		}
	}
	disk.SetFree(1 << 40)
	storetest.AwaitAccepting(t, h.store, true)
	if got := events(t, h.mustSend(john, "leave", id, "submit", "", "")); got != ",submit" {
		t.Errorf("after the disk had space again: history %q, want only what was acknowledged", got)
	}
	h.restart()
	if got := events(t, h.mustLoad(john, "leave", id)); got != ",submit" {
		t.Errorf("after a restart: history %q", got)
	}
}

// TestAnUnknownOutcomeKeepsAwakeUntilItIsKnown, and no longer.
func TestAnUnknownOutcomeKeepsAwakeUntilItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storetest.NewDisk()
		h := newHouseOn(t, disk, Options{IdleAfter: 2 * sweepEvery})
		id := h.create(john, "order", "")
		hanging := disk.Hold()
		done := make(chan error, 1)
		go func() {
			_, err := h.send(john, "order", id, "pay", "", "")
			done <- err
		}()
		<-hanging
		if err := <-done; !errors.Is(err, failure.ErrOutcomeUnknown) {
			t.Fatalf("got %v, want ErrOutcomeUnknown", err)
		}
		clocktest.Advance(3 * commitWaitMax) // until whoever asks about the outcome has not been told either
		if n := h.Metrics().Awake; n != 1 {
			t.Errorf("%d instances are awake while the outcome is unknown, want 1: the store may not have it", n)
		}
		disk.Release()
		clocktest.Advance(10 * sweepEvery)
		if n := h.Metrics().Awake; n != 0 {
			t.Errorf("%d instances are awake after the outcome was known, want none", n)
		}
		if got := events(t, h.mustLoad(john, "order", id)); got != ",pay" {
			t.Errorf("events: got %q", got)
		}
	})
}
