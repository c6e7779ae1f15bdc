package workflow_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// TestAnAcknowledgedCreateIsReadableAfterAPublishOfUnknownOutcome: other content
// takes a version while the disk hangs, and it is not known whether it is durable.
// Whatever a create is acknowledged with then is what the store has after a crash.
func TestAnAcknowledgedCreateIsReadableAfterAPublishOfUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storetest.NewDisk()
		h := workflowtest.Start(t, workflowtest.Options{Disk: disk})
		before := strings.NewReplacer("initial: a", "initial: open", "a: {on", "open: {on").Replace(plain)
		h.Publish(workflowtest.Leave, before)
		synctest.Wait() // the builder has looked at the indexes: the clock stands still for who waits for a mutex
		hanging := disk.Hold()
		published := make(chan error, 1)
		go func() { published <- h.Catalog.Publish(h.Sources(workflowtest.Leave, plain)) }()
		<-hanging
		crashed := disk.AfterCrash() // between the two: nothing of the set may be there
		err := <-published
		require.ErrorIs(t, err, persistence.ErrOutcomeUnknown, "while the disk hangs")
		_, err = h.Create(t.Context(), &message.Create{Caller: john, WorkflowID: "plain"})
		assert.ErrorIs(t, err, failure.ErrUnavailable, "a create before the outcome is known")
		disk.Release()
		storetest.AwaitAccepting(t, h.Store, true)
		id := h.Make(john, "plain", "")
		h.Disk = disk.AfterCrash()
		h.Restart()
		h.MustSend(john, "plain", id, "go", "")

		h.End()
		h.Disk = crashed
		h.Begin()
		h.Publish(workflowtest.Leave, plain)
		id = h.Make(john, "plain", "")
		h.Restart()
		h.MustSend(john, "plain", id, "go", "")
	})
}

// TestPublishingAgainTellsWhenTheSetIsDurable: the set of an unknown outcome is in
// use, but not confirmed before it is on the disk.
func TestPublishingAgainTellsWhenTheSetIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storetest.NewDisk()
		h := workflowtest.Start(t, workflowtest.Options{Disk: disk})
		synctest.Wait() // the builder has looked at the indexes
		disk.Hold()
		for range 2 {
			require.ErrorIs(t, h.Catalog.Publish(h.Sources(workflowtest.Leave, plain)), persistence.ErrOutcomeUnknown)
		}
		disk.Release()
		storetest.AwaitAccepting(t, h.Store, true)
		h.Publish(workflowtest.Leave, plain)
		store, err := disk.AfterCrash().Open(persistence.Options{Log: zerolog.Nop()})
		h.Must(err)
		_, err = store.Load(key.Definition(nil, "plain", 1))
		assert.NoError(t, err, "the confirmed definition after a crash")
		assert.NoError(t, store.Close())
	})
}

// spoil replaces a part of the stored definition plain, as another release could have
// written it.
func spoil(t *testing.T, h *workflowtest.Router, before, after string) {
	t.Helper()
	k := key.Definition(nil, "plain", 1)
	text, err := h.Store.Load(k)
	require.True(t, err == nil && strings.Contains(string(text), before), "the stored definition is %s, %v", text, err)
	h.Overwrite(key.Meta, k, []byte(strings.Replace(string(text), before, after, 1)))
	h.Restart()
}

