package workflow_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// slips has a task with a form, which an event of people, a timer and a migration can end.
const slips = `
id: slips
stateMachines:
  main:
    states:
      wait: {task: {form: slip}, on: {mend: {}, again: {target: wait, reenter: true}, go: {target: done, guard: '!has(event.data.no)'}}}
      done: {type: final}
`

// taskOf is the name of an open task of an instance that somebody may take over.
func (h *harness) taskOf(who *identity.Principal, id string) string {
	h.t.Helper()
	page, err := h.Worklists.List(h.t.Context(), &task.ListRequest{Caller: who, Scope: task.ScopeAll, Limit: 10})
	h.Must(err)
	for _, i := range page.Items {
		if i.InstanceID == id {
			return i.TaskID()
		}
	}
	h.t.Fatalf("%s has no task of %s", who.ID, id)
	return ""
}

func (h *harness) taskForm(who *identity.Principal, id string) message.TaskForm {
	h.t.Helper()
	name, err := h.Worklists.LocateForm(h.t.Context(), id)
	h.Must(err)
	return message.TaskForm{Caller: who, Task: name}
}

func (h *harness) keepTaskDraft(who *identity.Principal, id, data string) form.Draft {
	h.t.Helper()
	d, err := h.SaveTaskDraft(&message.TaskDraft{TaskForm: h.taskForm(who, id), Data: value(data)})
	h.Must(err)
	return d
}

// taskDrafts counts the stored drafts for tasks.
func (h *harness) taskDrafts() (n int) {
	h.EachRow(func(k key.Parts, _, _ []byte) {
		if k.Table == "taskdraft" {
			n++
		}
	})
	return n
}

// TestDraftsOfTasksLiveAsLongAsTheirTask over a crash, too.
func TestDraftsOfTasksLiveAsLongAsTheirTask(t *testing.T) {
	disk := storetest.NewDisk()
	h := &harness{workflowtest.Start(t, workflowtest.Options{Disk: disk}), t}
	h.Publish(slips)
	id := h.Make(john, "slips", "")
	first := h.taskOf(john, id)
	kept := h.keepTaskDraft(john, first, `{"a":1}`)
	h.keepTaskDraft(mary, first, `{"b":2}`)
	h = &harness{workflowtest.Start(t, workflowtest.Options{Disk: disk.AfterCrash()}), t}
	h.Publish(slips)
	v, err := h.TaskForm(new(h.taskForm(john, first)))
	h.Must(err)
	assert.True(t, v.Draft != nil && v.Draft.Revision == kept.Revision && string(v.Draft.Data) == `{"a":1}` && v.Editable && len(v.Item.Events) == 3, "%v %v", v, v.Draft)
	assert.Greater(t, h.keepTaskDraft(john, first, `{"a":2}`).Revision, kept.Revision, "the revision went")
	h.MustSend(john, "slips", id, "mend", "")
	assert.Equal(t, 2, h.taskDrafts(), "an event that leaves the task")
	h.MustSend(john, "slips", id, "again", "")
	assert.Zero(t, h.taskDrafts(), "the node was left")
	second := h.taskOf(john, id)
	_, err = h.TaskForm(new(h.taskForm(john, first)))
	assert.True(t, errors.Is(err, failure.ErrNotFound) && second != first, "a task that ended: got %v", err)
	h.keepTaskDraft(mary, second, `{}`)
	submit := &message.TaskSubmit{TaskForm: h.taskForm(john, second), Event: "go", Data: value(`{"no":1}`)}
	_, err = h.SubmitTask(submit)
	assert.ErrorIs(t, err, failure.ErrNotAllowed, "an event that nothing takes")
	submit.Data = value(`{}`)
	h.Must(workflowtest.Second(h.SubmitTask(submit)))
	assert.Zero(t, h.taskDrafts(), "somebody acted")
	h.checkNoLeftovers()
}
