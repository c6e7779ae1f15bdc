package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/statemachine/document"
)

// TestMigration holds gateway/INTERFACE.md, "Migrating instances".
func TestMigration(t *testing.T) {
	s := startServer(t, Options{}, nil)
	ask := func(body string) answer {
		return s.do(t, request{Method: "POST", Path: operationPath + "/instances/order/migrate", Body: body, Headers: []string{withModToken, "Content-Type: application/json"}})
	}
	const done = `{"matched":3,"migrated":2,"refused":[{"instanceId":"01JD0000000000000000000001","reason":"map it"}],"next":"more"}`
	for body, asked := range map[string]string{
		`{"plan":{"from":1,"to":2}}`: `mod order plan.json {"from":1,"to":2}  false 1000 `,
		`{"plan":"from: 1\nto: 2\n","filter":{"svcPublic.n":1},"dryRun":true,"limit":7,"cursor":"more"}`: "mod order plan.yaml from: 1\nto: 2\n {\"svcPublic.n\":1} true 7 more",
		`{"plan":{},"cursor":null}`: `mod order plan.json {}  false 1000 `,
	} {
		if a := ask(body); a.Status != 200 || a.Body != done || fmt.Sprint(s.workflows.asked) != asked {
			t.Errorf("%s: got %d %s, asked for %q", body, a.Status, a.Body, s.workflows.asked)
		}
	}
	calls := s.workflows.calls()
	for _, body := range []string{
		``, `[]`, `{}`, `{"plan":1}`, `{"plan":{},"filter":"{}"}`, `{"plan":{},"dryRun":1}`, `{"plan":{},"limit":0}`, `{"plan":{},"limit":1001}`,
		`{"plan":{},"limit":1.5}`, `{"plan":{},"cursor":1}`, `{"plan":{},"Filter":{}}`,
	} {
		a := ask(body)
		assert.Equal(t, 400, a.Status, "%v %v", body, a.Body)
	}
	assert.Equal(t, calls, s.workflows.calls(), "a request that is wrong was carried out")
	s.workflows.setFail(&failure.Error{
		Kind: failure.ErrInvalid, Reason: "the plan has faults", Cause: document.Faults{{File: "plan.yaml", Line: 3, Column: 7, Reason: "no such node", Suggestion: `did you mean "a"?`}},
	})
	if a := ask(`{"plan":{}}`); a.Status != 400 || !strings.Contains(a.Body, `"faults":[{"file":"plan.yaml","line":3,"column":7,"reason":"no such node","suggestion":"did you mean \"a\"?"}]`) {
		t.Errorf("a plan with faults: got %d %s", a.Status, a.Body)
	}
	s.workflows.setFail(failure.ErrNotFound)
	a := ask(`{"plan":{}}`)
	assert.Equal(t, 404, a.Status, a.Body)
}
