package workflow

import (
	"bytes"
	"context"
	"encoding/json"
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

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/watch"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/storetest"
	"troupe/statemachine/data"
)

// heard is one event as a watcher got it.
type heard struct {
	watch.Event
	WorkflowID string     `json:"workflowId"`
	InstanceID string     `json:"instanceId"`
	Sequence   uint64     `json:"sequence"`
	Entry      data.Value `json:"-"`
	States     string     `json:"-"`
}

func (e heard) String() string {
	switch e.Kind {
	case watch.Opened:
		return "open"
	case watch.Lost:
		return "lost"
	case watch.Heartbeat:
		return "beat"
	}
	name, _ := e.Entry.Lookup("transitionEvent")
	return fmt.Sprintf("%d %s", e.Sequence, name.Text())
}

// ear is one call of Watch.
type ear struct {
	t      *testing.T
	events chan heard
	done   chan error
	stop   context.CancelFunc
	// hold, when it is not nil, is waited for before each event is taken.
	hold chan struct{}
	// beats says that beats are heard, too. On a slow machine they come at any time.
	beats atomic.Bool
}

// listen calls Watch, and returns when the stream is open.
func (h *house) listen(req watch.Request) *ear {
	h.t.Helper()
	e := h.watch(req, nil)
	if got := e.next(); got.Kind != watch.Opened {
		h.t.Fatalf("the first event is %s, want open", got)
	}
	return e
}

func (h *house) watch(req watch.Request, hold chan struct{}) *ear {
	ctx, cancel := context.WithCancel(h.t.Context())
	e := &ear{t: h.t, events: make(chan heard, 20_000), done: make(chan error, 1), stop: cancel, hold: hold}
	if req.WorkflowID == "" {
		req.WorkflowID = "stock"
	}
	router := h.Router
	go func() { e.done <- router.Watch(ctx, &req, e.take) }()
	h.t.Cleanup(cancel)
	return e
}

func (e *ear) take(event watch.Event) error {
	if event.Kind == watch.Heartbeat && !e.beats.Load() {
		return nil
	}
	got := heard{Event: event}
	got.Data = bytes.Clone(event.Data)
	if event.Kind == watch.Entry {
		if err := json.Unmarshal(event.Data, &got); err != nil {
			e.t.Errorf("data %s: %v", event.Data, err)
		}
		entry, _ := data.Value(got.Data).Lookup("entry")
		states, _ := data.Value(got.Data).Lookup("states")
		got.Entry, got.States = entry, string(states)
	}
	e.events <- got
	if e.hold != nil {
		<-e.hold
	}
	return nil
}

// next is the next event.
func (e *ear) next() heard {
	e.t.Helper()
	select {
	case got := <-e.events:
		return got
	case err := <-e.done:
		e.t.Fatalf("the watch has ended: %v", err)
	case <-time.After(20 * time.Second):
		e.t.Fatal("nothing is heard")
	}
	return heard{}
}

// until collects what is heard up to an event that reads like last.
func (e *ear) until(last string) (texts []string) {
	e.t.Helper()
	for {
		texts = append(texts, e.next().String())
		if texts[len(texts)-1] == last {
			return texts
		}
	}
}

// expect holds the next events against their texts.
func (e *ear) expect(what string, want ...string) (all []heard) {
	e.t.Helper()
	for n, text := range want {
		got := e.next()
		if got.String() != text {
			e.t.Fatalf("%s: event %d is %q, want %q of %q", what, n, got, text, want)
		}
		all = append(all, got)
	}
	return all
}

// end ends the watch and returns what it returned.
func (e *ear) end() error {
	e.t.Helper()
	e.stop()
	return e.ended()
}

func (e *ear) ended() error {
	e.t.Helper()
	select {
	case err := <-e.done:
		return err
	case <-time.After(20 * time.Second):
		e.t.Fatal("the watch does not end")
	}
	return nil
}

func newStockHouse(t *testing.T) *house {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1))
	return h
}

