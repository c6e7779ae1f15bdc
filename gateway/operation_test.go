package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/gateway/internal/show"
	"troupe/statemachine"
)

const operationPath = "/workflow/api/v1"

// TestWhatAnInstanceWaitsFor holds gateway/INTERFACE.md, "Automation".
func TestWhatAnInstanceWaitsFor(t *testing.T) {
	s := startServer(t, Options{}, nil)
	const path = operationPath + "/instance/order/" + instanceOne + "/pending"
	const timers = `{"timers":[{"id":"01JD0000000000000000000001-1-0","event":"after.PT1H.open","stateMachineId":"main","nodeId":"open","due":"2027-01-15T08:00:00.000Z","incident":false},` +
		`{"id":"01JD0000000000000000000001-1-1","event":"remind","stateMachineId":null,"nodeId":null,"due":"2027-01-15T08:00:00.000Z","incident":true}],"deliveries":[`
	const dead, mail = `{"id":"01JD0000000000000000000001-2-0","kind":"webhook","name":"hook","state":"dead","attempts":9,"nextAttempt":null`,
		`{"id":"01JD0000000000000000000001-3-0","kind":"mail","name":"","state":"pending","attempts":0,"nextAttempt":"2027-01-15T08:00:05.000Z"}`
	for with, want := range map[string]string{
		withToken:    timers + dead + `},` + mail + `],"children":[{"workflowId":"check","instanceId":"01JD0000000000000000000001","status":"failed"}],"ended":"cancelled","version":3}`,
		withModToken: timers + dead + `,"url":"https://example.org/hook","lastStatus":500,"lastError":"the answer was 500"},` + mail + `],"children":[{"workflowId":"check","instanceId":"01JD0000000000000000000001","status":"failed"}],"ended":"cancelled","version":3}`,
	} {
		a := s.do(t, request{Method: "GET", Path: path, Headers: []string{with}})
		assert.True(t, a.Status == 200 && a.Body == want, "%s: got %d %s, want %s", with, a.Status, a.Body, want)
	}
}

func TestListsOfOperations(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for target, want := range map[string]string{
		"/outbox": `{"outbox":[{"id":"01JD0000000000000000000001-2-0","kind":"webhook","workflowId":"order","instanceId":"01JD0000000000000000000001","name":"hook","state":"dead","attempts":9,` +
			`"created":"2027-01-15T08:00:00.000Z","nextAttempt":null,"lastStatus":500,"lastError":"the answer was 500"},{"id":"01JD0000000000000000000001-3-0","kind":"mail","workflowId":"order",` +
			`"instanceId":"01JD0000000000000000000001","name":"","state":"pending","attempts":0,"created":"2027-01-15T08:00:00.000Z","nextAttempt":"2027-01-15T08:00:05.000Z","lastStatus":0,"lastError":""}],"next":"more"}`,
		"/incidents": `{"incidents":[{"id":"01JD0000000000000000000001-1-1","workflowId":"order","instanceId":"01JD0000000000000000000001","event":"remind","error":"division by zero","ts":"2027-01-15T08:00:00.000Z",` +
			`"version":3,"file":"workflows/order.yaml","line":9,"expression":"1 / svcPublic.n","first":"2027-01-15T08:00:00.000Z","count":1},` +
			`{"id":"7ZAB0JD3F6XW5RHKTN42M8CQEY-1-2","workflowId":"order","instanceId":"01JD0000000000000000000001","event":"pay","error":"no such key: sum","ts":"2027-01-15T08:00:00.000Z",` +
			`"kind":"expression","version":2,"file":"workflows/order.yaml","line":7,"expression":"svcPublic.sum + svcPrivate.fee","values":[{"path":"svcPublic.sum","value":null},{"path":"svcPrivate.fee","value":"3"}],` +
			`"user":"ann","first":"2023-11-14T22:13:20.000Z","count":3}],"next":null}`,
		"/timers": `{"timers":[{"id":"01JD0000000000000000000001-1-0","event":"after.PT1H.open","stateMachineId":"main","nodeId":"open","due":"2027-01-15T08:00:00.000Z","incident":false,` +
			`"workflowId":"order","instanceId":"01JD0000000000000000000001"}],"next":"more"}`,
		"/schedules": `{"schedules":[{"workflowId":"stock","name":"monthly","cron":"0 7 1 * *","zone":"Europe/Berlin","paused":false,"last":null,"next":"2027-01-15T08:00:00.000Z","lastError":"access denied"},` +
			`{"workflowId":"stock","name":"monthly","cron":"0 7 1 * *","zone":"Europe/Berlin","paused":true,"last":"2023-11-14T22:13:20.000Z","next":null,"lastError":""}]}`,
	} {
		a := s.do(t, request{Method: "GET", Path: operationPath + target, Headers: []string{withModToken}})
		assert.True(t, a.Status == 200 && a.Body == want, "%s: got %d %s, want %s", target, a.Status, a.Body, want)
	}
	for target, asked := range map[string]string{
		"/outbox": "[mod 100]", "/outbox?state=dead&limit=7&cursor=x": "[mod dead x 7]", "/incidents?limit=1000&cursor=y": "[mod y 1000]",
		"/timers?workflowId=order&limit=3&cursor=z": "{mod order z 3}",
	} {
		a := s.do(t, request{Method: "GET", Path: operationPath + target, Headers: []string{withModToken}})
		got := fmt.Sprint(s.workflows.asked)
		assert.True(t, a.Status == 200 && strings.Join(strings.Fields(got), "") == strings.Join(strings.Fields(asked), ""), "%v %v %v", target, a.Status, got)
	}
	for _, target := range []string{"/outbox?state=", "/outbox?state=x", "/outbox?limit=0", "/outbox?cursor=", "/outbox?filter={}", "/incidents?state=dead", "/incidents?limit=1001", "/timers?workflowId=", "/timers?state=due"} {
		a := s.do(t, request{Method: "GET", Path: operationPath + target, Headers: []string{withModToken}})
		assert.Equal(t, 400, a.Status, "%v %v", target, a.Body)
	}
}

