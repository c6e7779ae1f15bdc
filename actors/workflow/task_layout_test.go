package workflow_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"troupe/actors/task"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence"
)

// candidateRows counts the rows of worklists of candidates: those that stand by workflows, and those of before.
func candidateRows(h *harness) (grouped, earlier int) {
	h.EachRow(func(k persistence.Key, _, _ []byte) {
		switch {
		case k.Table != "work" || k.Kind == 'd' || k.Kind == 'm':
		case k.Workflow != "":
			grouped++
		default:
			earlier++
		}
	})
	return grouped, earlier
}

// TestWorklistsOfAnEarlierProgram: rows that a program of level 3 has written are in the lists, go with their tasks, and are written anew once.
func TestWorklistsOfAnEarlierProgram(t *testing.T) {
	var level atomic.Int64
	level.Store(3)
	h := start(t, workflow.Options{Level: func() int { return int(level.Load()) }})
	h.Publish(desk)
	var ids []string
	for range 6 {
		id := h.Make(requester, "desk", `{"amount":5}`)
		h.MustSend(requester, "desk", id, "submit", "")
		ids = append(ids, id)
	}
	check := func(when string) {
		t.Helper()
		for _, who := range deskPeople {
			got := listed(t, h, task.ListRequest{Caller: who, Scope: task.ScopeAll, Limit: 3})
			if want := inOrder(expected(t, h, who, task.ScopeAll), "due"); !slices.Equal(got, want) {
				t.Errorf("%s: %s has %q, want %q", when, who.ID, got, want)
			}
		}
		checkWorkRows(t, h)
	}
	check("at level 3")
	if grouped, earlier := candidateRows(h); grouped != 0 || earlier == 0 {
		t.Errorf("at level 3: %d rows by workflow and %d others", grouped, earlier)
	}
	level.Store(4)
	h.MustSend(manager, "desk", ids[0], "approve", "")
	check("while some are of level 3")
	if grouped, _ := candidateRows(h); grouped == 0 {
		t.Error("a task that begins at level 4 has rows of before")
	}
	h.sleepAll()
	h.Restart()
	h.Publish(desk)
	workflowtest.Await(t, "the rows", func() bool { _, earlier := candidateRows(h); return earlier == 0 })
	check("at level 4")
	h.MustSend(manager, "desk", ids[1], "approve", "")
	check("later")
}
