package endtoend

import (
	"strings"
	"testing"
)

// scene is one running program with the users of people.
type scene struct {
	*program
	// ann is a clerk, bob an approver, eve has no role, and adm both roles and
	// the privilege to manage workflows.
	ann, bob, eve, adm user
}

// newScene starts the program on a home with all flows.
func newScene(t testing.TB) *scene {
	t.Helper()
	return sceneOf(start(t, newHome(t, flows())))
}

// sceneOf makes the tokens of a running program.
func sceneOf(p *program) *scene {
	return &scene{
		p, p.as(p.home.token("ann")), p.as(p.home.token("bob")), p.as(p.home.token("eve")), p.as(p.home.token("adm")),
	}
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

// runLines checks all rows against one program.
func runLines(t *testing.T, lines []line) {
	s := newScene(t)
	for _, l := range lines {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) { l.check(t, s) })
	}
}

// unchanged demands that an instance is as it was.
func (s *scene) unchanged(t testing.TB, r record) {
	t.Helper()
	if got := s.adm.load(t, r.WorkflowID, r.ID).record(t).text; got != r.text {
		t.Errorf("the instance changed:\n got %s\nwant %s", got, r.text)
	}
}
