package workflow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
)

var operator = workflowtest.Principal("olga", nil, string(identity.Workflows))

// TestEveryTask holds what who runs the service sees of tasks that they may not read, and what they may do with them.
func TestEveryTask(t *testing.T) {
	h := start(t, workflow.Options{})
	named := strings.NewReplacer("states: {wait: {", "states: {wait: {label: Waits, ", "title: 'On ${svcPublic.n}'", "title: 'On ${svcPublic.n}', due: '${svcPublic.due}', priority: 70, form: slip")
	h.Publish(named.Replace(shelf("vault", "{when: 'svcPublic.owner == user.id'}")), desk,
		strings.Replace(shelf("nobodys", "{roles: [auditor]}"), "roles: [manager]}, title", "users: ['"+strings.Repeat("x", 300)+"']}, title", 1))
	for n := range 9 {
		h.Make(requester, "vault", fmt.Sprintf(`{"n":%d,"owner":"mary","due":"P%dD"}`, n, 9-n))
	}
	h.MustSend(requester, "desk", h.Make(requester, "desk", `{"amount":5,"due":"PT1H"}`), "submit", "")
	lost := h.Make(requester, "nobodys", `{}`)
	every := func(req task.ListRequest) []string {
		t.Helper()
		req.Caller, req.Scope = operator, task.ScopeEvery
		return listed(t, h, req)
	}
	all := every(task.ListRequest{Limit: 3, Sort: "created"})
	if len(all) != 12 || !strings.HasPrefix(all[11], lost) { // one of desk waits beside the one that was asked for
		t.Errorf("got %q", all)
	}
	byDue := every(task.ListRequest{Limit: 2})
	assert.True(t, len(byDue) == 12 && slices.IsSorted(dueOf(t, h, byDue)), "by due: got %q", byDue)
	down := every(task.ListRequest{Limit: 5, Sort: "-due"})
	if slices.Reverse(down); !slices.Equal(down, byDue) {
		t.Errorf("by due, down: got %q", down)
	}
	page, err := h.Worklists.List(t.Context(), &task.ListRequest{Caller: operator, Scope: task.ScopeEvery, WorkflowID: "vault", Sort: "title", Limit: 3, Count: true, Query: "waits"})
	require.True(t, err == nil && len(page.Items) == 3 && page.Next != "" && *page.Count == 9, "of a workflow: got %+v, %v", page, err)
	i := page.Items[0]
	if i.Title.For() != "Waits" || len(i.Description) != 0 || i.Requester != "" || i.Form != "" || len(i.Events) != 0 || !i.IsBlind || i.Priority != 70 || i.Due.IsZero() ||
		i.Status != task.Open || !slices.Equal(i.Candidates.Roles, []string{"manager"}) || i.At.Node != "wait" {
		t.Errorf("got %+v", i)
	}
	for _, f := range []string{`{"svcPublic.n":1}`, `{"title":{"$ne":"x"},"$or":[{"status":"open"},{"svcPublic.n":{"$gt":0}}]}`} {
		_, err := h.Worklists.List(t.Context(), &task.ListRequest{Caller: operator, Scope: task.ScopeEvery, Filter: f, Limit: 3})
		assert.ErrorIs(t, err, failure.ErrInvalid, "filter %s", f)
	}
	assert.Len(t, every(task.ListRequest{Filter: `{"nodeId":"wait","status":"open","states.nodeId":"wait","requester":null,"title":{"$in":["Waits","wait"]}}`, Limit: 20}), 10, "filtered")
	for _, q := range []string{"On 1", "rita"} { // what is in a title, and who asked
		assert.Empty(t, every(task.ListRequest{Query: q, Limit: 20}), "q=%s", q)
	}
	for _, who := range deskPeople {
		_, err := h.Worklists.List(t.Context(), &task.ListRequest{Caller: who, Scope: task.ScopeEvery, Limit: 3})
		assert.Equal(t, who != overseer, errors.Is(err, failure.ErrForbidden), "%v %v", who.ID, err)
	}
	// She assigns what she may not read, and sees no more of it.
	change := func(who *identity.Principal, action message.TaskAction, to *identity.Principal) (*task.Item, error) {
		return h.ChangeTask(t.Context(), &message.TaskChange{Caller: who, TaskID: i.TaskID(), Action: action, To: to})
	}
	got, err := change(operator, message.Assign, manager)
	assert.True(t, err == nil && got.Assignee == "mary" && got.IsBlind && got.Title.For() == "Waits" && got.Requester == "" && len(got.Events) == 0 && got.Form == "",
		"assigned: got %+v, %v", got, err)
	mine := one(t, h, manager, task.ScopeMine)
	assert.True(t, mine.TaskID() == i.TaskID() && !mine.IsBlind, "mary has %+v", mine)
	if _, err := change(operator, message.Assign, manager2); !errors.Is(err, failure.ErrInvalid) { // who may not read it
		t.Errorf("assigned to max: %v", err)
	}
	assert.Len(t, every(task.ListRequest{Filter: `{"assignee":"mary"}`, Limit: 20}), 1, "mary's")
	got, err = change(operator, message.Release, nil)
	assert.True(t, err == nil && got.Assignee == "" && got.IsBlind, "released: got %+v, %v", got, err)
	for who, action := range map[*identity.Principal]message.TaskAction{operator: message.Claim, manager2: message.Release, clerk: message.Assign} {
		_, err := change(who, action, manager)
		assert.ErrorIs(t, err, failure.ErrNotFound, "%s by %s", action, who.ID)
	}
	_, err = h.Worklists.Task(t.Context(), operator, i.TaskID())
	assert.ErrorIs(t, err, failure.ErrNotFound, "shown")
}

// dueOf are the due times of the tasks that are listed so.
func dueOf(t *testing.T, h *harness, listed []string) (out []string) {
	t.Helper()
	page, err := h.Worklists.List(t.Context(), &task.ListRequest{Caller: operator, Scope: task.ScopeEvery, Limit: 100})
	h.Must(err)
	due := map[string]string{}
	for _, i := range page.Items {
		due[i.TaskID()] = "never"
		if !i.Due.IsZero() {
			due[i.TaskID()] = i.Due.Format(time.RFC3339)
		}
	}
	for _, id := range listed {
		out = append(out, due[id])
	}
	return out
}
