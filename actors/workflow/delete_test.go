package workflow_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// visit has all that an instance can leave in the store: indexes, several machines, timers of which one fails, and what leaves.
const visit = `
id: visit
indexes: [svcPublic.n, svcPublic.tags, svcPrivate.who]
webhooks:
  hook: {retry: {limit: 5, delay: PT10S, jitter: false}, onError: down}
create: {svcPublic: {type: object}, svcPrivate: {type: object}}
stateMachines:
  main:
    initial: draft
    states:
      draft:
        entry: [{webhook: {to: hook, body: 1}}, {webhook: {to: hook, body: 2}}]
        after:
          PT1M: {actions: [{assign: {svcPublic.x: '${1 / 0}'}}]}
          PT1H: sent
        on: {submit: sent, down: {}, note: {actions: [{assign: {svcPublic.n: '${event.data.?n.orValue(0)}'}}]}}
      sent: {type: final}
  side: {initial: a, states: {a: {task: {for: {users: [john]}, form: slip}, on: {go: b, again: {target: a, reenter: true}}}, b: {type: final}}}
`

func (h *harness) deleteForm(who *identity.Principal, workflowID, id string) error {
	return h.DeleteForm(who, workflowID, id)
}

// named counts the rows whose keys name the instance, by table, and those of others whose values do.
func (h *harness) named(id string) (keys, values map[string]int) {
	h.t.Helper()
	of := h.ID(id)
	keys, values = map[string]int{}, map[string]int{}
	h.EachRow(func(k key.Parts, text, value []byte) {
		switch {
		case bytes.Contains(text, of[:]), bytes.Contains(text, []byte(id)):
			keys[k.Table]++
		case bytes.Contains(value, of[:]), bytes.Contains(value, []byte(id)):
			values[k.Table]++
		}
	})
	return keys, values
}

// checkNoLeftovers is the invariant: whatever names an instance in its key belongs to one that is there.
func (h *harness) checkNoLeftovers() {
	h.t.Helper()
	there := map[key.ID]bool{}
	h.EachRow(func(k key.Parts, _, _ []byte) {
		if k.Table == "record" {
			there[k.ID] = true
		}
	})
	h.EachRow(func(k key.Parts, _, _ []byte) {
		assert.False(h.t, k.ID != (key.ID{}) && !there[k.ID], "%s belongs to no instance", k)
	})
}

// TestNothingNamesADeletedForm: no key does, and one value, which is documented: that of the key of its create.
func TestNothingNamesADeletedForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: func(outbox.Attempt) outbox.Answer { return outbox.Answer{Err: errors.New("down")} }}
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now, Sender: to}}), t}
		defer h.End()
		h.Publish(visit)
		h.AwaitIndexes()
		create := formOf(john, "visit", form.KindForm)
		create.Public, create.Private, create.Retry = value(`{"n":1,"tags":["a","b"]}`), value(`{"who":"secret-text"}`), message.Retry{Key: "made", Fingerprint: [32]byte{1}}
		r, err := h.Create(t.Context(), create)
		h.Must(err)
		id, other := r.InstanceID, h.createForm(john, "visit", form.KindForm)
		for _, who := range []*identity.Principal{john, mary} {
			_, err := h.SaveDraft(&message.Draft{
				Request: form.Request{Caller: who, WorkflowID: "visit", InstanceID: id, Event: "submit"}, Data: value(`{"a":1}`),
			})
			h.Must(err)
		}
		h.MustSend(john, "visit", id, "note", `{"n":2}`, "k1") // moves nothing
		h.MustSend(john, "visit", id, "again", "")             // decides a task, and begins another
		h.keepTaskDraft(john, h.taskOf(john, id), `{"a":1}`)
		comment := message.Comment{Load: message.Load{Caller: john, WorkflowID: "visit", InstanceID: id}, Text: "hello"}
		h.Must(workflowtest.Second(h.AddComment(&comment)))
		clocktest.Advance(2 * time.Minute) // a timer has failed, and deliveries were tried
		keys, _ := h.named(id)
		for _, table := range []string{"record", "entry", "draft", "node", "index", "list", "timer", "incident", "delivery", "attempt", "reply", "task", "taskdraft", "work", "activity"} {
			assert.NotZero(t, keys[table], "before: no row of the table %s names the instance, so this test shows nothing of it", table)
		}
		for _, who := range []*identity.Principal{mary, eve, boss} {
			assert.ErrorIs(t, h.deleteForm(who, "visit", id), failure.ErrNotFound, "by %s", who.ID)
		}
		h.Must(h.deleteForm(john, "visit", id))
		keys, values := h.named(id)
		if len(keys) > 0 || len(values) != 2 || values["reply"] != 1 || values["feed"] != 3 { // the feed is trimmed by time
			t.Errorf("after: the keys %v and the values %v name it", keys, values)
		}
		h.EachRow(func(k key.Parts, _, value []byte) {
			assert.False(t, k.Table == "reply" && bytes.Contains(value, []byte("secret-text")), "%s has data of the deleted form", k)
		})
		// The builder of an index may have met it in its snapshot.
		wait, err := h.EnterIndex("visit", h.ID(id), h.Catalog.Indexes().Find("visit", "svcPublic.n"))
		h.Must(err)
		h.Must(wait())
		h.checkNoLeftovers()
		h.CheckIndexes()
		for range 2 {
			assert.ErrorIs(t, h.deleteForm(john, "visit", id), failure.ErrNotFound, "once more")
			_, err := h.Create(t.Context(), create)
			assert.ErrorIs(t, err, failure.ErrNotFound, "its create again")
			_, err = h.Look(john, "visit", id)
			assert.ErrorIs(t, err, failure.ErrNotFound, "read")
			h.Restart()
		}
		clocktest.Advance(2 * time.Hour) // its timers would have come
		h.checkNoLeftovers()
		assert.LessOrEqual(t, h.Log.Count("an instance does not take it"), 0, "timers of it come again and again")
		got := h.MustLook(john, "visit", other)
		assert.True(t, bytes.Contains(got.States, []byte("sent")), "another instance is at %s, want its timer to have come", got.States)
		n, err := h.Store.CountAll(key.CountPrefix(nil, key.EveryShard, "visit"))
		assert.True(t, err == nil && n == 1, "%d instances are counted, %v, want 1", n, err)
	})
}

