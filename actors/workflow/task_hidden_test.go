package workflow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/task"
	"troupe/actors/workflow"
)

// shelf is a workflow whose tasks are for managers, and which is read as a rule says.
func shelf(id, read string) string {
	return "id: " + id + "\nallow: {read: " + read + "}\nstateMachines: {m: {initial: wait, states: {" +
		"wait: {task: {for: {roles: [manager]}, title: 'On ${svcPublic.n}'}, on: {done: {target: end, allow: {roles: [manager]}}}}, end: {type: final}}}}\n"
}

// hiding makes tasks for managers that mary may not see, and others that she may see, which are later.
func hiding(t *testing.T, read string, hidden, own int) *harness {
	h := start(t, workflow.Options{})
	h.Publish(shelf("vault", read), shelf("open", "{roles: [manager]}"))
	h.Fill("vault", slices.Repeat([]string{`{"n":1,"owner":"nobody"}`}, hidden))
	for n := range own {
		h.Make(manager, "open", fmt.Sprintf(`{"n":%d}`, n))
	}
	return h
}

// TestTasksOfAWorkflowThatNobodyShowsCostNothing: the bound on rows is lower than the number of tasks that the reader can never see, and it does not matter.
func TestTasksOfAWorkflowThatNobodyShowsCostNothing(t *testing.T) {
	h := hiding(t, "{roles: [auditor]}", 40, 3)
	h.BoundTasks(task.Bounds{Shown: 5, Hidden: 1, Rows: 10})
	for _, sort := range []string{"due", "-due", "created", "priority", "title", "-title"} {
		for _, scope := range []task.Scope{task.ScopeOpen, task.ScopeAll} {
			page, err := h.Tasks(t.Context(), &task.ListRequest{Caller: manager, Scope: scope, Sort: sort, Limit: 2, Count: true})
			if err != nil || len(page.Items) != 2 || page.Count == nil || *page.Count != 3 {
				t.Errorf("%s by %s: got %+v, %v, want two of three", scope, sort, page, err)
			}
		}
	}
	// One that is asked for by name is no other list.
	page, err := h.Tasks(t.Context(), &task.ListRequest{Caller: manager, Scope: task.ScopeAll, WorkflowID: "vault", Limit: 2, Count: true})
	if err != nil || len(page.Items) != 0 || page.Next != "" || *page.Count != 0 {
		t.Errorf("of the hidden workflow: got %+v, %v", page, err)
	}
}

// TestTasksBehindHiddenOnes: what a condition hides does not count as what a list looks at, within a bound of its own.
func TestTasksBehindHiddenOnes(t *testing.T) {
	h := hiding(t, "{when: 'svcPublic.owner == user.id'}", 40, 3)
	want := listed(t, h, task.ListRequest{Caller: manager, Scope: task.ScopeOpen, WorkflowID: "open", Limit: 10})
	req := task.ListRequest{Caller: manager, Scope: task.ScopeOpen, Limit: 10, Count: true}
	h.BoundTasks(task.Bounds{Shown: 4, Hidden: 50, Rows: 100})
	for _, sort := range []string{"due", "-created", "title"} {
		req.Sort = sort
		page, err := h.Tasks(t.Context(), &req)
		if err != nil || len(page.Items) != 3 || page.Next != "" || page.Count == nil || *page.Count != 3 {
			t.Errorf("by %s: got %+v, %v, want all three on the first page, and their number", sort, page, err)
		}
	}
	// Beyond that bound every page goes on.
	h.BoundTasks(task.Bounds{Shown: 4, Hidden: 7, Rows: 100})
	req.Sort = "due"
	page, err := h.Tasks(t.Context(), &req)
	if err != nil || len(page.Items) != 0 || page.Next == "" || page.Count != nil {
		t.Errorf("beyond the bound: got %+v, %v", page, err)
	}
	if got := listed(t, h, req); !slices.Equal(got, want) {
		t.Errorf("beyond the bound: got %q, want %q", got, want)
	}
	req.Sort = "title"
	if _, err := h.Tasks(t.Context(), &req); !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "narrow the list") {
		t.Errorf("beyond the bound, by title: got %v", err)
	}
	if page, err := h.Tasks(t.Context(), &task.ListRequest{Caller: manager, Scope: task.ScopeOpen, WorkflowID: "open", Sort: "title", Limit: 10, Count: true}); err != nil || *page.Count != 3 {
		t.Errorf("narrowed to a workflow: got %+v, %v", page, err)
	}
}
