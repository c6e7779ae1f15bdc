package formportal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/form"
	"troupe/statemachine"
)

// TestFormsOfTasksFitTheirEvents holds cmd/troupe/HOME.md, "Forms": which forms of tasks are faults, and why.
func TestFormsOfTasksFitTheirEvents(t *testing.T) {
	const flow = `
id: flow
events:
  approve: {data: {type: object, required: [sum], properties: {sum: {type: integer}}, additionalProperties: false}}
  refuse: {data: {type: object, properties: {why: {type: string}}, additionalProperties: false}}
stateMachines:
  main:
    states:
      open:
        task: {form: FORM}
        on: {approve: done, refuse: OTHER}
        after: {P1D: done}
      still: {task: {form: FORM}, always: done}
      done: {type: final}
`
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	templates := map[string]*Template{}
	for id, text := range map[string]string{
		"fits":     "submit: approve, schema: {type: object, required: [sum], properties: {sum: {type: integer}}}",
		"some":     "schema: {type: object, properties: {why: {type: string}}}", // refuse takes it, approve does not
		"none":     "schema: {type: object, properties: {what: {type: string}}}",
		"elsewher": "submit: send, schema: {type: object}",
		"wrong":    "submit: approve, schema: {type: object, required: [sum], properties: {sum: {type: string}}}",
		"loose":    "submit: approve, schema: {type: object, properties: {sum: {type: integer}}}",
	} {
		parsed, err := ParseTemplate(TemplateText{Kind: form.KindForm, File: id + ".yaml", Text: []byte("{id: " + id + ", enabled: false, " + text + "}")}, Known{})
		require.NoError(t, err)
		templates[id] = parsed
	}
	forms := &TaskForms{Find: func(id string) *Template { return templates[id] }, IDs: []string{"fits"}}
	for id, want := range map[string]string{
		"fits": "", "some": "",
		"none":     `refuses the field "what"`,
		"elsewher": `sends the event "send", which the task does not take`,
		"wrong":    `takes "sum" of type integer, and the form has it of type string`,
		"loose":    `warning: form "loose": the event "approve" requires "sum", which may be left out of the form`,
		"fit":      `no form has the id "fit"`,
	} {
		of := strings.NewReplacer("FORM", id, "OTHER", "done").Replace(flow)
		of = of[:strings.Index(of, "      still")] + "      done: {type: final}\n"
		parsed, err := parser.Parse(statemachine.Source{File: "flow.yaml", Text: []byte(of)})
		require.NoError(t, err)
		faults, warnings := forms.Check("flow.yaml", parsed.Definition)
		got := ""
		for _, f := range faults {
			got += f.Error() + "\n"
			assert.True(t, f.Line == 10 && f.Column != 0, "%s: the fault is at %d:%d, want line 10", id, f.Line, f.Column)
		}
		for _, w := range warnings {
			got += "warning: " + w.Reason + "\n"
		}
		assert.True(t, (want == "") == (got == "") && strings.Contains(got, want), "%s: got %q, want %q", id, got, want)
	}
	forms.Part = true
	parsed, err := parser.Parse(statemachine.Source{File: "flow.yaml", Text: []byte(strings.NewReplacer("FORM", "fits", "OTHER", "still").Replace(flow))})
	require.NoError(t, err)
	faults, _ := forms.Check("flow.yaml", parsed.Definition)
	assert.True(t, len(faults) == 1 && strings.Contains(faults[0].Reason, "no event of its own"), "a task that only time ends: got %v", faults)
}
