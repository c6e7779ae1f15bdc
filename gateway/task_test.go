package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
)

// users is a Users.
type users struct{ of *identity.Directory }

func (u users) Directory() *identity.Directory { return u.of }

func withUsers(t *testing.T) *testServer {
	s := startServer(t, Options{}, nil)
	d, err := identity.ParseDirectory("identity.yaml", []byte("users:\n  - {id: john.doe, name: John Doe}\n  - {id: mary.major, name: Mary Major, disabled: true}\n"))
	require.NoError(t, err)
	s.Open(Services{Workflows: s.workflows, Credentials: fakeCredentials{}, Users: users{d}})
	return s
}

const (
	shownTaskOne = `{"taskId":"01JD0000000000000000000001-2-0","workflowId":"order","instanceId":"01JD0000000000000000000001","stateMachineId":"main","nodeId":"review","title":"Prüfung","description":null,` +
		`"status":"open","created":"2027-01-15T08:00:00.000Z","due":null,"priority":50,"assignee":null,"assigneeName":null,"candidates":{"roles":["manager"],"users":[],"privileges":[]},"requester":"john.doe",` +
		`"requesterName":"John Doe","form":null,"events":[{"name":"approve","label":"Approve","style":"primary"}],"done":null}`
	shownTaskTwo = `{"taskId":"01JD0000000000000000000001-3-1","workflowId":"order","instanceId":"01JD0000000000000000000001","stateMachineId":"main","nodeId":"packing","title":"Pack","description":"Carefully",` +
		`"status":"done","created":"2027-01-15T08:00:00.000Z","due":"2027-01-15T08:01:00.000Z","priority":70,"assignee":"mary.major","assigneeName":"Mary Major","candidates":{"roles":[],"users":[],"privileges":[]},` +
		`"requester":"john.doe","requesterName":"John Doe","form":"pack-form","events":[],"done":{"user":"mary.major","userName":"Mary Major","event":"pack","ts":"2027-01-15T08:00:30.000Z"}}`
)

// TestTasks holds gateway/INTERFACE.md, "Lists of tasks" and "Fields of a task".
func TestTasks(t *testing.T) {
	s := withUsers(t)
	a := s.do(t, request{Method: "GET", Path: operationPath + "/tasks", Headers: []string{withToken, "Accept-Language: fr, de-AT;q=0.8, en;q=0.5"}})
	want := `{"tasks":[` + shownTaskOne + `,` + shownTaskTwo + `],"next":"more","count":2}`
	assert.True(t, a.Status == 200 && a.Body == want, "got %d %s\nwant %s", a.Status, a.Body, want)
	assert.True(t, strings.Contains(a.Header.Get("Vary"), "Accept-Language") && strings.Contains(a.Header.Get("Link"), "cursor=more"), "got the headers %v", a.Header)
	for query, asked := range map[string]string{
		"":                             "all|||||50||false|[]",
		"?scope=done&limit=7&cursor=x": "done|||||7|x|false|[]",
		"?scope=mine&sort=-due&q=a%20b&workflowId=w&filter=%7B%7D&count=true": "mine|w|{}|a b|-due|50||true|[]",
	} {
		if a := s.do(t, request{Method: "GET", Path: operationPath + "/tasks" + query, Headers: []string{withToken}}); a.Status != 200 || s.workflows.asked != asked {
			t.Errorf("%s: got %d, asked for %v, want %s", query, a.Status, s.workflows.asked, asked)
		}
	}
	for _, query := range []string{"?scope=", "?scope=x", "?limit=0", "?limit=1001", "?cursor=", "?count=1", "?x=y", "?q=a&q=b"} {
		a := s.do(t, request{Method: "GET", Path: operationPath + "/tasks" + query, Headers: []string{withToken}})
		assert.Equal(t, 400, a.Status, "%v %v", query, a.Body)
	}
	a = s.do(t, request{Method: "GET", Path: operationPath + "/task/" + instanceOne + "-2-0", Headers: []string{withToken, "Accept-Language: de"}})
	if a.Status != 200 || a.Body != shownTaskOne || s.workflows.asked != instanceOne+"-2-0" {
		t.Errorf("one: got %d %s, asked for %v", a.Status, a.Body, s.workflows.asked)
	}
}

// TestClaims holds gateway/INTERFACE.md, "Claiming tasks".
func TestClaims(t *testing.T) {
	s := withUsers(t)
	ask := func(body string) answer {
		return s.do(t, request{Method: "POST", Path: operationPath + "/task", Body: body, Headers: []string{withToken, "Content-Type: application/json", "Accept-Language: de"}})
	}
	for body, asked := range map[string]string{
		`{"taskId":"a","action":"claim"}`:                     "a claim false",
		`{"taskId":"a","action":"release"}`:                   "a release false",
		`{"taskId":"a","action":"assign","to":"john.doe"}`:    "a assign true",
		`{"taskId":"a","action":"assign","to":"mary.major"}`:  "a assign false", // is disabled
		`{"taskId":"a","action":"assign","to":"nobody.else"}`: "a assign false",
	} {
		if a := ask(body); a.Status != 200 || a.Body != shownTaskOne || s.workflows.asked != asked {
			t.Errorf("%s: got %d %s, asked for %v", body, a.Status, a.Body, s.workflows.asked)
		}
	}
	calls := s.workflows.calls()
	for _, body := range []string{
		``, `[]`, `{}`, `{"taskId":"a"}`, `{"taskId":"a","action":"Claim"}`, `{"taskId":"","action":"claim"}`, `{"taskId":1,"action":"claim"}`,
		`{"taskId":"a","action":"claim","to":"john.doe"}`, `{"taskId":"a","action":"assign"}`, `{"taskId":"a","action":"claim","x":1}`,
	} {
		a := ask(body)
		assert.Equal(t, 400, a.Status, "%v %v", body, a.Body)
	}
	assert.Equal(t, calls, s.workflows.calls(), "a request that is wrong was carried out")
	s.workflows.setFail(failure.ErrClaimed)
	a := ask(`{"taskId":"a","action":"claim"}`)
	assert.True(t, a.Status == 409 && a.Label() == "Claimed", "got %d %s", a.Status, a.Body)
}

