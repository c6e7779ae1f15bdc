package statemachine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
)

// TestWhatWasAcceptedStaysReadable: a stored text is read although it has what an
// author is told, and is refused for what cannot run.
func TestWhatWasAcceptedStaysReadable(t *testing.T) {
	const head = "id: w\nstateMachines: {m: {initial: a, states: {"
	const tail = "}}}\n"
	costly := "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, a + b + c >= 0)))"
	nobodyHas := func(string) bool { return false }
	strict, err := statemachine.NewParser(statemachine.ParserOptions{HasRole: nobodyHas})
	require.NoError(t, err)
	stored, err := statemachine.NewParser(statemachine.ParserOptions{Stored: true})
	require.NoError(t, err)
	for _, c := range []struct {
		name, text, fault string
		runs              bool
	}{
		{"an unreachable node", head + "a: {on: {go: b}}, b: {type: final}, c: {on: {go: b}}" + tail, "is unreachable", true},
		{"a shadowed transition", head + "a: {on: {go: [b, b]}}, b: {type: final}" + tail, "can never be taken", true},
		{"a node without an exit", head + "a: {on: {go: b}}, b: {}" + tail, "has no exit", true},
		{"a cycle without a guard", head + "a: {always: b}, b: {always: a}" + tail, "a cycle of eventless transitions", true},
		{"an event that nothing takes", head + "a: {entry: {raise: gone}, on: {go: b}}, b: {type: final}" + tail, `unknown event "gone"`, true},
		{"a node that there is not", head + "a: {on: {go: {guard: 'In(\"x\")', target: b}}}, b: {type: final}" + tail, `unknown node "x"`, true},
		{"an expensive expression", head + "a: {on: {go: {guard: '" + costly + "', target: b}}}, b: {type: final}" + tail, "too expensive", true},
		{"a role that is gone", head + "a: {on: {go: {allow: {roles: [clerk]}, target: b}}}, b: {type: final}" + tail, `unknown role "clerk"`, true},
		{"more than 100 schedules", manySchedules(101) + head + "a: {on: {go: b}}, b: {type: final}" + tail, "w.yaml:102:3: a definition has at most 100 schedules, and this one has 101", true},
		{"a target that there is not", head + "a: {on: {go: x}}" + tail, `unknown target "x"`, false},
		{"an expression that is none", head + "a: {on: {go: {guard: '1 +', target: b}}}, b: {type: final}" + tail, "not complete", false},
		{"a text that had no expressions once", head + "a: {entry: [{log: 'costs ${1 +} EUR'}], on: {go: b}}, b: {type: final}" + tail, "not complete", true},
		{"a condition that names nothing", head + "a: {on: {go: {guard: {}, target: b}}}, b: {type: final}" + tail, "a condition is an expression", true},
		{"an elseif that is a text", head + "a: {on: {go: b}, exit: {if: 'true', then: [], elseif: x}}, b: {type: final}" + tail, "must be a mapping", true},
		{"an action that nothing uses", "actions: {x: [{lgo: x}]}\n" + head + "a: {on: {go: b}}, b: {type: final}" + tail, `unknown key "lgo"`, true},
		{"a key that means nothing here", head + "a: {on: {go: {target: b, permit: {roles: [clerk]}}}}, b: {type: final}" + tail, `unknown key "permit"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := statemachine.Source{File: "w.yaml", Text: []byte(c.text)}
			for _, strict := range []*statemachine.Parser{strict, stored.With(statemachine.ParserOptions{HasRole: nobodyHas})} {
				_, err := strict.Parse(src)
				assert.True(t, err != nil && strings.Contains(err.Error(), c.fault), "as a new file: got %v, want a fault that says %s", err, c.fault)
			}
			for _, stored := range []*statemachine.Parser{stored, strict.With(statemachine.ParserOptions{Stored: true})} {
				_, err := stored.Parse(src)
				assert.Equal(t, c.runs, err == nil, "as a stored one: got %v, want it to be read", err)
			}
		})
	}
}

// manySchedules are the first lines of a definition that has so many.
func manySchedules(n int) string {
	var out strings.Builder
	out.WriteString("schedules:\n")
	for i := range n {
		fmt.Fprintf(&out, "  s%d: {cron: '* * * * *'}\n", i)
	}
	return out.String()
}

// TestSchedulesUpToTheLimit are no fault.
func TestSchedulesUpToTheLimit(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	text := manySchedules(100) + "id: w\nstateMachines: {m: {initial: a, states: {a: {on: {go: b}}, b: {type: final}}}}\n"
	d, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(text)})
	assert.True(t, err == nil && len(d.Schedules) == 100, "100 schedules: %v", err)
}
