package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/actorstest"
	"troupe/gateway/wiretest"
)

// claimFlow has a task for approvers.
const claimFlow = `
id: claim
allow: {create: {roles: [clerk]}, read: {roles: [clerk, approver], deny: {when: '"approver" in user.roles && svcPublic.?hidden.orValue(false)'}}}
stateMachines:
  main:
    states:
      draft: {on: {send: review}}
      review:
        task: {title: 'Look at ${svcPublic.n}', priority: 60}
        on:
          approve: {target: closed, allow: {roles: [approver]}}
          back: {target: draft, allow: {roles: [approver]}}
      closed: {type: final}
`

type taskList struct {
	Tasks []struct {
		TaskID, WorkflowID, InstanceID, Title, Status, Requester string
		Assignee                                                 *string
		Events                                                   []struct{ Name string }
	}
	Next  *string
	Count *int
}

// TestInterfaceTasks holds gateway/INTERFACE.md, "Tasks", on one node and on several.
func TestInterfaceTasks(t *testing.T) {
	files := flows()
	files["workflows/claim.yaml"] = claimFlow
	s := sceneOf(startService(t, serviceOptions{Options: actorstest.Options{Files: files}}))
	const tasks, change = wiretest.Root + "/tasks", wiretest.Root + "/task"
	list := func(u user, query string) taskList {
		t.Helper()
		return wiretest.Decode[taskList](t, u.Get(t, tasks+"?workflowId=claim&"+query).Body)
	}
	ids := map[string]string{}
	for _, data := range []string{`{"svcPublic":{"n":1}}`, `{"svcPublic":{"n":2}}`, `{"svcPublic":{"n":3,"hidden":true}}`} {
		id := s.ann.Create(t, "claim", data).Record(t).ID
		s.ann.Event(t, "claim", id, "send", "")
		ids[id] = data
	}
	open := list(s.bob, "scope=open&count=true&sort=created")
	if len(open.Tasks) != 2 || open.Count == nil || *open.Count != 2 || open.Tasks[0].Title != "Look at 1" || open.Tasks[0].Requester != "ann" || len(open.Tasks[0].Events) != 2 {
		t.Fatalf("got %+v", open)
	}
	for who, u := range map[string]user{"the requester": s.ann, "a stranger": s.eve} {
		assert.Empty(t, list(u, "").Tasks, who)
	}
	first := open.Tasks[0]
	if a := s.eve.Post(t, change, `{"taskId":"`+first.TaskID+`","action":"claim"}`); a.Status != 404 {
		t.Errorf("a claim of a stranger: got %d %s", a.Status, a.Body)
	}
	if a := s.ann.Post(t, change, `{"taskId":"`+first.TaskID+`","action":"claim"}`); a.Status != 403 || !strings.Contains(a.Body, "you are not a candidate") {
		t.Errorf("a claim of the requester: got %d %s", a.Status, a.Body)
	}
	if a := s.bob.Post(t, change, `{"taskId":"`+first.TaskID+`","action":"claim"}`); a.Status != 200 || !strings.Contains(a.Body, `"assignee":"bob","assigneeName":"Bob"`) {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
	mine, left := list(s.bob, "scope=mine"), list(s.bob, "scope=open")
	assert.True(t, len(mine.Tasks) == 1 && mine.Tasks[0].TaskID == first.TaskID && len(left.Tasks) == 1, "got %+v and %+v", mine, left)
	// Who runs the place sees whose it is, and nothing that it says.
	every := s.adm.Get(t, tasks+"?scope=every&workflowId=claim&sort=created&limit=1&count=true").Body
	if !strings.Contains(every, `"title":"review","description":null,"status":"claimed"`) || !strings.Contains(every, `"assignee":"bob","assigneeName":"Bob","candidates":{`) ||
		!strings.Contains(every, `"requester":null,"requesterName":null,"form":null,"events":[],"done":null}],"next":"`) || !strings.Contains(every, `"count":`) {
		t.Errorf("every task: got %s", every)
	}
	s.ann.refuses(t, 403, "AccessDenied", tasks+"?scope=every")
	// Whoever may read the instance sees who has its task, also who could not.
	summary := s.ann.Get(t, wiretest.Root+"/instance/claim/"+first.InstanceID+"/summary").Body
	if !strings.Contains(summary, `"tasks":[{"taskId":"`+first.TaskID) || !strings.Contains(summary, `"assigneeName":"Bob"`) || !strings.Contains(summary, `"events":[]`) {
		t.Errorf("a summary for somebody who is no candidate: got %s", summary)
	}
	if a := s.ann.Post(t, wiretest.Root+"/instance/claim/"+first.InstanceID+"/comments", `{"text":"Is it much?"}`); a.Status != 200 {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
	s.bob.Event(t, "claim", first.InstanceID, "approve", "")
	done := list(s.bob, "scope=done")
	assert.True(t, len(done.Tasks) == 1 && done.Tasks[0].Status == "done" && done.Tasks[0].Title == "Look at 1", "got %+v", done)
	if a := s.bob.Get(t, tasks+"?scope=done&sort=due"); a.Status != 400 {
		t.Errorf("what is done, sorted: got %d %s", a.Status, a.Body)
	}
	shown := s.ann.Get(t, change+"/"+first.TaskID)
	if !strings.Contains(shown.Body, `"status":"done"`) || !strings.Contains(shown.Body, `"candidates":{"roles":[],"users":[],"privileges":[]}`) || !strings.Contains(shown.Body, `"events":[]`) {
		t.Errorf("the requester is shown %d %s", shown.Status, shown.Body)
	}
	if a := s.eve.Get(t, change+"/"+first.TaskID); a.Status != 404 {
		t.Errorf("a stranger is shown %d %s", a.Status, a.Body)
	}
	a := s.ann.Get(t, wiretest.Root+"/instance/claim/"+first.InstanceID+"/activity")
	for _, what := range []string{`"transitionEvent":"approve"`, `"text":"Is it much?"`, `"action":"claim"`, `"transitionEvent":"send"`} {
		at := strings.Index(a.Body, what)
		if !assert.GreaterOrEqual(t, at, 0, "%s is not there, or not behind the others: %s", what, a.Body) {
			continue
		}
		a.Body = a.Body[at:]
	}
}
