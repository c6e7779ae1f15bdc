package serve

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/cmd/internal/clitest"
)

// readers names those of the example's users who are shown a list with the
// extension.
func (o *opened) readers(extension string) string {
	o.t.Helper()
	var who []string
	for _, u := range []identity.UserID{"john.doe", "mary.major"} {
		caller := o.identities.Directory().Principal(u)
		found := false
		require.NoError(o.t, o.repository.List(context.Background(), caller, extension, func(string) error { found = true; return nil }))
		if found {
			who = append(who, string(u))
		}
	}
	return strings.Join(who, " ")
}

// TestRightsAreTakenOverWhateverElseIsFaulty, and without a restart.
func TestRightsAreTakenOverWhateverElseIsFaulty(t *testing.T) {
	dir := clitest.ExampleHome(t)
	o := mustOpenService(t, dir)
	defer o.close()
	wants := func(when, reports string) {
		t.Helper()
		assert.Equal(t, reports, o.readers("rml"), "%s: readers of reports, %s", when, o.log)
		assert.Equal(t, "john.doe mary.major", o.readers("txt"), "%s: readers of what is shared", when)
	}
	wants("the example", "mary.major")

	const changed = "- {path: /reports, readers: [user:john.doe]}\n- {path: /Shared, readers: ['*']}\n"
	clitest.PutFile(t, dir, "rights.yaml", changed)
	clitest.PutFile(t, dir, "workflows/small.yaml", faultyFlow)
	o.reloadAll()
	wants("a faulty workflow beside changed rights", "john.doe")
	o.wantsLog("a faulty workflow", `"file":"workflows/small.yaml"`)

	clitest.PutFile(t, dir, "rights.yaml", strings.Replace(changed, "john.doe", "jon.doe", 1))
	o.reloadAll()
	wants("a faulty right", "john.doe")
	o.wantsLog("a faulty right", `"file":"rights.yaml","line":1,"reason":"unknown user \"jon.doe\"","suggestion":"did you mean \"user:john.doe\"?"`)
}

// TestAStartOnFaultyRights: nobody reads what might have been closed.
func TestAStartOnFaultyRights(t *testing.T) {
	dir := clitest.ExampleHome(t)
	mustOpenService(t, dir).close() // a set is accepted
	clitest.PutFile(t, dir, "rights.yaml", "- {path: /reports, readers: [user:jon.doe]}\n")
	clitest.PutFile(t, dir, "repository/Temp/a.txt", "x")
	o := mustOpenService(t, dir)
	defer o.close()
	got := o.readers("txt") + o.readers("rml")
	assert.Empty(t, got, "on faulty rights: read")
	o.wantsLog("on faulty rights", "only holders of mod-repository-admin can read repository files")
	clitest.RemoveFile(t, dir, "rights.yaml")
	o.reloadAll()
	assert.Equal(t, "john.doe mary.major", o.readers("txt"), "without rights: /Temp is read")
}
