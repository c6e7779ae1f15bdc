package load

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
)

func TestPlaceholders(t *testing.T) {
	for _, c := range []struct {
		json, want string // want is an expression, or a part of the error
		ok         bool
	}{
		{`{"a":"b"}`, `\{"a":"b"\}`, true},
		{`{"a":"{{n}}","b":"no. {{n}}"}`, `\{"a":1,"b":"no\. 2"\}`, true},
		{`["{{random -2 -2}}","{{ random 7 7 }}x"]`, `\[-2,"7x"\]`, true},
		{`"{{uuid}}"`, `"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`, true},
		{`"{{choice a b}} or {{choice c}}"`, `"[ab] or c"`, true},
		{`"{{choice x}}"`, `"x"`, true},
		{`{"a":"{{uuid"}`, `{{ has no }}`, false},
		{`["{{n","{{n}}"]`, `{{ has no }}`, false},
		{`{"a":{"b":"}} {"}}`, `\{"a":\{"b":"\}\} \{"\}\}`, true},
		{`"{{ }} {n}"`, `a placeholder is`, false},
		{`"{{name}}"`, `{{name}}: a placeholder is`, false},
		{`"{{random 2 1}}"`, `the smaller one first`, false},
		{`"{{random 1}}"`, `a placeholder is`, false},
	} {
		parsed, err := parseText(c.json)
		if !c.ok {
			assert.True(t, err != nil && strings.Contains(err.Error(), c.want), "%s: got %v, want %s", c.json, err, c.want)
			continue
		}
		got := parsed.append(nil, newContent(1))
		assert.True(t, err == nil && json.Valid(got) && regexp.MustCompile("^"+c.want+"$").Match(got), "%s: got %s, %v, want %s", c.json, got, err, c.want)
	}
}

func TestRandomNumbersAreBetweenTheirBounds(t *testing.T) {
	parsed, err := parseText(`"{{random 1 3}}"`)
	require.NoError(t, err)
	c, seen := newContent(1), map[string]bool{}
	for range 100 {
		seen[string(parsed.append(nil, c))] = true
	}
	assert.True(t, len(seen) == 3 && seen["1"] && seen["2"] && seen["3"], "got %v, want 1, 2 and 3", seen)
}

const leaveDefinition = `id: leave
allow: {create: {roles: [employee]}, send: {privileges: [mod-workflows]}}
stateMachines:
  main:
    states:
      draft: {on: {submit: review}}
      review: {states: {open: {on: {return: draft}}}}
`

// scenarioOf parses a scenario beside leaveDefinition.
func scenarioOf(text string) (*Scenario, error) {
	files := fstest.MapFS{"home/leave.yaml": {Data: []byte(leaveDefinition)}}
	return ParseScenario("home/load.yaml", []byte(text), func(name string) ([]byte, error) { return fs.ReadFile(files, name) })
}

func TestAScenario(t *testing.T) {
	s, err := scenarioOf("definition: leave.yaml\ncreate: {public: {n: '{{n}}'}, private: {a: 1}}\n" +
		"walk:\n  draft: [{event: submit, weight: 3, data: {b: x}}, {event: return, weight: 0}]\n  open: [{event: return, to: draft}]\n")
	require.NoError(t, err)
	assert.True(t, s.WorkflowID == "leave" && s.Definition == leaveDefinition && !s.Round(), "got %+v", s)
	assert.Equal(t, `{"svcPublic":{"n":1},"svcPrivate":{"a":1}}`, string(s.create.append(nil, newContent(0))), "create")
	random := newContent(1).random
	for range 50 {
		require.Equal(t, "submit", s.places["draft"].pick(random).event, "picked")
	}
	text, err := s.IdentityText()
	require.NoError(t, err)
	directory, err := identity.ParseDirectory("identity.yaml", []byte(text))
	require.NoError(t, err)
	p := directory.Principal(UserID)
	assert.True(t, p != nil && len(p.Roles) == 1 && p.Roles[0] == "employee" && p.Has(identity.Workflows), "got %+v, want what the definition names", p)
	for body, want := range map[string]string{
		`{"states":[{"stateMachineId":"main","nodeId":"draft"}]}`:                                   "draft",
		`{"svcPublic":{"states":[{"nodeId":"open"}]},"states":[{"nodeId":"x"},{"nodeId":"draft"}]}`: "draft",
		`{"states":[{"nodeId":"gone"}]}`:                                                            "",
		`{"states":[{"nodeId":"dra`:                                                                 "",
		`{}`:                                                                                        "",
	} {
		got := ""
		if p := s.whereIn([]byte(body)); p != nil {
			got = p.node
		}
		assert.Equal(t, want, got, body)
	}
}

