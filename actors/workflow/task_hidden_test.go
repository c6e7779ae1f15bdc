package workflow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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
	h.BoundTasks(task.Bounds{Shown: 5, Hidden: 1, Rows: 10, Cost: 1_000_000})
	for _, sort := range []string{"due", "-due", "created", "priority", "title", "-title"} {
		for _, scope := range []task.Scope{task.ScopeOpen, task.ScopeAll} {
			page, err := h.Worklists.List(t.Context(), &task.ListRequest{Caller: manager, Scope: scope, Sort: sort, Limit: 2, Count: true})
			assert.True(t, err == nil && len(page.Items) == 2 && page.Count != nil && *page.Count == 3, "%v %v %v %v", scope, sort, page, err)
		}
	}
	// One that is asked for by name is no other list.
	page, err := h.Worklists.List(t.Context(), &task.ListRequest{Caller: manager, Scope: task.ScopeAll, WorkflowID: "vault", Limit: 2, Count: true})
	assert.True(t, err == nil && len(page.Items) == 0 && page.Next == "" && *page.Count == 0, "of the hidden workflow: got %+v, %v", page, err)
}

// TestTasksBehindHiddenOnes: what a condition hides does not count as what a list looks at, within a bound of its own.
func TestTasksBehindHiddenOnes(t *testing.T) {
	h := hiding(t, "{when: 'svcPublic.owner == user.id'}", 40, 3)
	want := listed(t, h, task.ListRequest{Caller: manager, Scope: task.ScopeOpen, WorkflowID: "open", Limit: 10})
	req := task.ListRequest{Caller: manager, Scope: task.ScopeOpen, Limit: 10, Count: true}
	h.BoundTasks(task.Bounds{Shown: 4, Hidden: 50, Rows: 100, Cost: 1_000_000})
	for _, sort := range []string{"due", "-created", "title"} {
		req.Sort = sort
		page, err := h.Worklists.List(t.Context(), &req)
		assert.True(t, err == nil && len(page.Items) == 3 && page.Next == "" && page.Count != nil && *page.Count == 3, "%v %v %v", sort, page, err)
	}
	// Beyond that bound every page goes on.
	h.BoundTasks(task.Bounds{Shown: 4, Hidden: 7, Rows: 100, Cost: 1_000_000})
	req.Sort = "due"
	page, err := h.Worklists.List(t.Context(), &req)
	assert.True(t, err == nil && len(page.Items) == 0 && page.Next != "" && page.Count == nil, "beyond the bound: got %+v, %v", page, err)
	got := listed(t, h, req)
	assert.True(t, slices.Equal(got, want), "beyond the bound: got %q, want %q", got, want)
	req.Sort = "title"
	_, err = h.Worklists.List(t.Context(), &req)
	assert.True(t, errors.Is(err, failure.ErrInvalid) && strings.Contains(err.Error(), "narrow the list"), "beyond the bound, by title: got %v", err)
	page, err = h.Worklists.List(t.Context(), &task.ListRequest{Caller: manager, Scope: task.ScopeOpen, WorkflowID: "open", Sort: "title", Limit: 10, Count: true})
	assert.True(t, err == nil && *page.Count == 3, "narrowed to a workflow: got %+v, %v", page, err)
}

// TestDearRulesEndAPage: what conditions cost bounds a page as well, and no task gets lost where one ends, also when a single instance costs more.
func TestDearRulesEndAPage(t *testing.T) {
	const dear = "lists.range(300).all(x, svcPublic.n == 1 && (!(x in lists.range(100)) || x < 100))" // some 30,000 units
	for _, c := range []struct {
		rule  string
		bound uint64
		want  int // tasks in all
		pages int // at least
	}{
		{"{when: '!" + dear + "'}", 1_000_000, 3, 1},
		{"{when: '!" + dear + "'}", 100_000, 3, 3},
		{"{when: '!" + dear + "'}", 1_000, 3, 12}, // each fills a page
		{"{when: '" + dear + "'}", 1_000_000, 15, 1},
		{"{when: '" + dear + "'}", 100_000, 15, 3},
	} {
		h := hiding(t, c.rule, 12, 3)
		h.BoundTasks(task.Bounds{Shown: 100, Hidden: 100, Rows: 1000, Cost: c.bound})
		req := task.ListRequest{Caller: manager, Scope: task.ScopeOpen, Limit: 100, Count: true}
		pages, got := 0, map[string]bool{}
		for more := true; more; more = req.Cursor != "" {
			page, err := h.Worklists.List(t.Context(), &req)
			h.Must(err)
			for _, i := range page.Items {
				got[i.TaskID()] = true
			}
			if pages++; page.Count != nil && *page.Count != int64(c.want) {
				t.Errorf("%s, %d: a count of %d", c.rule, c.bound, *page.Count)
			}
			req.Cursor = page.Next
		}
		assert.True(t, len(got) == c.want && pages >= c.pages, "%s, %d: %d tasks on %d pages, want %d on %d or more", c.rule, c.bound, len(got), pages, c.want, c.pages)
	}
}
