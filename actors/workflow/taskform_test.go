package workflow_test

import (
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
)

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