func TestFaultsOfAScenarioHaveTheirPlaces(t *testing.T) {
	const head = "definition: leave.yaml\n"
	for text, want := range map[string]string{
		"walk: {a: [{event: x}]}":                                     "home/load.yaml:1:1: neither definition nor workflow",
		"definition: gone.yaml\nworkflow: x\nwalk: {a: [{event: x}]}": "home/load.yaml:1:13: open home/gone.yaml",
		"workflow: ../x\nwalk: {a: [{event: x}]}":                     "1:11: this is not the id of a workflow",
		head:              "walk is missing",
		head + "walk: {}": "2:7: walk is missing",
		head + "walk: {draft: [{event: sumbit}]}":                           `2:24: the workflow has no event "sumbit" (did you mean "submit"?)`,
		head + "walk: {darft: [{event: submit}]}":                           `2:8: the workflow has no node "darft" (did you mean "draft"?)`,
		head + "walk: {draft: [{event: submit, to: x}]}":                    `the workflow has no node "x" (it has: draft, open, review)`,
		head + "walk: {draft: [{}]}":                                        "event is missing",
		head + "walk: {draft: submit}":                                      "2:15: expected a list of steps",
		head + "walk: {draft: [{event: submit, weight: -1}]}":               "expected a number from 0",
		head + "walk: {draft: [{event: submit, weight: 0}]}":                "no step of this node has a weight above 0",
		head + "walk: {draft: [{event: submit, as: bob}]}":                  `there is no user "bob" (users: bench)`,
		head + "users: {bob: [emploee]}\nwalk: {draft: [{event: submit}]}":  `2:15: the workflow has no role "emploee" (did you mean "employee"?)`,
		head + "users: {}\nwalk: {draft: [{event: submit}]}":                "2:8: expected the users",
		head + "wakl: {}\nwalk: {draft: [{event: submit}]}":                 `unknown key "wakl" (did you mean "walk"?)`,
		head + "walk: {draft: [{event: submit, data: {a: '{{rnd}}'}}]}":     "{{rnd}}: a placeholder is",
		head + "walk: {draft: [{event: submit, data: {'{{n}}': a}}]}":       "filled in this is not JSON",
		head + "query: {limit: 2000}\nwalk: {draft: [{event: submit}]}":     "2:16: a limit is from 1 to 1000",
		head + "query: {filter: {a: 1}}\nwalk: {draft: [{event: submit}]}":  "2:17: ",
		head + "query: {filter: {a: *b}}\nwalk: {draft: [{event: submit}]}": "home/load.yaml:2",
	} {
		_, err := scenarioOf(text)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%s\ngot %v\nwant %s", text, err, want)
	}
	// A definition that cannot be read may name the workflow, so nothing is said about that.
	_, err := scenarioOf("definition: gone.yaml\nwalk: {a: [{event: x}]}")
	assert.True(t, err != nil && !strings.Contains(err.Error(), "neither"), "got %v", err)
	_, err = ReadScenario("gone.yaml")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// TestTheExampleScenario holds the scenario in the tree to the definition of the example home.
func TestTheExampleScenario(t *testing.T) {
	s, err := ReadScenario("../scenarios/leave-request.yaml")
	require.NoError(t, err)
	assert.True(t, s.WorkflowID == "leave-request" && len(s.Users) == 2 && len(s.places) == 3 && !s.Round() && !s.Batches(), "got %+v", s)
}
