package home

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/document"
)

// TestSlipsInATaskForm: misspelt keywords of the form that a task names are told beside what is wrong because of them.
func TestSlipsInATaskForm(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	const workflow = `id: w
events: {decide: {data: {type: object, properties: {comment: {type: string}}, additionalProperties: false}}}
stateMachines:
  main:
    initial: open
    states:
      open: {task: {for: {users: [alice]}, form: decision}, on: {decide: done}}
      done: {type: final}
`
	const head = "id: decision\nenabled: false\nschema:\n  type: object\n"
	for _, c := range []struct{ name, schema, faults, warnings string }{
		{"no slip", "  properties: {comment: {type: string}}\n  required: [comment]\n", "", ""},
		{
			"a slip that does no more", "  properties: {comment: {type: string}}\n  requird: [comment]\n", "",
			`forms/decision.yaml:6:3: JSON Schema has no keyword "requird": it does nothing (did you mean "required"?)`,
		},
		{
			"a slip without which the form has no field", "  propertys: {comment: {type: string}}\n  required: [comment]\n",
			`forms/decision.yaml:6:14: the field "comment" is required, and the form does not have it: nobody could submit it`,
			`forms/decision.yaml:5:3: JSON Schema has no keyword "propertys": it does nothing (did you mean "properties"?)`,
		},
		{
			"a slip beside a schema that is none", "  properties: {comment: {typ: string}}\n  required: comment\n",
			`JSON Schema`,
			`forms/decision.yaml:5:26: JSON Schema has no keyword "typ": it does nothing (did you mean "type"?)`,
		},
	} {
		set, err := LoadDefinitions(fstest.MapFS{"workflows/w.yaml": {Data: []byte(workflow)}, "forms/decision.yaml": {Data: []byte(head + c.schema)}}, parser, nil)
		var faults document.Faults
		require.False(t, err != nil && !errors.As(err, &faults), err)
		check := func(what string, got document.Faults, want string) {
			if text := ""; len(got) > 0 {
				text = got.Error()
				assert.False(t, text != want && (want != "JSON Schema" || len(got) != 1), "%s: got the %s\n%s, want\n%s", c.name, what, text, want)
			} else if want != "" {
				t.Errorf("%s: got no %s, want\n%s", c.name, what, want)
			}
		}
		check("faults", faults, c.faults)
		check("warnings", set.Warnings, c.warnings)
	}
}
