package workflow

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/persistence"
	"troupe/persistence/storetest"
)

// TestAnAcknowledgedCreateIsReadableAfterAPublishOfUnknownOutcome: other content
// takes a version while the disk hangs, and it is not known whether it is durable.
// Whatever a create is acknowledged with then is what the store has after a crash.
func TestAnAcknowledgedCreateIsReadableAfterAPublishOfUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storetest.NewDisk()
		h := newHouseOn(t, disk, Options{})
		before := strings.NewReplacer("initial: a", "initial: open", "a: {on", "open: {on").Replace(plain)
		h.publish(leave, order, before)
		synctest.Wait() // the builder has looked at the indexes: the clock stands still for who waits for a mutex
		hanging := disk.Hold()
		published := make(chan error, 1)
		go func() { published <- h.catalog.Publish(sources(t, leave, order, plain)) }()
		<-hanging
		crashed := disk.AfterCrash() // between the two: nothing of the set may be there
		if err := <-published; !errors.Is(err, persistence.ErrOutcomeUnknown) {
			t.Fatalf("while the disk hangs: got %v, want ErrOutcomeUnknown", err)
		}
		if _, err := h.Create(t.Context(), &CreateRequest{Caller: john, WorkflowID: "plain"}); !errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("a create before the outcome is known: got %v, want ErrUnavailable", err)
		}
		disk.Release()
		storetest.AwaitAccepting(t, h.store, true)
		id := h.create(john, "plain", "")
		h.disk = disk.AfterCrash()
		h.restart()
		h.mustSend(john, "plain", id, "go", "", "")

		h.stop()
		h.disk = crashed
		h.start()
		h.publish(leave, order, plain)
		id = h.create(john, "plain", "")
		h.restart()
		h.mustSend(john, "plain", id, "go", "", "")
	})
}

