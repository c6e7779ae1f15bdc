package gateway_test

import (
	"encoding/json"
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

// decideFlow has a task with a form, which its own employees cannot decide.
const decideFlow = `
id: decide
allow: {create: {roles: [employee]}}
events: {approve: {data: {type: object, required: [amount], properties: {amount: {type: integer}, why: {type: string}}}}, later: {data: {type: object, additionalProperties: false}}}
stateMachines:
  main:
    states:
      draft: {on: {send: review}}
      review:
        task: {form: verdict}
        on:
          approve: {target: done, allow: {roles: [boss]}}
          refuse: {target: done, allow: {roles: [boss]}}
          later: {allow: {roles: [boss]}}
          mend: {allow: {roles: [boss]}}
        after: {P9D: done}
      done: {type: final}
`

const verdictTemplate = "{id: verdict, name: Verdict, enabled: false, submit: approve, schema: {type: object, required: [amount], properties: {amount: {type: integer}, why: {type: string}}}}\n"

// taskView is the form of a task as its page gets it.
type taskView struct {
	Task     struct{ TaskID, Status string }
	Events   []string
	Template json.RawMessage
	Draft    *fullDraft
	Editable bool
}

func (u user) taskView(t testing.TB, task string) taskView {
	t.Helper()
	a := u.sends(t, "GET task/"+task, "")
	a.WantStatus(t, 200)
	return wiretest.Decode[taskView](t, a.Body)
}

// TestInterfaceTaskForms holds gateway/INTERFACE.md, "Forms of tasks", on one node and on several.
func TestInterfaceTaskForms(t *testing.T) {
	o := portalOptions()
	o.Files = maps.Clone(o.Files)
	o.Files["identity.yaml"] = filesOf("portal")["identity.yaml"] + "  - {id: mia, name: Mia, roles: [boss]}\n"
	o.Files["workflows/decide.yaml"], o.Files["forms/verdict.yaml"] = decideFlow, verdictTemplate
	s := startService(t, o)
	ann, bob, mia, kim, eve := s.desk("ann"), s.desk("bob"), s.desk("mia"), s.desk("kim"), s.desk("eve")
	begin := func() (instance, task string) {
		t.Helper()
		instance = ann.Create(t, "decide", "").Record(t).ID
		ann.Event(t, "decide", instance, "send", "")
		list := wiretest.Decode[taskList](t, bob.Get(t, wiretest.Root+"/tasks?workflowId=decide&scope=open&sort=-created&limit=1").Body)
		require.True(t, len(list.Tasks) == 1 && list.Tasks[0].InstanceID == instance, "got the tasks %+v, want one of %s", list, instance)
		return instance, list.Tasks[0].TaskID
	}
	submit := func(u user, task, body string, headers ...string) answer {
		t.Helper()
		return u.sends(t, "POST task/"+task+"/submit", body, headers...)
	}
	instance, task := begin()

	t.Run("who sees it", func(t *testing.T) {
		v := bob.taskView(t, task)
		assert.True(t, v.Task.TaskID == task && v.Editable && v.Draft == nil && len(v.Template) >= 10 && len(v.Events) == 3, v)
		kim.sends(t, "GET task/"+task, "").WantFault(t, 403, "Access denied")
		kim.sends(t, "PUT task/"+task+"/draft", draftOf(`{}`)).WantFault(t, 403, "Access denied")
		submit(kim, task, `{"data":{"amount":1}}`).WantFault(t, 403, "Access denied")
		eve.sends(t, "GET task/"+task, "").WantFault(t, 403, "Access denied") // has no privilege of the portal
		for _, gone := range []string{instance + "-99-0", "x", instance} {
			bob.sends(t, "GET task/"+gone, "").WantFault(t, 404, "Not found")
			submit(bob, gone, `{"data":{}}`).WantFault(t, 404, "Not found")
		}
	})
	t.Run("drafts", func(t *testing.T) { draftsOfTasks(t, s, task) })
	t.Run("claims", func(t *testing.T) {
		claim := func(action string) {
			mia.Post(t, wiretest.Root+"/task", `{"taskId":"`+task+`","action":"`+action+`"}`).WantStatus(t, 200)
		}
		claim("claim")
		v := bob.taskView(t, task)
		assert.True(t, !v.Editable && v.Draft != nil, "got %+v, want what is only read", v)
		bob.sends(t, "PUT task/"+task+"/draft", draftOf(`{}`)).WantFault(t, 409, "Conflict")
		submit(bob, task, `{"data":{"amount":1}}`).WantFault(t, 409, "Conflict")
		claim("release")
	})
	t.Run("submissions", func(t *testing.T) {
		for _, c := range []struct {
			body, header string
			status       int
			label        string
		}{
			{`{"data":{"amount":"much"}}`, "", 400, "Bad request"},
			{`{"data":{}}`, "", 400, "Bad request"},
			{`{"data":{"amount":1},"event":"send"}`, "", 400, "Bad request"},
			{`{"data":{"amount":1},"event":"later"}`, "", 400, "Bad request"}, // the event refuses the field
			{`{"data":{"amount":1}}`, `If-Match: "9"`, 412, "Precondition failed"},
		} {
			headers := []string{c.header}
			if c.header == "" {
				headers = nil
			}
			submit(bob, task, c.body, headers...).WantFault(t, c.status, c.label)
		}
		submit(bob, task, `{"data":{"amount":1},"event":"mend"}`).Record(t) // the task stays, and its sender's draft goes
		assert.Nil(t, bob.taskView(t, task).Draft, "after a submission: got the draft")
		assert.NotNil(t, mia.taskView(t, task).Draft, "the draft of somebody else went with a submission that left the task")
		tag := bob.sends(t, "GET task/"+task, "").Header.Get("ETag")
		first := submit(bob, task, `{"data":{"amount":7}}`, "Idempotency-Key: verdict", "If-Match: "+tag)
		r := first.Record(t)
		assert.True(t, string(r.Public) == `{"amount":7}` && r.States[0].NodeID == "done", "got %+v", r)
		wantSameAnswer(t, submit(bob, task, `{"data":{"amount":7}}`, "Idempotency-Key: verdict", "If-Match: "+tag), first)
		submit(bob, task, `{"data":{"amount":8}}`, "Idempotency-Key: verdict").WantFault(t, 422, "Unprocessable")
		submit(bob, task, `{"data":{"amount":7}}`).WantFault(t, 404, "Not found")
		mia.sends(t, "GET task/"+task, "").WantFault(t, 404, "Not found")
		mia.sends(t, "GET task/"+task+"/draft", "").WantFault(t, 404, "Not found")
	})
	t.Run("a template that changed, or went", func(t *testing.T) {
		_, task := begin()
		bob.sends(t, "PUT task/"+task+"/draft", draftOf(`{"why":3,"amount":1}`)).WantStatus(t, 200)
		s.Write("forms/verdict.yaml", verdictTemplate[:len(verdictTemplate)-len("why: {type: string}}}}\n")]+"x: {type: string}}}}\n")
		v := bob.taskView(t, task)
		assert.True(t, v.Draft.TemplateChanged && len(v.Draft.Misfits) == 1 && v.Draft.Misfits[0].Path == "/why", "got %+v", v.Draft)
	})
}

func draftOf(data string) string { return `{"data":` + data + `}` }

func draftsOfTasks(t *testing.T, s *service, task string) {
	bob, mia := s.desk("bob"), s.desk("mia")
	path := "task/" + task + "/draft"
	bob.sends(t, "GET "+path, "").WantFault(t, 404, "Not found")
	save := func(u user, data string, headers ...string) (answer, string) {
		t.Helper()
		a := u.sends(t, "PUT "+path, draftOf(data), headers...)
		return a, strconv.Quote(strconv.FormatUint(wiretest.Decode[draft](t, a.Body).Revision, 10))
	}
	a, first := save(bob, `{"why":"so"}`, "If-None-Match: *")
	assert.True(t, a.Status == 200 && a.Header.Get("ETag") == first, "got %d %s with the tag %s", a.Status, a.Body, a.Header.Get("ETag"))
	save(mia, `{"why":"no"}`)
	got := bob.sends(t, "GET "+path, "")
	assert.True(t, string(wiretest.Decode[draft](t, got.Body).Data) == `{"why":"so"}` && got.Header.Get("ETag") == first, "got %d %s", got.Status, got.Body)
	a, _ = save(bob, `{}`, "If-None-Match: *")
	assert.Equal(t, 412, a.Status, "a second first draft")
	a, second := save(bob, `{"why":3}`, "If-Match: "+first)
	assert.True(t, a.Status == 200 && second != first, "got %d %s", a.Status, a.Body)
	bob.sends(t, "DELETE "+path, "", "If-Match: "+first).WantFault(t, 412, "Precondition failed")
	bob.sends(t, "DELETE "+path, "", "If-Match: "+second).WantStatus(t, 200)
	bob.sends(t, "GET "+path, "").WantFault(t, 404, "Not found")
	save(bob, `{"why":"again"}`)
	v := bob.taskView(t, task)
	assert.True(t, v.Draft != nil && string(v.Draft.Data) == `{"why":"again"}` && !v.Draft.TemplateChanged, "got %+v", v.Draft)
}
