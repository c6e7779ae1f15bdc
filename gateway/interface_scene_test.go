package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/actorstest"
)

// scene is one service with the users of wiretest.People.
type scene struct {
	*service
	ann, bob, eve, adm user
}

// newScene starts a service with all flows.
func newScene(t testing.TB) *scene {
	t.Helper()
	return sceneOf(startService(t, serviceOptions{Options: actorstest.Options{Files: flows()}}))
}

// sceneOf makes the tokens of a service.
func sceneOf(s *service) *scene {
	return &scene{s, s.as("ann"), s.as("bob"), s.as("eve"), s.as("adm")}
}

// line is one row of the interface tables.
type line struct {
	// rule is the path and the heading of the rule that the row holds.
	rule  string
	says  string
	check func(t *testing.T, s *scene)
}

// nameOf is the name of a row's test: the heading of its rule, and what it says.
func nameOf(rule, says string) string {
	_, heading, _ := strings.Cut(rule, `, "`)
	return strings.TrimSuffix(heading, `"`) + ": " + says
}

// runLines checks all rows against one service.
func runLines(t *testing.T, lines []line) {
	s := newScene(t)
	for _, l := range lines {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) {
			skipOnCluster(t, l.says)
			l.check(t, s)
		})
	}
}

// unchanged demands that an instance is as it was.
func (s *scene) unchanged(t testing.TB, r record) {
	t.Helper()
	assert.Equal(t, r.Text, s.adm.Load(t, r.WorkflowID, r.ID).Record(t).Text, "the instance changed")
}
