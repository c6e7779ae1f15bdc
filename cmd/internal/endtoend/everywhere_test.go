package endtoend

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

// TestInterface is one pass over the interface of a started program: it serves its own
// description (gateway/INTERFACE.md, "Overview"), and answers each operation that stands
// there as it says, to nobody and to somebody who is signed in. What the answers mean is
// held by the tests of package gateway.
func TestInterface(t *testing.T) {
	s := start(t, newHome(t, flows()))
	ann := s.as(s.home.token("ann"))
	r := ann.Create(t, "plain", "").Record(t)
	source, err := os.ReadFile("../../../gateway/openapi.yaml")
	require.NoError(t, err)
	a := ann.Get(t, "/openapi.yaml")
	assert.True(t, a.Status == 200 && a.Body == string(source), "/openapi.yaml: got %d and %d bytes, want the %d of the source", a.Status, len(a.Body), len(source))
	description := wiretest.Decode[struct {
		Paths map[string]map[string]json.RawMessage
	}](t, ann.Get(t, "/openapi.json").Body)
	session := "Cookie: session=" + s.home.session("ann")
	fill := strings.NewReplacer("{workflowId}", "plain", "{instanceId}", r.ID, "{roleId}", "clerk", "{kind}", "form", "{", "", "}", "")
	asked := 0
	for path, methods := range description.Paths {
		for method, text := range methods {
			if method == "parameters" {
				continue
			}
			var operation struct{ Responses map[string]json.RawMessage }
			require.NoError(t, json.Unmarshal(text, &operation))
			method = strings.ToUpper(method)
			signedIn := method
			if method == http.MethodGet { // a watch has no end
				signedIn = http.MethodHead
			}
			for _, a := range []answer{
				s.Send(t, request{Method: method, Path: fill.Replace(path)}),
				s.Send(t, request{Method: signedIn, Path: fill.Replace(path), Headers: []string{session, wiretest.JSONType}, Body: "{}"}),
			} {
				asked++
				_, known := operation.Responses[strconv.Itoa(a.Status)]
				assert.True(t, known, "%s %s: got %d %s", method, path, a.Status, a.Body)
			}
		}
	}
	if asked < 80 {
		t.Errorf("the description has %d operations", asked/2)
	}
}
