package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/statemachine/document"
)

// TestPublishingAHome holds gateway/INTERFACE.md, "Publishing a home"; what an archive may have is
// held by the tests of actors/home, and what becomes of it by those of cmd/troupe.
func TestPublishingAHome(t *testing.T) {
	s := startServer(t, Options{BodyBytesMax: 4096}, nil)
	ask := requestOf(t, &newGroups("").operate.AdminRoutes()[1])
	ask.Body = strings.Repeat("x", 5000) // NB: its own bound is larger
	for query, dryRun := range map[string]bool{"": false, "?dryRun=false": false, "?dryRun=true": true} {
		r := ask
		r.Path += query
		a := s.do(t, r)
		want := `{"workflows":1,"templates":0,"users":0,"warnings":[]}`
		assert.True(t, a.Status == 200 && a.Body == want, "%q: got %d %s, want %s", query, a.Status, a.Body, want)
		assert.Equal(t, fmt.Sprint(ask.Body, dryRun), s.workflows.asked, "%q: asked, %v", query, dryRun)
	}
	faults := document.Faults{{File: "workflows/a.yaml", Line: 2, Column: 3, Reason: "wrong", Suggestion: "right"}, {File: "rights.yaml", Reason: "gone"}}
	s.workflows.setFail(failure.In("publish", "", &failure.Error{Kind: failure.ErrInvalid, Reason: "2 faults", Cause: faults}))
	want := `{"error":"InvalidContent","message":"2 faults","faults":[` +
		`{"file":"workflows/a.yaml","line":2,"column":3,"reason":"wrong","suggestion":"right"},{"file":"rights.yaml","line":0,"column":0,"reason":"gone"}]}`
	a := s.do(t, ask)
	assert.True(t, a.Status == 400 && a.Body == want, "got %d %s, want %s", a.Status, a.Body, want)
}