// TestInstancesOfAnUnreadableDefinitionAreNotGone: every request for them fails with
// failure.ErrExecution, whatever it is; the catalog names the definition, and all else goes
// on.
func TestInstancesOfAnUnreadableDefinitionAreNotGone(t *testing.T) {
	h := workflowtest.Start(t, workflowtest.Options{})
	h.Publish(workflowtest.Leave, plain)
	id, other := h.Make(john, "plain", ""), h.Make(john, "leave", "")
	assert.NoError(t, h.Catalog.Readable(), "readable definitions")
	spoil(t, h, "go: b", "go: nowhere")
	look := &message.Load{Caller: john, WorkflowID: "plain", InstanceID: id}
	for name, err := range map[string]error{
		"load":    workflowtest.Second(h.Look(john, "plain", id)),
		"send":    workflowtest.Second(h.Try(john, "plain", id, "go", "", "")),
		"create":  workflowtest.Second(h.Create(t.Context(), &message.Create{Caller: john, WorkflowID: "plain"})),
		"a retry": workflowtest.Second(h.Create(t.Context(), &message.Create{Caller: john, WorkflowID: "plain", Retry: message.Retry{Key: "k"}})),
		"query":   workflowtest.Second(h.Queries.Query(t.Context(), &query.Request{Caller: john, WorkflowID: "plain"}, func([]byte) error { return nil })),
		"events":  workflowtest.Second(h.Events(look)),
		"history": workflowtest.Second(h.History(&message.History{Caller: john, WorkflowID: "plain", InstanceID: id, Limit: 1})),
		"watch":   h.Watches.Watch(t.Context(), &watch.Request{Caller: john, WorkflowID: "plain"}, func(watch.Event) error { return nil }),
		"draft":   workflowtest.Second(h.SaveDraft(&message.Draft{Request: form.Request{Caller: john, WorkflowID: "plain", InstanceID: id}})),
	} {
		assert.ErrorIs(t, err, failure.ErrExecution, name)
	}
	indexed := strings.Replace(plain, "id: plain", "id: plain\nindexes: [svcPublic.a]", 1)
	assert.Error(t, h.Catalog.Publish(h.Sources(workflowtest.Leave, indexed)), "changed content took a version with an instance")
	if err := h.Catalog.Readable(); err == nil || !strings.Contains(err.Error(), "definition plain version 1: workflows/1.yaml:3:") || !strings.Contains(err.Error(), `unknown target "nowhere"`) {
		t.Errorf("the catalog says %v", err)
	}
	assert.NotZero(t, h.Log.Count(`"workflow":"plain"`), "the log does not say why")
	h.MustSend(john, "leave", other, "submit", "")
	got, _, err := workflowtest.IDs(t, h.Queries.Query, query.Request{Caller: john, WorkflowID: "leave"})
	assert.True(t, err == nil && len(got) == 1, "another workflow's list: got %v, %v", got, err)
	for _, choice := range h.Choices(workflowtest.John) {
		assert.NotEqual(t, "plain", choice.ID, "what cannot be created is a choice")
	}
	h.Publish(workflowtest.Leave, version2(plain)) // others can be published, and a new version of this
	_, err = h.Look(john, "plain", id)
	assert.ErrorIs(t, err, failure.ErrExecution, "an instance of the unreadable version")
	h.Make(john, "plain", "")
	h.Restart()
	assert.NoError(t, h.Catalog.Readable(), "after a restart, before anybody needs the version: the catalog")
	_, err = h.Look(john, "plain", id)
	assert.ErrorIs(t, err, failure.ErrExecution, "after a restart")
	err = h.Catalog.Readable()
	assert.True(t, err != nil && strings.Contains(err.Error(), "definition plain version 1:"), "after a restart with a newer version: the catalog says %v", err)
	spoil(t, h, "go: nowhere", "go: b")
	h.MustSend(john, "plain", id, "go", "")
	assert.NoError(t, h.Catalog.Readable(), "mended: the catalog")
}

// TestAListGoesOnWithoutWhatCannotBeRead: where rights depend on the instance, one
// whose definition cannot be read is shown to nobody.
func TestAListGoesOnWithoutWhatCannotBeRead(t *testing.T) {
	h := workflowtest.Start(t, workflowtest.Options{})
	own := strings.Replace(plain, "id: plain", "id: plain\nallow: {read: {when: 'svcPublic.by == user.id'}}", 1)
	h.Publish(workflowtest.Leave, own)
	h.Make(john, "plain", `{"by":"john"}`)
	h.Publish(workflowtest.Leave, version2(own))
	second := h.Make(john, "plain", `{"by":"john"}`)
	spoil(t, h, "go: b", "go: nowhere")
	got, _, err := workflowtest.IDs(t, h.Queries.Query, query.Request{Caller: john, WorkflowID: "plain"})
	assert.True(t, err == nil && len(got) == 1 && got[0] == second, "got %v, %v, want %s alone", got, err, second)
}
