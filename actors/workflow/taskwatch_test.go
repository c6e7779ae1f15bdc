package workflow_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
)

// watchTasks returns what a caller is told who watches tasks from now on. end ends that.
func (h *harness) watchTasks(who *identity.Principal) (next func() *task.Event, end func() error) {
	h.t.Helper()
	events := make(chan *task.Event)
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error)
	go func() {
		reauthorize := func() (*identity.Principal, error) { return who, nil }
		ended <- h.TaskWatches.Watch(ctx, &task.WatchRequest{Caller: who, Reauthorize: reauthorize}, func(e *task.Event) error {
			if e.Kind != task.Heartbeat {
				events <- e
			}
			return nil
		})
	}()
	e := <-events
	require.Equal(h.t, task.Opened, e.Kind)
	return func() *task.Event { return <-events }, func() error { cancel(); return <-ended }
}

// TestTasksAreWatched holds gateway/INTERFACE.md, "Watching tasks".
func TestTasksAreWatched(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(desk)
	told, end := h.watchTasks(manager)
	next := func(what string, status ...task.Status) *task.Event {
		t.Helper()
		e := told()
		var got []task.Status
		for _, i := range e.Items {
			got = append(got, i.Status)
		}
		assert.True(t, e.Kind == task.Changed && slices.Equal(got, status), "%s: got %v %v, want %v", what, e.Kind, got, status)
		return e
	}
	id := h.Make(requester, "desk", `{"amount":5}`)
	h.MustSend(requester, "desk", id, "submit", "")
	next("submitted", task.Open)
	of := one(t, h, manager2, task.ScopeOpen)
	claim := func(who *identity.Principal, action message.TaskAction) {
		h.Must(workflowtest.Second(h.ChangeTask(t.Context(), &message.TaskChange{Caller: who, TaskID: of.TaskID(), Action: action})))
	}
	claim(manager2, message.Claim)
	next("claimed by another")
	claim(manager2, message.Release)
	next("released", task.Open)
	h.MustSend(manager, "desk", id, "change", `{"amount":6}`) // changes a title alone, which is not told
	claim(manager, message.Claim)
	if e := next("claimed", task.Taken); len(e.Items) == 1 && e.Items[0].Title.For() != "Approve 6" {
		t.Errorf("got the title %v", e.Items[0].Title)
	}
	h.MustSend(manager, "desk", id, "reject", "")
	next("decided")
	assert.ErrorIs(t, end(), context.Canceled)
}

// veiled has a task for managers, who may not read what is hidden.
const veiled = `
id: veiled
allow: {read: {roles: [manager, clerk], deny: {roles: [manager], when: svcPublic.hidden}}}
context: {svcPublic: {hidden: false}}
stateMachines:
  main:
    initial: waits
    states:
      waits: {task: {for: {roles: [manager]}}, on: {go: rests, hide: {}}}
      rests: {task: false, on: {back: waits, hide: {}}}
`

// TestWatchersHearOfWhatTheyMayRead: of an instance that the caller may not read any more, a watch says once that its tasks went, and only
// where it has said that they were there.
func TestWatchersHearOfWhatTheyMayRead(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(veiled)
	told, end := h.watchTasks(manager)
	defer func() { _ = end() }()
	next := func(what, id string, tasks int) {
		t.Helper()
		e := told()
		assert.True(t, e.Kind == task.Changed && e.InstanceID == id && len(e.Items) == tasks, "%v %v %v %v %v %v", what, e.Kind, e.InstanceID, len(e.Items), tasks, id)
	}
	send := func(id, name, data string) { t.Helper(); h.MustSend(clerk, "veiled", id, name, data) }

	id := h.Make(clerk, "veiled", "")
	next("begun", id, 1)
	send(id, "hide", `{"hidden":true}`)
	send(id, "go", "")
	next("gone, and hidden", id, 0)
	send(id, "back", "")
	send(id, "go", "")

	other := h.Make(clerk, "veiled", "")
	next("another begun", other, 1)
	send(other, "go", "")
	next("gone", other, 0)
	send(other, "hide", `{"hidden":true}`)
	send(other, "back", "") // NB: the watcher was told that there is none
	last := h.Make(clerk, "veiled", "")
	next("a third begun", last, 1)
	send(last, "go", "")
	next("gone", last, 0)
}