// TestPublishingAgainTellsWhenTheSetIsDurable: the set of an unknown outcome is in
// use, but not confirmed before it is on the disk.
func TestPublishingAgainTellsWhenTheSetIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storetest.NewDisk()
		h := newHouseOn(t, disk, Options{})
		synctest.Wait() // the builder has looked at the indexes
		disk.Hold()
		for range 2 {
			if err := h.catalog.Publish(sources(t, leave, order, plain)); !errors.Is(err, persistence.ErrOutcomeUnknown) {
				t.Fatalf("while the disk hangs: got %v, want ErrOutcomeUnknown", err)
			}
		}
		disk.Release()
		storetest.AwaitAccepting(t, h.store, true)
		h.publish(leave, order, plain)
		store, err := disk.AfterCrash().Open(persistence.Options{Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Load(persistence.DefinitionKey(nil, "plain", 1)); err != nil {
			t.Errorf("the confirmed definition after a crash: %v", err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// spoil replaces a part of a stored definition, as another release could have
// written it.
func (h *house) spoil(workflow string, version uint64, before, after string) {
	h.t.Helper()
	key := persistence.DefinitionKey(nil, workflow, version)
	text, err := h.store.Load(key)
	if err != nil || !strings.Contains(string(text), before) {
		h.t.Fatalf("the stored definition is %s, %v", text, err)
	}
	w := h.store.NewWrites(persistence.Meta)
	w.Set(key, []byte(strings.Replace(string(text), before, after, 1)))
	if err := h.store.Commit(w); err != nil {
		h.t.Fatal(err)
	}
	h.restart()
}

// TestInstancesOfAnUnreadableDefinitionAreNotGone: every request for them fails with
// failure.ErrExecution, whatever it is; the catalog names the definition, and all else goes
// on.
func TestInstancesOfAnUnreadableDefinitionAreNotGone(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, plain)
	id, other := h.create(john, "plain", ""), h.create(john, "leave", "")
	if err := h.catalog.Readable(); err != nil {
		t.Errorf("readable definitions: got %v", err)
	}
	h.spoil("plain", 1, "go: b", "go: nowhere")
	look := &LoadRequest{Caller: john, WorkflowID: "plain", InstanceID: id}
	for name, err := range map[string]error{
		"load":     second(h.load(john, "plain", id)),
		"send":     second(h.send(john, "plain", id, "go", "", "")),
		"create":   second(h.Create(t.Context(), &CreateRequest{Caller: john, WorkflowID: "plain"})),
		"a retry":  second(h.Create(t.Context(), &CreateRequest{Caller: john, WorkflowID: "plain", Retry: Retry{Key: "k"}})),
		"query":    second(h.Query(t.Context(), &query.Request{Caller: john, WorkflowID: "plain"}, func([]byte) error { return nil })),
		"events":   second(h.Events(t.Context(), look)),
		"history":  second(h.History(t.Context(), &HistoryRequest{Caller: john, WorkflowID: "plain", InstanceID: id, Limit: 1})),
		"watch":    h.Watch(t.Context(), &watch.Request{Caller: john, WorkflowID: "plain"}, func(watch.Event) error { return nil }),
		"draft":    second(h.SaveDraft(t.Context(), &DraftRequest{FormRequest: FormRequest{Caller: john, WorkflowID: "plain", InstanceID: id}})),
		"an index": h.catalog.Publish(sources(t, leave, order, strings.Replace(plain, "id: plain", "id: plain\nindexes: [svcPublic.a]", 1))),
	} {
		if name == "an index" {
			if err == nil {
				t.Error("changed content took a version with an instance")
			}
		} else if !errors.Is(err, failure.ErrExecution) {
			t.Errorf("%s: got %v, want ErrExecution", name, err)
		}
	}
	if err := h.catalog.Readable(); err == nil || !strings.Contains(err.Error(), "definition plain version 1: workflows/2.yaml:3:") || !strings.Contains(err.Error(), `unknown target "nowhere"`) {
		t.Errorf("the catalog says %v", err)
	}
	if n := h.book.count(`"workflow":"plain"`); n == 0 {
		t.Error("the log does not say why")
	}
	h.mustSend(john, "leave", other, "submit", "", "")
	if got := h.query(john, "leave", ""); len(got) != 1 {
		t.Errorf("another workflow's list: got %v", got)
	}
	for _, choice := range h.Choices(john) {
		if choice.ID == "plain" {
			t.Error("what cannot be created is a choice")
		}
	}
	h.publish(leave, order, version2(plain)) // others can be published, and a new version of this
	if _, err := h.load(john, "plain", id); !errors.Is(err, failure.ErrExecution) {
		t.Errorf("an instance of the unreadable version: got %v, want ErrExecution", err)
	}
	h.create(john, "plain", "")
	h.restart()
	if err := h.catalog.Readable(); err == nil || !strings.Contains(err.Error(), "definition plain version 1:") {
		t.Errorf("after a restart with a newer version: the catalog says %v", err)
	}
	h.spoil("plain", 1, "go: nowhere", "go: b")
	h.mustSend(john, "plain", id, "go", "", "")
	if err := h.catalog.Readable(); err != nil {
		t.Errorf("mended: the catalog says %v", err)
	}
}

// TestAListGoesOnWithoutWhatCannotBeRead: where rights depend on the instance, one
// whose definition cannot be read is shown to nobody.
func TestAListGoesOnWithoutWhatCannotBeRead(t *testing.T) {
	h := newHouse(t, Options{})
	own := strings.Replace(plain, "id: plain", "id: plain\nallow: {read: {when: 'svcPublic.by == user.id'}}", 1)
	h.publish(leave, order, own)
	h.create(john, "plain", `{"by":"john"}`)
	h.publish(leave, order, version2(own))
	second := h.create(john, "plain", `{"by":"john"}`)
	h.spoil("plain", 1, "go: b", "go: nowhere")
	if got := h.query(john, "plain", ""); len(got) != 1 || got[0] != second {
		t.Errorf("got %v, want %s alone", got, second)
	}
}

func second[T any](_ T, err error) error { return err }
