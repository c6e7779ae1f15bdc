package serve

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/clitest"
	"troupe/statemachine"
)

// TestWhatAuthorsBeginWithRuns serves a home of troupe init with a workflow of troupe new, and plays that.
func TestWhatAuthorsBeginWithRuns(t *testing.T) {
	clitest.Isolated(t)
	dir := filepath.Join(t.TempDir(), "office")
	_, _, _ = clitest.Invoke("init", dir)
	clitest.MustInvoke(t, "new", "workflow", "travel-request", "--home", dir)
	o := mustOpenService(t, dir)
	defer o.close()
	o.wants("after init and new", 2, 0)
	d, err := parseFile(filepath.Join(dir, "workflows", "travel-request.yaml"))
	require.NoError(t, err)
	alice, bob := &statemachine.Caller{ID: "alice", Roles: []string{"employee"}}, &statemachine.Caller{ID: "bob", Roles: []string{"employee"}}
	for want, events := range map[string][]sent{
		"approved":                        {{name: "submit", data: `{}`}, {name: "approve", data: `{}`, by: bob}},
		"rejected":                        {{name: "submit", data: `{}`}, {name: "reject", data: `{}`, by: bob}},
		statemachine.ErrForbidden.Error(): {{name: "submit", data: `{}`}, {name: "approve", data: `{}`}},
	} {
		_, got := (&attempt{by: alice, created: `{"svcPublic":{"subject":"Bregenz"}}`, events: events}).run(d)
		assert.Equal(t, want, got, events)
	}
	in, _ := (&attempt{by: alice, created: `{}`, events: []sent{{name: "submit", data: `{}`}}}).run(d)
	seen := statemachine.View{Instance: &in, Of: d}
	for _, task := range in.Tasks() {
		assert.True(t, !seen.IsCandidate(&task, alice, time.Unix(0, 0)) && seen.IsCandidate(&task, bob, time.Unix(0, 0)))
	}
	assert.Len(t, in.Tasks(), 1)
}

func parseFile(name string) (*statemachine.Definition, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(statemachine.Source{File: name, Text: text})
	if err != nil {
		return nil, err
	}
	return parsed.Definition, nil
}