func TestOperations(t *testing.T) {
	s := startServer(t, Options{}, nil)
	ask := func(target, body string) answer {
		return s.do(t, request{Method: "POST", Path: operationPath + target, Body: body, Headers: []string{withModToken, "Content-Type: application/json"}})
	}
	for _, c := range []struct{ target, body, asked string }{
		{"/outbox/a-1-0", `{"action":"retry"}`, "a-1-0 retry"},
		{"/outbox/a-1-0", `{"action":"drop"}`, "a-1-0 drop"},
		{"/incidents/a-1-0", `{"action":"retry"}`, "a-1-0 retry"},
		{"/incidents/a-1-0", `{"action":"drop"}`, "a-1-0 drop"},
		{"/schedules/stock/monthly", `{"action":"pause"}`, "stock monthly pause"},
		{"/schedules/stock/monthly", `{"action":"resume"}`, "stock monthly resume"},
		{"/schedules/stock/monthly", `{"action":"run"}`, "stock monthly run"},
	} {
		if a := ask(c.target, c.body); a.Status != 200 || a.Body != "{}" || fmt.Sprint(s.workflows.asked) != c.asked {
			t.Errorf("%s %s: got %d %s, asked for %v", c.target, c.body, a.Status, a.Body, s.workflows.asked)
		}
	}
	calls := s.workflows.calls()
	for _, body := range []string{``, `[]`, `{}`, `{"action":"Retry"}`, `{"action":1}`, `{"action":"drop","x":1}`} {
		for _, target := range []string{"/outbox/a-1-0", "/incidents/a-1-0", "/schedules/stock/monthly"} {
			a := ask(target, body)
			assert.Equal(t, 400, a.Status, "%v %v %v", target, body, a.Body)
		}
	}
	assert.Equal(t, calls, s.workflows.calls(), "a request that is wrong was carried out")
	s.workflows.setFail(failure.ErrNotFound)
	a := ask("/outbox/x", `{"action":"drop"}`)
	assert.Equal(t, 404, a.Status, a.Body)
}

// TestATimerSaysWhatItWillDo beside what it is.
func TestATimerSaysWhatItWillDo(t *testing.T) {
	got := show.Timer("1", &statemachine.Timer{Event: "after.P2D.a", Effect: statemachine.Effect{Target: "b", Mails: true, Calls: true}})
	assert.True(t, got.TargetID == "b" && slices.Equal(got.Sends, []string{"mail", "webhook"}), "got %+v", got)
}
