package workflow_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/activity"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/shard"
	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/actors/workflow/batch"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/storetest"
)

// TestNothingIsShownThatACrashCouldTakeBack holds persistence/PROMISES.md, "P10": while
// the fsyncs behind events hang, no request that would show the events is answered,
// refusals included. The control is a read of the store itself, which does show them
// (persistence/PROMISES.md, "F5").
func TestNothingIsShownThatACrashCouldTakeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startOn(t, storetest.NewDisk(), workflow.Options{QueriesMax: 20})
		h.Publish(leave, order, stock("stock", 1, "svcPublic.a"))
		id, drafted, item := h.createForm(john, "leave", form.KindForm), h.createForm(john, "leave", form.KindForm), h.Make(boss, "stock", `{"a":"old"}`)
		h.AwaitIndexes()
		var hangs atomic.Bool
		var shown atomic.Int64 // rows and entries
		var asked sync.WaitGroup
		show := func(what string) {
			if shown.Add(1); hangs.Load() {
				t.Errorf("%s is shown while the fsync hangs", what)
			}
		}
		ask := func(what string, want error, call func() error) {
			asked.Go(func() {
				if err := call(); hangs.Load() || !errors.Is(err, want) {
					t.Errorf("%s: got %v, answered while the fsync hangs: %v; want %v afterwards", what, err, hangs.Load(), want)
				}
			})
		}
		send := func(change func(*message.Event)) func() error {
			e := event(john, "leave", id, "submit", "", "k")
			change(e)
			return func() error { _, err := h.Send(t.Context(), e); return err }
		}
		watches, over := context.WithCancel(t.Context())
		for what, req := range map[string]watch.Request{"of all": {}, "of one": {InstanceID: item}, "with a filter": {Filter: `{"svcPublic.a":"new"}`}} {
			req.Caller, req.WorkflowID = boss, "stock"
			asked.Go(func() {
				_ = h.Watches.Watch(watches, &req, func(e watch.Event) error {
					if e.Kind == watch.Entry {
						show("a watch " + what)
					}
					return nil
				})
			})
		}
		synctest.Wait() // they are open
		hanging := h.Disk.Hold()
		hangs.Store(true)
		ask("the event itself", nil, send(func(*message.Event) {}))
		ask("an event of another instance", nil, func() error { _, err := h.Try(boss, "stock", item, "close", `{"a":"new"}`, ""); return err })
		ask("a draft", nil, func() error { _, err := h.draft(john, drafted, `{}`); return err })
		<-hanging
		synctest.Wait()
		require.True(t, strings.Contains(string(h.Instances("stock")[0].Record.Public), "new") && h.Instances("leave")[0].Record.Sequence == 2)
		ask("a read", nil, func() error { _, err := h.Look(john, "leave", id); return err })
		ask("the form", nil, func() error {
			_, err := h.Form(&form.Request{Caller: john, WorkflowID: "leave", InstanceID: id, Event: "submit"})
			return err
		})
		for _, c := range []form.Category{form.Current, form.Submitted} {
			ask("the list of "+c.String()+" forms", nil, func() error {
				return form.List(t.Context(), h.Queries, &form.ListRequest{Kind: form.KindForm, User: john.ID, Category: c}, func(form.Listed) error { show("a form"); return nil })
			})
		}
		ask("the repeated event", nil, send(func(*message.Event) {}))
		ask("an event that is ignored", nil, send(func(e *message.Event) { e.Name, e.Retry = "drop", message.Retry{} }))
		for _, name := range []string{"drop", "note"} { // one leaves no entry, the other does
			ask("the event "+name+" of a batch", nil, func() error {
				b := batch.New(h.Router, nil)
				b.Event(event(john, "leave", map[string]string{"drop": id, "note": drafted}[name], name, "", ""), nil)
				for {
					if answer, ok := b.Next(); ok {
						return answer.Err
					}
					<-b.Ready(true)
				}
			})
		}
		ask("a second submission", failure.ErrNotAllowed, func() error {
			_, err := h.Submit(&message.Submit{Request: form.Request{Caller: john, WorkflowID: "leave", InstanceID: id, Event: "submit"}})
			return err
		})
		ask("a draft of what is submitted", failure.ErrNotAllowed, func() error { _, err := h.draft(john, id, `{}`); return err })
		ask("an event at another place", failure.ErrPrecondition, send(func(e *message.Event) { e.IfMatch, e.Retry = []uint64{1}, message.Retry{} }))
		ask("another body under the key", failure.ErrKeyReused, send(func(e *message.Event) { e.Retry.Fingerprint[0]++ }))
		for what, req := range map[string]query.Request{
			"by an index":              {Filter: `{"svcPublic.a":"new"}`},
			"of what is gone":          {Filter: `{"svcPublic.a":"old"}`},
			"by node":                  {Filter: `{"states.nodeId":"closed"}`},
			"by id":                    {Filter: `{"_id":"` + item + `"}`, Fields: []string{"svcHistory"}},
			"sorted":                   {Sort: "svcPublic.a", Limit: 1, Count: true, Explain: true},
			"sorted in memory":         {Filter: `{"svcPublic.a":"new"}`, Sort: "-svcPublic.a", Limit: 5},
			"that counts what is gone": {Filter: `{"svcPublic.a":"old"}`, Limit: 1, Count: true},
		} {
			req.Caller, req.WorkflowID = boss, "stock"
			ask("a query "+what, nil, func() error {
				_, err := h.Queries.Query(t.Context(), &req, func([]byte) error { show("a row of a query " + what); return nil })
				return err
			})
		}
		look := message.Load{Caller: boss, WorkflowID: "stock", InstanceID: item}
		ask("the events", nil, func() error { of := look; _, err := h.Events(&of); return err })
		ask("the history", nil, func() error {
			_, err := h.History(&message.History{Caller: boss, WorkflowID: "stock", InstanceID: item, Limit: 10})
			return err
		})
		ask("the activity", nil, func() error {
			_, err := h.Activity(&message.Activity{Load: look, Limit: 10})
			return err
		})
		ask("an activity that is read while something comes", nil, func() error { // after the instance was asked
			of, _ := instanceid.Parse(item)
			_, err := activity.Read(h.Store, &activity.Request{Instance: of, Sequence: 1, Limit: 10})
			return err
		})
		synctest.Wait()
		crashed := h.Disk.AfterCrash()
		hangs.Store(false)
		h.Disk.Release()
		synctest.Wait()
		over()
		asked.Wait()
		assert.Equal(t, int64(3+2+5), shown.Load(), "entries, forms and rows were shown, want 10")
		again := startOn(t, crashed, workflow.Options{})
		assert.Equal(t, uint64(1), again.Instances("leave")[0].Record.Sequence, "the crash left sequence")
	})
}