func TestAWatcherHearsEachEntryInOrder(t *testing.T) {
	h := newStockHouse(t)
	one := h.create(boss, "stock", `{"a":1}`)
	all, single, other := h.listen(watch.Request{Caller: member}), h.listen(watch.Request{Caller: member, InstanceID: one}), h.listen(watch.Request{Caller: john, WorkflowID: "order"})
	const senders, each = 8, 30
	var wg sync.WaitGroup
	for g := range senders {
		wg.Go(func() {
			id := one
			if g > 0 {
				id = h.create(boss, "stock", `{"a":2}`)
			}
			for n := range each {
				h.mustSend(boss, "stock", id, []string{"close", "side", "set", "open"}[n%4], "", "")
			}
		})
	}
	wg.Wait()
	byInstance := map[string][]heard{}
	for range senders*each + senders - 1 {
		e := all.next()
		if e.Kind != watch.Entry || e.WorkflowID != "stock" {
			t.Fatalf("heard %s of %s, want an entry of stock", e, e.WorkflowID)
		}
		byInstance[e.InstanceID] = append(byInstance[e.InstanceID], e)
	}
	if len(byInstance) != senders {
		t.Errorf("heard of %d instances, want %d", len(byInstance), senders)
	}
	for id, entries := range byInstance {
		h.holdEntries(id, entries)
	}
	var entries []heard
	for range each {
		entries = append(entries, single.next())
	}
	h.holdEntries(one, entries)
	for n, e := range entries {
		if e.ID != fmt.Sprint(n+2) {
			t.Errorf("place of entry %d: got %s, want its sequence", n+2, e.ID)
		}
	}
	for name, e := range map[string]*ear{"workflow": all, "instance": single, "other": other} {
		if err := e.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: ended with %v, want context.Canceled", name, err)
		}
		if len(e.events) > 0 {
			t.Errorf("%s heard %d events too many, the first is %s", name, len(e.events), <-e.events)
		}
	}
}

// holdEntries holds what was heard of an instance against its history.
func (h *house) holdEntries(id string, entries []heard) {
	h.t.Helper()
	var history []data.Value
	for _, e := range h.storedHistory(h.store, mustID(h.t, id)).Elements() {
		history = append(history, e)
	}
	for _, e := range entries {
		if e.InstanceID != id || e.Sequence == 0 || int(e.Sequence) > len(history) {
			h.t.Fatalf("heard %s of %s, want one of %d entries of %s", e, e.InstanceID, len(history), id)
		}
		if string(e.Entry) != string(history[e.Sequence-1]) {
			h.t.Errorf("entry %d: got %s, want %s", e.Sequence, e.Entry, history[e.Sequence-1])
		}
		end, _ := e.Entry.Lookup("endState")
		var nodes []string
		for _, s := range data.Value(e.States).Elements() {
			node, _ := s.Lookup("nodeId")
			nodes = append(nodes, string(node))
		}
		if got := "[" + strings.Join(nodes, ",") + "]"; got != string(end) {
			h.t.Errorf("entry %d: states %s, want those of %s", e.Sequence, e.States, end)
		}
	}
	for n := range entries[1:] {
		if entries[n+1].Sequence != entries[n].Sequence+1 {
			h.t.Errorf("after entry %d came %d", entries[n].Sequence, entries[n+1].Sequence)
		}
	}
	if last := entries[len(entries)-1].Sequence; int(last) != len(history) {
		h.t.Errorf("the last entry of %s that was heard is %d of %d", id, last, len(history))
	}
	if states := h.instance(id); states != entries[len(entries)-1].States {
		h.t.Errorf("the last states are %s, want %s", entries[len(entries)-1].States, states)
	}
}

func (h *house) instance(id string) (states string) {
	for _, s := range h.instances("stock") {
		if s.name == id {
			return string(s.record.States)
		}
	}
	return ""
}

func TestAWatcherHearsOnlyWhatItMaySee(t *testing.T) {
	h := newStockHouse(t)
	id := h.create(boss, "stock", "")
	ears := map[string]*ear{
		"all": h.listen(watch.Request{Caller: guest}), "one": h.listen(watch.Request{Caller: guest, InstanceID: id}),
		"members": h.listen(watch.Request{Caller: member}),
	}
	h.mustSend(boss, "stock", id, "set", "", "")
	h.mustSend(boss, "stock", id, "close", `{"secret":true}`, "") // hidden as this leaves it
	h.mustSend(boss, "stock", id, "set", "", "")
	h.mustSend(boss, "stock", id, "open", `{"secret":false}`, "")
	h.create(boss, "stock", `{"secret":true}`)
	h.mustSend(boss, "stock", id, "side", "", "")
	for _, name := range []string{"all", "one"} {
		ears[name].expect(name, "2 set", "5 open", "6 side")
	}
	ears["members"].expect("members", "2 set", "3 close", "4 set", "5 open", "1 ", "6 side")
}