// TestComments holds gateway/INTERFACE.md, "Comments".
func TestComments(t *testing.T) {
	s := withUsers(t)
	ask := func(body string, headers ...string) answer {
		return s.do(t, request{
			Method: "POST", Path: operationPath + "/instance/order/" + instanceOne + "/comments", Body: body,
			Headers: append(headers, withToken, "Content-Type: application/json"),
		})
	}
	longest := strings.Repeat("ü", 10_000)
	for _, text := range []string{"hello", "<b>hello</b>\\nthere", longest, "\\u202eevil"} {
		a := ask(`{"text":"` + text + `"}`)
		assert.True(t, a.Status == 200 && strings.HasPrefix(a.Body, `{"comment":{"user":"ann","userName":"ann","text":"`), "%.20s: got %d %.200s", text, a.Status, a.Body)
	}
	for _, body := range []string{``, `{}`, `{"text":""}`, `{"text":" \n\t"}`, `{"text":1}`, `{"text":"a","x":1}`, `{"text":"ü` + longest + `"}`} {
		a := ask(body)
		assert.Equal(t, 400, a.Status, "%v %v", body, a.Body)
	}
	key := func(body string) message.Retry {
		t.Helper()
		a := ask(body, "Idempotency-Key: k")
		assert.Equal(t, 200, a.Status, a.Body)
		return s.workflows.asked.(message.Comment).Retry
	}
	one, two := key(`{"text":"one"}`), key(`{"text":"two"}`)
	assert.True(t, one.Key == "k" && one.Fingerprint != two.Fingerprint && one == key(`{ "text": "one" }`), "got the keys %+v and %+v", one, two)
}

// TestActivity holds gateway/INTERFACE.md, "Activity".
func TestActivity(t *testing.T) {
	s := withUsers(t)
	path := operationPath + "/instance/order/" + instanceOne + "/activity"
	const ts = `"ts":"2027-01-15T08:00:00.000Z"`
	want := `{"activity":[` +
		`{"kind":"timer",` + ts + `,"user":null,"userName":null,"timer":{"id":"01JD0000000000000000000001-1-1","event":"remind","stateMachineId":null,"nodeId":null,"due":"2027-01-15T08:00:00.000Z","incident":false}},` +
		`{"kind":"delivery",` + ts + `,"user":null,"userName":null,"delivery":{"id":"01JD0000000000000000000001-2-0","kind":"webhook","name":"hook","state":"dead","attempts":9,"nextAttempt":null}},` +
		`{"kind":"task",` + ts + `,"user":"mary.major","userName":"Mary Major","action":"assign","taskId":"01JD0000000000000000000001-2-0","stateMachineId":"main","nodeId":"review","to":"john.doe","toName":"John Doe"},` +
		`{"kind":"comment",` + ts + `,"user":"mary.major","userName":"Mary Major","text":"<b>hello</b>"},` +
		`{"kind":"history",` + ts + `,"user":"john.doe","userName":"John Doe","sequence":1,"startState":["Start"],"transitionEvent":"","endState":["draft"],"data":{"a":1}}],"next":"more"}`
	if a := s.do(t, request{Method: "GET", Path: path, Headers: []string{withToken}}); a.Status != 200 || a.Body != want || s.workflows.asked != "false 100 " {
		t.Errorf("got %d %s, asked for %v", a.Status, a.Body, s.workflows.asked)
	}
	for query, asked := range map[string]string{"?order=asc&limit=3&cursor=x": "true 3 x", "?order=desc": "false 100 "} {
		if a := s.do(t, request{Method: "GET", Path: path + query, Headers: []string{withToken}}); a.Status != 200 || s.workflows.asked != asked {
			t.Errorf("%s: got %d, asked for %v", query, a.Status, s.workflows.asked)
		}
	}
	for _, query := range []string{"?order=", "?order=up", "?limit=0", "?cursor=", "?scope=all"} {
		a := s.do(t, request{Method: "GET", Path: path + query, Headers: []string{withToken}})
		assert.Equal(t, 400, a.Status, "%v %v", query, a.Body)
	}
}

// TestTasksAreWatched holds gateway/INTERFACE.md, "Watching tasks".
func TestTasksAreWatched(t *testing.T) {
	s := withUsers(t)
	a := s.do(t, request{Method: "GET", Path: operationPath + "/tasks/watch", Headers: []string{withToken, "Accept-Language: de"}})
	want := "retry: 2000\n: open\n\nevent: tasks\ndata: " + fmt.Sprintf(`{"workflowId":"order","instanceId":%q,"tasks":[%s]}`, instanceOne, shownTaskOne) +
		"\n\nevent: lost\ndata: {\"message\":\"tasks are missing here; read the list again\"}\n\n: beat\n\n"
	assert.True(t, a.Status == 200 && a.Body == want && a.Header.Get("Content-Type") == "text/event-stream" && strings.Contains(a.Header.Get("Vary"), "Accept-Language"),
		"got %d %q %v\nwant %q", a.Status, a.Body, a.Header, want)
}