// TestAFullDiskRefusesAndLosesNothing: what the store refuses was never there,
// also when the actor had already made its step.
func TestAFullDiskRefusesAndLosesNothing(t *testing.T) {
	disk := storetest.NewDisk()
	h := startOn(t, disk, workflow.Options{})
	id := h.Make(john, "leave", "")
	disk.SetFree(0)
	storetest.AwaitAccepting(t, h.Store, false)
	_, err := h.Try(john, "leave", id, "note", "", "")
	assert.ErrorIs(t, err, failure.ErrUnavailable, "on a full disk")
	// A call that was admitted just before meets the refusal inside the actor.
	for range 3 {
		_, err := h.SendUnchecked(h.ID(id), event(john, "leave", id, "note", "", ""))
		assert.ErrorIs(t, err, failure.ErrUnavailable, "inside the actor")
	}
	disk.SetFree(1 << 40)
	storetest.AwaitAccepting(t, h.Store, true)
	assert.Equal(t, ",submit", events(t, h.MustSend(john, "leave", id, "submit", "")), "after the disk had space again: history")
	h.Restart()
	assert.Equal(t, ",submit", events(t, h.MustLook(john, "leave", id)), "after a restart: history")
}

// TestAnUnknownOutcomeKeepsAwakeUntilItIsKnown, and no longer.
func TestAnUnknownOutcomeKeepsAwakeUntilItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storetest.NewDisk()
		h := startOn(t, disk, workflow.Options{IdleAfter: 2 * shard.SweepEvery})
		id := h.Make(john, "order", "")
		hanging := disk.Hold()
		done := make(chan error, 1)
		go func() {
			_, err := h.Try(john, "order", id, "pay", "", "")
			done <- err
		}()
		<-hanging
		err := <-done
		require.ErrorIs(t, err, failure.ErrOutcomeUnknown)
		clocktest.Advance(3 * workflowtest.CommitWaitMax) // until whoever asks about the outcome has not been told either
		assert.Equal(t, int64(1), h.Metrics().Awake)
		disk.Release()
		clocktest.Advance(10 * shard.SweepEvery)
		assert.Zero(t, h.Metrics().Awake, "instances are awake after the outcome was known, want none")
		assert.Equal(t, ",pay", events(t, h.MustLook(john, "order", id)), "events")
	})
}

// TestAWakingReadsNothingOlderThanItsInstance: who read a record before the instance was
// awake, got an event and slept again must not begin with it.
func TestAWakingReadsNothingOlderThanItsInstance(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(john, "leave", "")
	h.sleepAll()
	wake, err := h.ReadToWake("leave", h.ID(id))
	require.NoError(t, err)
	h.MustSend(john, "leave", id, "note", "")
	h.sleepAll()
	wake()
	assert.Equal(t, ",note,note", events(t, h.MustSend(john, "leave", id, "note", "")), "events")
}