func TestAWatchIsRefused(t *testing.T) {
	h := newStockHouse(t)
	id, hidden := h.create(boss, "stock", ""), h.create(boss, "stock", `{"secret":true}`)
	for _, c := range []struct {
		name string
		req  watch.Request
		want error
	}{
		{"no right to the workflow", watch.Request{Caller: eve}, failure.ErrForbidden},
		{"no right to the workflow, one instance", watch.Request{Caller: eve, InstanceID: id}, failure.ErrForbidden},
		{"no right to the workflow, an unknown instance", watch.Request{Caller: eve, InstanceID: "x"}, failure.ErrForbidden},
		{"an unknown workflow", watch.Request{Caller: boss, WorkflowID: "nope"}, failure.ErrNotFound},
		{"a hidden instance", watch.Request{Caller: guest, InstanceID: hidden}, failure.ErrNotFound},
		{"an unknown instance", watch.Request{Caller: guest, InstanceID: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, failure.ErrNotFound},
		{"no instance", watch.Request{Caller: guest, InstanceID: "x"}, failure.ErrNotFound},
		{"another workflow's instance", watch.Request{Caller: john, WorkflowID: "order", InstanceID: id}, failure.ErrNotFound},
		{"a filter that is no filter", watch.Request{Caller: boss, Filter: "{"}, failure.ErrInvalid},
		{"a filter on the history", watch.Request{Caller: boss, Filter: `{"svcHistory.user":"x"}`}, failure.ErrInvalid},
		{"a filter on private data", watch.Request{Caller: member, Filter: `{"svcPrivate.p":1}`}, failure.ErrInvalid},
	} {
		if err := h.watch(c.req, nil).ended(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if n := h.feeds("stock"); n != 0 {
		t.Errorf("refused watches left %d feeds", n)
	}
	failed := errors.New("the writer is gone")
	if err := h.Watch(t.Context(), &watch.Request{Caller: boss, WorkflowID: "stock"}, func(watch.Event) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v, want the error of yield", err)
	}
}

func TestAWatchHasAFilter(t *testing.T) {
	h := newStockHouse(t)
	id := h.create(boss, "stock", "")
	byData := h.listen(watch.Request{Caller: member, Filter: `{"svcPublic.a":{"$gte":2}}`})
	byNode := h.listen(watch.Request{Caller: member, InstanceID: id, Filter: `{"states":{"$elemMatch":{"stateMachineId":"main","nodeId":"closed"}}}`})
	byPrivate := h.listen(watch.Request{Caller: boss, Filter: `{"svcPrivate.p":7}`})
	byID := h.listen(watch.Request{Caller: member, Filter: fmt.Sprintf(`{"_id":%q,"workflowId":"stock"}`, id)})
	for n, name := range []string{"set", "close", "set", "side", "open", "set"} {
		h.mustSend(boss, "stock", id, name, fmt.Sprintf(`{"svcPublic":{"a":%d},"svcPrivate":{"p":%d}}`, n, n+5), "")
	}
	h.create(boss, "stock", `{"a":9}`)
	byData.expect("by data", "4 set", "5 side", "6 open", "7 set", "1 ")
	byNode.expect("by node", "3 close", "4 set", "5 side")
	byPrivate.expect("by private data", "4 set")
	byID.expect("by id", "2 set", "3 close", "4 set", "5 side", "6 open", "7 set")
}

func TestAWorkflowWatchGoesOnWhereItWas(t *testing.T) {
	h := newStockHouse(t)
	id := h.create(boss, "stock", "")
	first := h.watch(watch.Request{Caller: member}, nil)
	opened := first.next()
	for range 3 {
		h.mustSend(boss, "stock", id, "set", "", "")
	}
	h.mustSend(boss, "stock", id, "close", `{"secret":true}`, "")
	h.mustSend(boss, "stock", id, "open", `{"secret":false}`, "")
	entries := first.expect("the first time", "2 set", "3 set", "4 set", "5 close", "6 open")
	if err := first.end(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	h.mustSend(boss, "stock", id, "side", "", "") // while nobody watches
	resume := func(place string, who *identity.Principal) *ear {
		e := h.watch(watch.Request{Caller: who, LastEventID: place}, nil)
		if got := e.next(); got.Kind != watch.Opened || got.ID != place {
			t.Errorf("resumed at %q: the first event is %s at %q", place, got, got.ID)
		}
		return e
	}
	resume(opened.ID, member).expect("from the beginning", "2 set", "3 set", "4 set", "5 close", "6 open", "7 side")
	resume(entries[1].ID, guest).expect("from the middle, a guest", "4 set", "6 open", "7 side")
	resume(entries[4].ID, member).expect("from the end", "7 side")
	epoch, place, _ := strings.Cut(entries[4].ID, "-")
	for _, lost := range []string{"x", "-", epoch, epoch + "-", epoch + "-9999", epoch + "--1", epoch + "-" + place + "x", "00000000-" + place, place, "18446744073709551616", epoch + "-18446744073709551615"} {
		e := resume(lost, member)
		got := e.expect("resumed at "+lost, "lost")
		h.mustSend(boss, "stock", id, "set", "", "")
		if next := e.next(); next.Kind != watch.Entry || next.Sequence < 8 {
			t.Errorf("resumed at %s: heard %s, want the entry that came then", lost, next)
		}
		if got[0].ID == "" || got[0].ID == lost {
			t.Errorf("resumed at %s: the place to go on from is %q", lost, got[0].ID)
		}
		resume(got[0].ID, member).next() // fails when nothing comes, or the watch ends
	}
	h.restart()
	resume(entries[1].ID, member).expect("after a restart", "lost")
}

func TestAnInstanceWatchGoesOnFromTheStore(t *testing.T) {
	h := newStockHouse(t)
	id := h.create(boss, "stock", "")
	for _, name := range []string{"set", "close", "side", "open"} {
		h.mustSend(boss, "stock", id, name, "", "")
	}
	check := func(when string) {
		t.Helper()
		for place, want := range map[string][]string{
			"0": {"1 ", "2 set", "3 close", "4 side", "5 open"}, "3": {"4 side", "5 open"}, "5": nil,
			"6": {"lost"}, "x": {"lost"}, "-1": {"lost"}, "18446744073709551615": {"lost"},
		} {
			e := h.listen(watch.Request{Caller: member, InstanceID: id, LastEventID: place})
			got := e.expect(when+", from "+place, want...)
			if len(got) > 0 && got[0].Kind == watch.Entry {
				h.holdEntries(id, got)
			} else if len(got) > 0 && got[0].ID != "5" {
				t.Errorf("%s, from %s: the place to go on from is %q, want 5", when, place, got[0].ID)
			}
		}
		for place, want := range map[string][]string{"5": nil, "4": {"lost"}, "0": {"lost"}} {
			h.listen(watch.Request{Caller: member, InstanceID: id, LastEventID: place, Filter: `{"svcPublic.a":null}`}).expect(when+", with a filter, from "+place, want...)
		}
	}
	check("at once")
	h.restart()
	check("after a restart")
	e := h.listen(watch.Request{Caller: member, InstanceID: id, LastEventID: "5"})
	h.mustSend(boss, "stock", id, "side", "", "")
	e.expect("what comes then", "6 side")
}

// TestASlowWatcherLosesItsPlaceAndHoldsNobodyUp also holds what a feed keeps.
func TestASlowWatcherLosesItsPlaceAndHoldsNobodyUp(t *testing.T) {
	h := newStockHouse(t)
	ids := h.fill("stock", slices.Repeat([]string{"{}"}, 64))
	hold := make(chan struct{})
	slow := h.watch(watch.Request{Caller: member}, hold)
	one := h.watch(watch.Request{Caller: member, InstanceID: ids[0]}, hold)
	filtered := h.watch(watch.Request{Caller: member, InstanceID: ids[0], Filter: `{"svcPublic.a":null}`}, hold)
	for _, e := range []*ear{slow, one, filtered} {
		e.expect("at first", "open")
		hold <- struct{}{}
	}
	first := h.mustSend(boss, "stock", ids[0], "set", "", "")
	slow.expect("the first entry", "2 set")
	one.expect("the first entry", "2 set")
	filtered.expect("the first entry", "2 set")
	var wg sync.WaitGroup
	const each = 4096/64 + 20
	for g := range 64 { // all watchers hang in yield
		wg.Go(func() {
			for range each {
				h.mustSend(boss, "stock", ids[g], "set", "", "")
			}
		})
	}
	wg.Wait()
	for range 4096 + 10 {
		f := h.watches.Feeds("stock", mustID(t, ids[0]))[1]        // the instance's own
		f.Publish(&watch.Item{ID: mustID(t, ids[0]), Sequence: 1}) // seen already: fills the feed
	}
	h.mustSend(boss, "stock", ids[0], "close", "", "")
	close(hold)
	heard := slow.until(fmt.Sprintf("%d close", first.Sequence+each+1))
	if heard[0] != "lost" || slices.Contains(heard[1:], "lost") || len(heard) > 4096+2 || len(heard) < 4096/2 {
		t.Errorf("a slow watcher heard %d events, the first is %q; want it to be told once that it lost some, and then the newest", len(heard), heard[0])
	}
	var want []string
	for n := range each {
		want = append(want, fmt.Sprintf("%d set", n+3))
	}
	one.expect("one instance is read from the store again", append(want, fmt.Sprintf("%d close", each+3))...)
	filtered.expect("with a filter that cannot be", "lost", fmt.Sprintf("%d close", each+3))
}

func TestStopWatchingEndsAllWatches(t *testing.T) {
	h := newStockHouse(t)
	id := h.create(boss, "stock", "")
	ears := []*ear{h.listen(watch.Request{Caller: member}), h.listen(watch.Request{Caller: member, InstanceID: id})}
	h.mustSend(boss, "stock", id, "close", "", "")
	h.StopWatching()
	h.StopWatching()
	for n, e := range ears {
		if err := e.ended(); err != nil {
			t.Errorf("watch %d ended with %v, want nil", n, err)
		}
	}
	for _, req := range []watch.Request{{Caller: member}, {Caller: member, InstanceID: id}} {
		if err := h.watch(req, nil).ended(); !errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("a new watch: got %v, want ErrUnavailable", err)
		}
	}
	h.mustSend(boss, "stock", id, "set", "", "") // events go on
}

// TestStopWatchingIsHeardUnderLoad: a watcher that never catches up ends, too.
func TestStopWatchingIsHeardUnderLoad(t *testing.T) {
	h := newStockHouse(t)
	ended := make(chan error, 1)
	told := 0
	go func() {
		ended <- h.Watch(context.Background(), &watch.Request{Caller: member, WorkflowID: "stock"}, func(e watch.Event) error {
			if told++; told == 3 {
				h.StopWatching()
			}
			h.watches.Feeds("stock", persistence.ID{})[0].Publish(&watch.Item{Gap: true})
			return nil
		})
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("got %v, want nil", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a watcher that always has something to hear does not end")
	}
}

// TestAWatcherIsAskedForAgain: rights are those of the moment.
func TestAWatcherIsAskedForAgain(t *testing.T) {
	h := newStockHouse(t)
	id := h.create(boss, "stock", "")
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
	h.mustSend(boss, "stock", id, "set", `{"secret":true}`, "")
	all.expect("a member", "2 set")
	one.expect("a member", "2 set")
	now.Store(guest)
	h.mustSend(boss, "stock", id, "set", "", "")
	h.mustSend(boss, "stock", id, "close", `{"secret":false}`, "")
	all.expect("who became a guest", "4 close")
	one.expect("who became a guest", "4 close")
	gone.Store(true)
	h.mustSend(boss, "stock", id, "open", "", "")
	for name, e := range map[string]*ear{"all": all, "one": one} {
		if err := e.ended(); !errors.Is(err, withdrawn) {
			t.Errorf("%s: ended with %v, want the error of Reauthorize", name, err)
		}
		if len(e.events) > 0 {
			t.Errorf("%s: heard %s after the right was withdrawn", name, <-e.events)
		}
	}
}

// TestWhatIsAcknowledgedAfterTheOpeningIsHeard: watches open while events are on
// their way, also several at a time.
func TestWhatIsAcknowledgedAfterTheOpeningIsHeard(t *testing.T) {
	h := newStockHouse(t)
	const senders = 3
	ids := h.fill("stock", slices.Repeat([]string{"{}"}, senders))
	for range 40 {
		var wg sync.WaitGroup
		var acked [senders]atomic.Uint64 // perhaps one less than what is acknowledged
		var enough atomic.Bool
		for g, id := range ids {
			wg.Go(func() {
				for !enough.Load() {
					acked[g].Store(h.mustSend(boss, "stock", id, "set", "", "").Sequence)
				}
			})
		}
		await(t, "events", func() bool { return acked[0].Load() > 0 && acked[1].Load() > 0 && acked[2].Load() > 0 })
		all := []*ear{h.watch(watch.Request{Caller: member}, nil), h.watch(watch.Request{Caller: member}, nil)}
		one := h.watch(watch.Request{Caller: member, InstanceID: ids[0]}, nil)
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
		for n := place + 1; n <= acked[0].Load(); n++ {
			one.expect("one instance, without anything behind", fmt.Sprintf("%d set", n))
		}
		for _, id := range ids {
			h.mustSend(boss, "stock", id, "close", "", "")
		}
		for _, e := range all {
			h.holdSince(e, ids, atOpening)
		}
		for _, e := range append(all, one) {
			_ = e.end()
		}
		h.watches.Sweep(time.Now().Add(2 * time.Minute)) // so that each round begins with new feeds
	}
}

// TestNothingIsMissedWhileAWatchOpens: with a filter what was missed cannot be
// read again, so that it would show.
func TestNothingIsMissedWhileAWatchOpens(t *testing.T) {
	h := newStockHouse(t)
	id := h.create(boss, "stock", "")
	var wg sync.WaitGroup
	var stopping atomic.Bool
	for range 6 { // so that one is on its way when the instance answers
		wg.Go(func() {
			for !stopping.Load() {
				h.mustSend(boss, "stock", id, "set", "", "")
			}
		})
	}
	for range 100 {
		e := h.watch(watch.Request{Caller: member, InstanceID: id, Filter: `{"svcPublic.u":null}`}, nil)
		place, _ := strconv.ParseUint(e.next().ID, 10, 64)
		if got := e.next(); got.Kind != watch.Entry || got.Sequence != place+1 {
			t.Errorf("opened at %d, heard %s first", place, got)
		}
		_ = e.end()
	}
	stopping.Store(true)
	wg.Wait()
}

// holdSince listens until each instance is closed, and holds that no entry was
// missed since the opening.
func (h *house) holdSince(e *ear, ids []string, atOpening map[string]uint64) {
	h.t.Helper()
	last := map[string]uint64{}
	for closed := 0; closed < len(ids); {
		got := e.next()
		switch before, ok := last[got.InstanceID]; {
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
	disk := storetest.NewDisk()
	h := newHouseOn(t, disk, Options{})
	h.publish(leave, order, stock("stock", 1))
	id := h.create(boss, "stock", "")
	hanging := disk.Hold()
	var wg sync.WaitGroup
	wg.Go(func() { h.mustSend(boss, "stock", id, "set", "", "") })
	<-hanging
	var ears []*ear
	for range 3 {
		ears = append(ears, h.watch(watch.Request{Caller: member}, nil))
		await(t, "the feed", func() bool { return h.feeds("stock") == 1 })
	}
	early := make([]bool, len(ears))
	late := time.After(50 * time.Millisecond)
	for n, e := range ears {
		select {
		case <-e.events:
			early[n] = true
		case <-late: // once, for all of them
			closed := make(chan time.Time)
			close(closed)
			late = closed
		}
	}
	disk.Release()
	wg.Wait()
	for n, e := range ears {
		if early[n] { // it was open before the event was acknowledged
			e.expect("what was acknowledged after the opening", "2 set")
		} else {
			e.expect("at first", "open")
		}
	}
	h.mustSend(boss, "stock", id, "close", "", "")
	for _, e := range ears {
		e.expect("what comes then", "3 close")
	}
}

// TestAnEntryWhoseOutcomeIsUnknown is a gap in the stream of all, and read again
// for one instance, as far as it may be seen.
func TestAnEntryWhoseOutcomeIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storetest.NewDisk()
		h := newHouseOn(t, disk, Options{})
		h.publish(leave, order, stock("stock", 1))
		open, hidden := h.create(boss, "stock", ""), h.create(boss, "stock", "")
		all, one, secret := h.listen(watch.Request{Caller: member}), h.listen(watch.Request{Caller: guest, InstanceID: open}), h.listen(watch.Request{Caller: guest, InstanceID: hidden})
		hanging := disk.Hold()
		var wg sync.WaitGroup
		for id, body := range map[string]string{open: "", hidden: `{"secret":true}`} {
			wg.Go(func() {
				if _, err := h.send(boss, "stock", id, "close", body, ""); !errors.Is(err, failure.ErrOutcomeUnknown) {
					t.Errorf("got %v, want ErrOutcomeUnknown", err)
				}
			})
		}
		<-hanging
		late := h.watch(watch.Request{Caller: member, WorkflowID: "order"}, nil)
		wg.Wait()
		if err := late.ended(); !errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("a watch while the disk hangs: %v, want ErrUnavailable", err)
		}
		all.expect("while the outcome is not known", "lost", "lost")
		disk.Release()
		clocktest.Advance(2 * time.Second)
		for _, id := range []string{open, hidden} {
			h.mustSend(boss, "stock", id, "side", "", "")
		}
		synctest.Wait() // all is heard: rights are those of the moment
		h.mustSend(boss, "stock", hidden, "open", `{"secret":false}`, "")
		all.expect("afterwards", "3 side", "3 side", "4 open")
		one.expect("the one that may be seen", "2 close", "3 side")
		secret.expect("the one that was hidden", "4 open")
		for _, e := range []*ear{all, one, secret} {
			if err := e.end(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// TestAWatcherHearsThatThereIsNothing also when others have something to hear.
func TestAWatcherHearsThatThereIsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.publish(leave, order, stock("stock", 1))
		id := h.create(boss, "stock", "")
		quiet := h.listen(watch.Request{Caller: member, Filter: `{"svcPublic.a":"never"}`})
		loud := h.listen(watch.Request{Caller: member, InstanceID: id})
		quiet.beats.Store(true)
		loud.beats.Store(true)
		begun := time.Now()
		for range 20 {
			clocktest.Advance(3 * time.Second)
			h.mustSend(boss, "stock", id, "set", "", "")
			loud.expect("an entry every 3 s", fmt.Sprintf("%d set", h.mustLoad(boss, "stock", id).Sequence))
		}
		beats := len(quiet.events)
		if want := int(time.Since(begun)/heartbeatEvery) - 1; beats < want || beats > want+1 {
			t.Errorf("%d beats in %s, want one every %s", beats, time.Since(begun), heartbeatEvery)
		}
		loud.expect("when it is quiet", "beat")
		if took := time.Since(begun); took != 60*time.Second+heartbeatEvery {
			t.Errorf("the first beat came after %s, want %s after the last entry", took, heartbeatEvery)
		}
		for _, e := range []*ear{quiet, loud} {
			if err := e.end(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

func TestAFeedIsForgottenWhenNobodyCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.publish(leave, order, stock("stock", 1))
		id := h.create(boss, "stock", "")
		e := h.watch(watch.Request{Caller: member}, nil)
		place := e.next().ID
		clocktest.Advance(3 * time.Minute)
		if n := h.feeds("stock"); n != 1 {
			t.Fatalf("%d feeds while one is watched", n)
		}
		if err := e.end(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		h.mustSend(boss, "stock", id, "set", "", "")
		clocktest.Advance(time.Minute - 2*sweepEvery)
		back := h.listen(watch.Request{Caller: member, LastEventID: place})
		back.expect("in time", "2 set")
		if err := back.end(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		clocktest.Advance(time.Minute + 2*sweepEvery)
		if n := h.feeds("stock"); n != 0 {
			t.Errorf("%d feeds are still kept", n)
		}
		late := h.listen(watch.Request{Caller: member, LastEventID: place})
		late.expect("too late", "lost")
		if err := late.end(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// feeds is how many feeds of a workflow and its instances there are.
func (h *house) feeds(workflow string) int {
	n := len(h.watches.Feeds(workflow, persistence.ID{})) // the workflow's own
	for _, s := range h.instances(workflow) {
		n += len(h.watches.Feeds(workflow, s.id)) - len(h.watches.Feeds(workflow, persistence.ID{}))
	}
	return n
}

// heartbeatEvery is how often a watcher is told that nothing happened.
const heartbeatEvery = 15 * time.Second
