package script

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/statemachine"
)

// TestExplorationFindsDefects plants one of each kind. What is found is a test that fails, is as short as it can be, and is the same again.
func TestExplorationFindsDefects(t *testing.T) {
	directory, err := identity.ParseDirectory("identity.yaml", []byte("roles: [{id: staff}, {id: ghost}]\nusers: [{id: ann, roles: [staff]}, {id: bob, roles: [staff]}]"))
	require.NoError(t, err)
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	const head = "id: w\nversion: 1\nallow: {create: {roles: [staff]}, read: {roles: [staff]}, send: {roles: [staff]}}\n"
	const ask = "events: {ask: {data: {type: object, properties: {n: {type: integer, minimum: 0, maximum: 100}, code: {type: string, pattern: '^[A-Z]{2}-[0-9]+$'}}, required: [n, code], additionalProperties: false}}}\n"
	for _, c := range []struct {
		name, text, kind, message string
		steps                     int
	}{
		{"nothing", head + ask + "stateMachines: {main: {initial: a, states: {a: {on: {ask: [{guard: event.data.n < 50, target: b}, {target: c}]}}, b: {after: {P1D: c}}, c: {type: final}}}}", "", "", 0},
		{"an action that fails", head + ask + "stateMachines: {main: {initial: a, states: {a: {on: {ask: {target: b}, idle: {}}}, b: {on: {go: {target: c, actions: [{assign: {svcPublic.x: '${10 / svcPublic.n}'}}]}}}, c: {type: final}}}}", "failure", "send go fails: ", 3},
		{"a creation that fails", head + "create: {svcPublic: {type: object, properties: {n: {type: integer, minimum: 0, maximum: 9}}, required: [n]}}\nstateMachines: {main: {initial: a, states: {a: {entry: [{assign: {svcPublic.x: '${10 / svcPublic.n}'}}], on: {go: c}}, c: {type: final}}}}", "failure", "create fails: ", 1},
		{"a timer that fails", head + "stateMachines: {main: {initial: a, states: {a: {on: {idle: {}}, after: {P3D: {target: c, actions: [{assign: {svcPublic.x: '${svcPublic.none.none}'}}]}}}, c: {type: final}}}}", "incident", "after.", 2},
		{"a job whose failure nothing takes", head + "jobs: {print: {}}\nstateMachines: {main: {initial: a, states: {a: {invoke: {job: print, onDone: c}}, c: {type: final}}}}", "incident", "job print fails for good, and nothing in a takes that: add onError", 2},
		{"a state without a way out", head + "stateMachines: {main: {initial: a, states: {a: {on: {go: b, end: c}}, b: {on: {out: {target: c, guard: has(svcPublic.x)}}}, c: {type: final}}}}", "stuck", "nobody and nothing can leave b", 2},
		{"a state where only nothing happens", head + "stateMachines: {main: {initial: a, states: {a: {on: {go: b, end: c}}, b: {on: {note: {}}}, c: {type: final}}}}", "stuck", "w.yaml:4: no walk leaves the state main.b", 2},
		{"a task for a role that nobody has", head + "stateMachines: {main: {initial: a, states: {a: {on: {go: b}}, b: {task: {title: Do it}, on: {done: {target: c, allow: {roles: [ghost]}}}}, c: {type: final}}}}", "task", "nobody can do the task of main.b", 2},
		{"a state that nothing leads to", head + "stateMachines: {main: {initial: a, states: {a: {on: {go: [{guard: '1 > 2', target: b}, {target: c}]}}, b: {on: {go: c}}, c: {type: final}}}}", "unreached", "w.yaml:4: no walk reaches the transition main.a go → b", 1},
		{"a loop", head + "stateMachines: {main: {initial: a, states: {a: {on: {go: b, end: c}}, b: {always: {guard: '!has(svcPublic.x)', target: d}, on: {end: c}}, d: {always: {guard: '!has(svcPublic.x)', target: b}, on: {end: c}}, c: {type: final}}}}", "failure", "send go fails: ", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			parsed, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(c.text)})
			require.NoError(t, err)
			known := NewKnown(directory, []*statemachine.Definition{parsed.Definition})
			got := Explore(known, "w", Exploration{Walks: 60, Steps: 30, Seed: 3})
			assert.Equal(t, got, Explore(known, "w", Exploration{Walks: 60, Steps: 30, Seed: 3}), "the same seed finds the same")
			if c.kind == "" {
				assert.Empty(t, got.Findings)
				return
			}
			require.NotEmpty(t, got.Findings)
			f := got.Findings[0]
			assert.Equal(t, c.kind, f.Kind)
			assert.Contains(t, f.Message, c.message)
			assert.Len(t, f.steps, c.steps, f.Test)
			for _, f := range got.Findings {
				file, err := Parse("found.yaml", []byte(f.Test), known)
				require.NoError(t, err, f.Test)
				assert.NotNil(t, Run(file.Tests[0], Options{Known: known}).Failure, "the test of a finding fails:\n%s", f.Test)
			}
		})
	}
}

// TestAnEndlessExplorationStops: instances that invoke two of their own kind would fill the world in each walk. It stops at the same walk
// each time, and says so.
func TestAnEndlessExplorationStops(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	directory, err := identity.ParseDirectory("identity.yaml", []byte("roles: [{id: staff}]\nusers: [{id: ann, roles: [staff]}]"))
	require.NoError(t, err)
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	parsed, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte("id: w\nstateMachines: {main: {initial: a, states: {a: {on: {go: b, end: c}}, b: {invoke: [{workflow: v}, {workflow: v}], on: {end: c}}, c: {type: final}}}}")})
	require.NoError(t, err)
	more, err := parser.Parse(statemachine.Source{File: "v.yaml", Text: []byte("id: v\nstateMachines: {main: {initial: b, states: {b: {invoke: [{workflow: v}, {workflow: v}], on: {end: c}}, c: {type: final}}}}")})
	require.NoError(t, err)
	known := NewKnown(directory, []*statemachine.Definition{parsed.Definition, more.Definition})
	got := Explore(known, "w", Exploration{Walks: 1000, Steps: 50, Seed: 3})
	assert.Contains(t, got.Stopped, "has come to more than 2000 events that come on their own")
	assert.True(t, got.Walks < 10 && len(got.Findings) == 0, "%d walks, %v", got.Walks, got.Findings)
	assert.Equal(t, got, Explore(known, "w", Exploration{Walks: 1000, Steps: 50, Seed: 3}))
}

// TestTheExampleHasNoFindings explores the workflows of the example home.
func TestTheExampleHasNoFindings(t *testing.T) {
	known := homeIn(t, "../../../cmd/troupe/example", "workflows/*.yaml")
	for _, workflow := range known.Workflows() {
		got := Explore(known, workflow, Exploration{Walks: 100, Steps: 50, Seed: 1})
		for _, f := range got.Findings {
			t.Errorf("%s: %s\n%s", workflow, f.Message, f.Test)
		}
		assert.Greater(t, got.Steps, 100, workflow)
	}
}
