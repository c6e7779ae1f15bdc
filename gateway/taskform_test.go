package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/formportal"
)

// TestTaskForms holds gateway/INTERFACE.md, "Forms of tasks".
func TestTaskForms(t *testing.T) {
	s := withUsers(t)
	portal := &fakePortal{}
	s.Open(Services{Workflows: s.workflows, Credentials: fakeCredentials{}, Portal: portal})
	const id = instanceOne + "-2-0"
	ask := func(method, path, body string, headers ...string) answer {
		return s.do(t, request{Method: method, Path: "/form-runtime/api/v1/task/" + id + path, Body: body, Headers: append(headers, withPortal, jsonLine, "Accept-Language: de")})
	}
	a := ask("GET", "", "")
	digest := form.DigestOf(nil).String()
	draft := `{"revision":7,"savedAt":8,"data":{"days":4},"template":"` + digest + `","templateChanged":true,"misfits":[{"path":"/days","reason":"type"}]}`
	want := `{"task":` + strings.Replace(shownTaskOne, "John Doe", "john.doe", 1) + `,"events":["approve"],"template":{"formId":"leave-form","name":"","description":"","digest":"` + digest + `"},"data":{},"draft":` + draft + `,"states":[],"editable":true}`
	assert.True(t, a.Status == 200 && a.Body == want && a.Header.Get("Etag") == `"2"` && strings.Contains(a.Header.Get("Vary"), "Accept-Language"),
		"got %d %v %s\nwant %s", a.Status, a.Header, a.Body, want)
	a = ask("GET", "/draft", "")
	assert.True(t, a.Status == 200 && a.Body == draft && a.Header.Get("Etag") == `"7"`, "the draft: got %d %s", a.Status, a.Body)
	a = ask("PUT", "/draft", `{"data":{"a":1},"template":"`+digest+`"}`, `If-Match: "6", "7"`)
	assert.True(t, a.Status == 200 && a.Body == `{"revision":7,"savedAt":8}` && a.Header.Get("Etag") == `"7"`, "saved: got %d %s", a.Status, a.Body)
	kept, _ := portal.asked.(*formportal.TaskDraftRequest)
	assert.Equal(t, id+`{"a":1}`+digest+` [6 7] false`, fmt.Sprint(kept.TaskID, string(kept.Data), kept.Template, kept.IfMatch, kept.IfAbsent))
	a = ask("DELETE", "/draft", "", "If-Match: *")
	assert.True(t, a.Status == 200 && a.Body == `{}`, "dropped: got %d %s", a.Status, a.Body)
	kept, _ = portal.asked.(*formportal.TaskDraftRequest)
	assert.True(t, kept.Data == nil && kept.MustExist, "dropped: asked for %+v", kept)
	a = ask("POST", "/submit", taskSubmitBody, `If-Match: "2"`, "Idempotency-Key: k", "Prefer: return=minimal")
	sent, _ := portal.asked.(*formportal.TaskSubmitRequest)
	got := fmt.Sprint(sent.TaskID, sent.Event, string(sent.Data), sent.IfMatch, sent.Retry.Key, sent.WithHistory)
	assert.True(t, a.Status == 200 && got == id+`approve{"days":4}[2]kfalse` && a.Header.Get("Etag") == `"3"`, "%v %v %v", a.Status, a.Body, got)
	calls := portal.calls()
	for _, body := range []string{``, `[]`, `{}`, `{"event":"a"}`, `{"data":1}`, `{"data":{},"event":1}`, `{"data":{},"x":1}`} {
		a := ask("POST", "/submit", body)
		assert.Equal(t, 400, a.Status, "%v %v", body, a.Body)
	}
	assert.Equal(t, calls, portal.calls(), "a request that is wrong was carried out")
	for err, want := range map[error]int{failure.ErrClaimed: 409, failure.ErrForbidden: 403, failure.ErrNotFound: 404, failure.ErrPrecondition: 412} {
		portal.setFail(err)
		answers := []answer{ask("PUT", "/draft", draftBody), ask("POST", "/submit", taskSubmitBody)}
		if want < 409 {
			answers = append(answers, ask("GET", "", ""), ask("GET", "/draft", ""))
		}
		for _, a := range answers {
			assert.True(t, a.Status == want && (want != 409 || a.Message() == "the task is assigned to someone else"), "%v: got %d %s", err, a.Status, a.Body)
		}
	}
}