// TestADeliveryUnderWayDoesNotComeBack: an attempt ends when its instance is gone.
func TestADeliveryUnderWayDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, sent := make(chan struct{}), make(chan struct{}, 10)
		to := &receiver{answer: func(outbox.Attempt) outbox.Answer {
			sent <- struct{}{}
			<-hold
			return outbox.Answer{Err: errors.New("down")}
		}}
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now, Sender: to}}), t}
		defer h.End()
		h.Publish(visit)
		id := h.createForm(john, "visit", form.KindForm)
		<-sent
		h.Must(h.deleteForm(john, "visit", id))
		close(hold)
		clocktest.Advance(10 * time.Minute)
		keys, _ := h.named(id)
		assert.Empty(t, keys, "rows are back: %v", keys)
		assert.Len(t, to.all(), 1, "attempts, want the one that was under way")
	})
}

// TestAFormWithChildrenIsInUse holds gateway/INTERFACE.md, "Deleting a form".
func TestAFormWithChildrenIsInUse(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(leave, `
id: outer
stateMachines: {m: {initial: a, states: {a: {invoke: [{workflow: leave}], on: {go: b}}, b: {type: final}}}}
`)
	id := h.createForm(john, "outer", form.KindForm)
	assert.ErrorIs(t, h.deleteForm(john, "outer", id), failure.ErrInUse)
	assert.Equal(t, uint64(1), h.MustLook(john, "outer", id).Sequence, "after a refused deletion: sequence")
	plain := h.Make(john, "leave", "")
	assert.ErrorIs(t, h.deleteForm(john, "leave", plain), failure.ErrNotFound, "an instance that is no form")
}

// TestADeletionIsShownWhenItIsDurable: until then whoever asks waits, and a crash takes back all of it or nothing.
func TestADeletionIsShownWhenItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startOn(t, storetest.NewDisk(), workflow.Options{})
		id := h.createForm(john, "leave", form.KindForm)
		h.Disk.Hold()
		var hangs atomic.Bool
		hangs.Store(true)
		var asked sync.WaitGroup
		ask := func(what string, want error, call func() error) {
			asked.Go(func() {
				if err := call(); hangs.Load() || !errors.Is(err, want) {
					t.Errorf("%s: got %v, before it was durable: %t; want %v", what, err, hangs.Load(), want)
				}
			})
			synctest.Wait()
		}
		ask("the deletion", nil, func() error { return h.deleteForm(john, "leave", id) })
		ask("a read", failure.ErrNotFound, func() error { _, err := h.Look(john, "leave", id); return err })
		ask("an event", failure.ErrNotFound, func() error { _, err := h.Try(john, "leave", id, "submit", "", ""); return err })
		ask("a draft", failure.ErrNotFound, func() error { _, err := h.draft(john, id, `{}`); return err })
		ask("another deletion", failure.ErrNotFound, func() error { return h.deleteForm(john, "leave", id) })
		hangs.Store(false)
		h.Disk.Release()
		asked.Wait()
		h.checkLists()
		h.checkNoLeftovers()
		h.End()
	})
}

// TestEveryCrashLeavesDeletionsWhole cuts the power while forms are made, written, submitted and deleted.
func TestEveryCrashLeavesDeletionsWhole(t *testing.T) {
	disk := storetest.NewDisk()
	h := startOn(t, disk, workflow.Options{})
	var crashed []*storetest.Disk
	var mu sync.Mutex
	gone, stays := map[string]int{}, map[string]int{} // by how many crashes there were when that was acknowledged
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := range 25 {
				id := h.createForm(john, "leave", form.KindForm)
				_, err := h.draft(john, id, fmt.Sprintf(`{"n":%d}`, n))
				assert.NoError(t, err)
				if n%4 == worker {
					h.MustSend(john, "leave", id, "submit", "", "key")
					mu.Lock()
					stays[id] = len(crashed)
					mu.Unlock()
					continue
				}
				assert.NoError(t, h.deleteForm(john, "leave", id))
				mu.Lock()
				gone[id] = len(crashed)
				mu.Unlock()
			}
		})
	}
	for range 12 {
		after := disk.AfterCrash()
		mu.Lock()
		crashed = append(crashed, after)
		mu.Unlock()
	}
	all.Wait()
	crashed = append(crashed, disk.AfterCrash())
	h.checkLists()
	h.checkNoLeftovers()
	for n, disk := range crashed {
		again := startOn(t, disk, workflow.Options{})
		again.checkLists()
		again.checkNoLeftovers()
		again.CheckIndexes()
		for id, at := range gone {
			_, err := again.Look(john, "leave", id)
			assert.False(t, at < n && !errors.Is(err, failure.ErrNotFound), "crash %d: %s was deleted before crash %d, and is back: %v", n, id, at, err)
		}
		for id, at := range stays {
			_, err := again.Look(john, "leave", id)
			assert.False(t, at < n && err != nil, "crash %d: %s, submitted before crash %d: %v", n, id, at, err)
		}
		again.End()
	}
}
