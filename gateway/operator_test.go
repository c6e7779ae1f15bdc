package gateway

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
)

// TestTheOperatorNeedsNoCredential where mod-workflows is demanded, and gets nowhere else; in a cluster whichever node leads.
func TestTheOperatorNeedsNoCredential(t *testing.T) {
	nodes := startNodes(t, Options{BasePath: "/platform"}, "A", "B")
	a, b := nodes["A"], nodes["B"]
	ask := func(method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		a.OperatorHandler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, follows := range []bool{false, true} {
		if follows {
			a.fail(failure.Elsewhere(7))
			a.peers.say(leading(b.peer))
		}
		for _, c := range []struct {
			method, path, body string
			status             int
		}{
			{"GET", "/workflow/api/v1/outbox", "", 200},
			{"GET", "/workflow/api/v1/incidents?limit=7", "", 200},
			{"POST", "/workflow/api/v1/outbox/x", operationBody, 200},
			{"POST", "/workflow/api/v1/outbox/x", "", 400},
			{"GET", "/workflow/api/v1/choices", "", 401},
			{"GET", "/workflow/api/v1/instance/leave/i1", "", 401},
			{"PUT", "/admin/api/v1/home", "", 401},
			{"GET", "/workflow/api/v1/nothing", "", 404},
		} {
			status, answer := ask(c.method, c.path, c.body)
			assert.Equal(t, c.status, status, "%v %v %v", c.method, c.path, answer)
		}
	}
	assert.Equal(t, "x retry", b.workflows.asked, "the leader was asked")
	assert.Equal(t, 401, a.do(t, request{Method: "GET", Path: "/workflow/api/v1/outbox", Headers: []string{"Troupe-Sender: {\"operator\":true}"}}).Status)
}
