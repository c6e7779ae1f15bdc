package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/statemachine/document"
)

// TestShowingDefinitions holds gateway/INTERFACE.md, "Published definitions".
func TestShowingDefinitions(t *testing.T) {
	s := startServer(t, Options{}, nil)
	const path = "/workflow/api/v1/definitions"
	for target, want := range map[string]string{
		path:              `{"definitions":[{"id":"leave","name":"Leave","current":2,"creatable":true,"versions":[1,2],"owners":{"roles":["clerk"],"privileges":[],"users":[]},"publisher":"ann"}]}`,
		path + "/leave":   `{"id":"leave","version":1,"current":false,"file":"workflows/leave.yaml","text":"id: leave\n","refs":{"a.schema.json":"{}"},"owners":{"roles":[],"privileges":[],"users":[]},"publisher":null}`,
		path + "/leave/7": `{"id":"leave","version":7,"current":false,"file":"workflows/leave.yaml","text":"id: leave\n","refs":{"a.schema.json":"{}"},"owners":{"roles":[],"privileges":[],"users":[]},"publisher":null}`,
	} {
		a := s.do(t, request{Method: "GET", Path: target, Headers: []string{withModToken}})
		assert.True(t, a.Status == 200 && a.Body == want, "%s: got %d %s, want %s", target, a.Status, a.Body, want)
	}
	for _, version := range []string{"0", "01", "+1", "-1", "1.0", "x", "9223372036854775808", "99999999999999999999"} {
		assert.Equal(t, 404, s.do(t, request{Method: "GET", Path: path + "/leave/" + version, Headers: []string{withModToken}}).Status, version)
	}
}

// TestPublishingADefinition holds gateway/INTERFACE.md, "Publishing a definition"; what becomes of
// it is held by the tests of actors/catalog and cmd/troupe.
func TestPublishingADefinition(t *testing.T) {
	s := startServer(t, Options{BodyBytesMax: 4096}, nil)
	const path, text = "/workflow/api/v1/definitions/leave", "id: leave\nversion: 3\n"
	ask := func(target, contentType, body string) answer {
		r := request{Method: "PUT", Path: target, Body: body, Headers: []string{withModToken}}
		if contentType != "" {
			r.Headers = append(r.Headers, "Content-Type: "+contentType)
		}
		return s.do(t, r)
	}
	long := text + strings.Repeat("#", 5000) // NB: its own bound is larger
	for _, c := range []struct{ target, contentType, body, asked string }{
		{path, "application/yaml", long, "leave  body.yaml " + long + " false"},
		{path + "?dryRun=false", "application/json", "{}", "leave  body.json {} false"},
		{path + "/3?dryRun=true", "", definitionBody, "leave 3 body.yaml " + definitionBody + " true"},
		{path + "/03", "application/yaml; charset=utf-8", text, "leave 03 body.yaml " + text + " false"},
	} {
		a := ask(c.target, c.contentType, c.body)
		want := `{"id":"leave","version":3,"current":true,"warnings":[]}`
		assert.True(t, a.Status == 200 && a.Body == want, "%s: got %d %s, want %s", c.target, a.Status, a.Body, want)
		want = "mod " + c.asked
		assert.Equal(t, want, fmt.Sprint(s.workflows.asked), "%s: asked for %.80v", c.target, s.workflows.asked)
	}
	a := ask(path, "text/yaml", text)
	assert.True(t, a.Status == 415 && strings.Contains(a.Message(), "application/yaml"), "another type: got %d %s", a.Status, a.Body)
	a = ask(path, "application/yaml", strings.Repeat("#", 1<<20+1))
	assert.Equal(t, 413, a.Status, "too long, %s", a.Body)
	s.workflows.setFail(&failure.Error{Kind: failure.ErrInvalid, Reason: "1 fault", Cause: document.Faults{{File: "body.yaml", Line: 2, Reason: "wrong"}}})
	want := `{"error":"InvalidContent","message":"1 fault","faults":[{"file":"body.yaml","line":2,"column":0,"reason":"wrong"}]}`
	a = ask(path, "application/yaml", text)
	assert.True(t, a.Status == 400 && a.Body == want, "got %d %s, want %s", a.Status, a.Body, want)
	for kind, label := range map[failure.Kind]string{failure.ErrExists: "AlreadyExists", failure.ErrConflict: "Conflict"} {
		s.workflows.setFail(failure.Refuse(kind, "why"))
		a := ask(path, "application/yaml", text)
		assert.True(t, a.Status == 409 && a.Label() == label && a.Message() == "why", "%v: got %d %s", kind, a.Status, a.Body)
	}
}

// TestRetiringADefinition holds gateway/INTERFACE.md, "Retiring a definition"; what becomes of it is held by the tests of
// actors/catalog and cmd/troupe.
func TestRetiringADefinition(t *testing.T) {
	s := startServer(t, Options{}, nil)
	const path = "/workflow/api/v1/definitions/leave"
	for target, want := range map[string]string{path: "mod retires leave 0", path + "/2": "mod retires leave 2"} {
		a := s.do(t, request{Method: "DELETE", Path: target, Headers: []string{withModToken}})
		if a.Status != 200 || a.Body != `{"id":"leave","versions":[1,2]}` || fmt.Sprint(s.workflows.asked) != want {
			t.Errorf("%s: got %d %s, asked for %v", target, a.Status, a.Body, s.workflows.asked)
		}
	}
	assert.Equal(t, 404, s.do(t, request{Method: "DELETE", Path: path + "/02", Headers: []string{withModToken}}).Status)
	s.workflows.setFail(failure.Refuse(failure.ErrInUse, "instances use it"))
	a := s.do(t, request{Method: "DELETE", Path: path, Headers: []string{withModToken}})
	assert.True(t, a.Status == 409 && a.Label() == "InUse" && a.Message() == "instances use it", "in use: got %d %s", a.Status, a.Body)
}
