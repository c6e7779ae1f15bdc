package endtoend

import (
	"slices"
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
	// holds names the line of the documents that the row holds.
	holds string
	check func(t *testing.T, s *scene)
}

// runLines checks all rows against one program.
func runLines(t *testing.T, lines []line) {
	s := newScene(t)
	for _, l := range lines {
		t.Run(l.holds, func(t *testing.T) { l.check(t, s) })
	}
}

// allLines are the rows of all tables.
func allLines() []line {
	return slices.Concat(createLines(), eventLines(), readLines(), rightLines(), dataLines(), retryLines(),
		filterLines(), operatorLines(), pageLines(), historyLines(), watchLines(), credentialLines(), signInLines(), requestLines(), answerLines(), versionLines(), portalLines())
}

// documentLines are all lines of the documents that have to do with groups A and
// B.
// A row holds one when its name begins with it.
var documentLines = []string{
	"interfaces A: GET role-info",
	"interfaces A: GET workflows",
	"interfaces A: GET forms/mycurrent",
	"interfaces A: GET forms/mysubmitted",
	"interfaces A: GET forms/myarchived",
	"interfaces A: GET checklists/mycurrent",
	"interfaces A: GET checklists/mysubmitted",
	"interfaces A: GET checklists/myarchived",
	"interfaces A: GET forms/role/{roleId}",
	"interfaces A: POST forms/create",
	"interfaces A: GET checklists/role/{roleId}",
	"interfaces A: POST checklists/create",
	"interfaces A: record Form",
	"interfaces A: record CreateFormInfo",
	"interfaces A: authentication",
	"interfaces A: privileges",
	"interfaces A: error 400",
	"interfaces A: error 403",
	"interfaces A: error 404",
	"interfaces A: error 500",
	"interfaces A: versioning",
	"decisions A: formRoles, checklistRoles",
	"decisions A: workflows",
	"decisions A: Templates of a role",
	"decisions A: Current",
	"decisions A: Submitted",
	"decisions A: Archived",
	"decisions A: formType",
	"decisions A: fullPath",
	"decisions A: status",
	"decisions A: role",
	"decisions A: Order",
	"decisions A: Failed create",
	"decisions A: name, submissionId",
	"decisions A: form.id",
	"forms: ",
	"interfaces B: record field _id",
	"interfaces B: record field workflowId",
	"interfaces B: record field svcPublic",
	"interfaces B: record field svcPrivate",
	"interfaces B: record field svcHistory",
	"interfaces B: record field states",
	"interfaces B: record field svcRedirect",
	"interfaces B: history field user",
	"interfaces B: history field startState",
	"interfaces B: history field transitionEvent",
	"interfaces B: history field endState",
	"interfaces B: history field ts",
	"interfaces B: entries of query-all",
	"interfaces B: state (no instance)",
	"interfaces B: state any state",
	"interfaces B: POST create",
	"interfaces B: POST event",
	"interfaces B: GET instance",
	"interfaces B: GET instances",
	"interfaces B: GET choices",
	"interfaces B: authentication",
	"interfaces B: events, names",
	"interfaces B: error 400",
	"interfaces B: error 403",
	"interfaces B: error 404",
	"interfaces B: error 409",
	"interfaces B: error 500",
	"interfaces B: error body",
	"interfaces B: versioning",
	"decisions authentication: Credential forms",
	"decisions authentication: Which group takes which",
	"decisions authentication: Missing, malformed",
	"decisions authentication: Two different tokens",
	"decisions authentication: What a token may do",
	"decisions authentication: Sessions",
	"decisions authentication: CSRF",
	"decisions authentication: Privileges",
	"decisions B: Definition format",
	"decisions B: Who may use a workflow",
	"decisions B: First history entry",
	"decisions B: ts",
	"decisions B: svcRedirect",
	"decisions B: _id",
	"decisions B: Order",
	"decisions B: context",
	"decisions B: data on create",
	"decisions B: Event name that the definition nowhere declares",
	"decisions B: Declared, but nothing enabled now",
	"decisions B: Enabled, but the caller may not",
	"decisions B: event.data",
	"decisions B: Editing a definition",
	"decisions B: 500 MarshallingError",
	"decisions B: Retries",
	"decisions B: Concurrent editing",
	"decisions B: Query",
	"decisions B: Filters on svcPrivate",
	"filter operators",
	"filter limits",
	"filter paging: limit",
	"filter paging: next",
	"filter paging: keyset",
	"filter paging: cursor",
	"filter paging: sort",
	"filter paging: fields",
	"filter paging: count",
	"lists: explain",
	"lists: order of members",
	"lists: history",
	"lists: events",
	"lists: watch",
	"decisions B: A query's budget runs out",
	"decisions B: Size of an instance",
	"decisions everywhere: base path",
	"decisions everywhere: every success is 200",
	"decisions everywhere: error values",
	"decisions everywhere: 404 bodies are constant",
	"decisions everywhere: 503 and 429",
	"decisions everywhere: rates are off",
	"decisions everywhere: quotas",
	"decisions everywhere: messages",
	"decisions everywhere: no redirects",
	"decisions everywhere: HEAD",
	"decisions everywhere: headers",
	"decisions everywhere: bodies",
	"decisions everywhere: identifiers",
}

// TestInterfaceIsCovered demands that every line of the documents has a row,
// and every row a line.
func TestInterfaceIsCovered(t *testing.T) {
	rows := allLines()
	for _, want := range documentLines {
		if !slices.ContainsFunc(rows, func(l line) bool { return strings.HasPrefix(l.holds, want) }) {
			t.Errorf("no row holds %q", want)
		}
	}
	seen := map[string]bool{}
	for _, l := range rows {
		if !slices.ContainsFunc(documentLines, func(d string) bool { return strings.HasPrefix(l.holds, d) }) {
			t.Errorf("row %q holds no line of the documents", l.holds)
		}
		if seen[l.holds] {
			t.Errorf("row %q is there twice", l.holds)
		}
		seen[l.holds] = true
	}
}
