package formportal

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/form"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

const leaveForm = `id: leave-form
name: Leave Request
description: Ask for days off
access: {roles: [clerk, boss]}
workflows: [leave]
schema:
  type: object
  properties:
    days: {type: integer, minimum: 1, maximum: 60}
    home: {$ref: address.schema.json}
  required: [days]
ui: {order: [days, home]}
submit: submit
`

const safety = `id: safety
access: {roles: [clerk]}
items:
  - {id: exits, label: Exits are free, help: Open every door., required: true}
  - {id: light}
`

const leaveFlow = `id: leave
events: {submit: {apply: none}}
stateMachines: {m: {states: {a: {on: {submit: b, withdraw: b}}, b: {type: final}}}}
`

const strictFlow = `id: strict
events:
  submit: {data: {type: object, properties: {a: {type: string}}, required: [a], additionalProperties: false}}
  nested: {data: {type: object, properties: {list: {type: array, items: {type: object, properties: {x: {}, y: {}}, required: [y], additionalProperties: false}}}}}
  town: {data: {type: object, properties: {home: {properties: {town: {}}, additionalProperties: false}}}}
  open: {data: {type: object}}
  typed: {data: {type: object, properties: {days: {type: integer}, size: {enum: [S, M]}, note: {type: string}}, required: [note], additionalProperties: false}}
stateMachines: {m: {states: {a: {on: {submit: b, nested: b, town: b, open: b, typed: b, free: b}}, b: {type: final}}}}
`

const closedFlow = `id: closed
create: {svcPublic: {type: object, required: [who]}}
stateMachines: {m: {states: {a: {on: {submit: b}}, b: {type: final}}}}
`

var sampleFiles = map[string]string{
	"address.schema.json": `{"$id":"https://example.org/address","type":"object","properties":{"town":{"$ref":"parts/town.json#/$defs/town"},"next":{"$ref":"#"}},"additionalProperties":false}`,
	"parts/town.json":     `{"$defs":{"town":{"type":"string","maxLength":5,"default":{"$ref":"x"}}}}`,
	"text.json":           `no JSON`,
	"far.json":            `{"$ref":"https://example.org/s.json"}`,
	"up.json":             `{"$ref":"../identity.yaml"}`,
}

func readSample(name string) ([]byte, error) {
	text, ok := sampleFiles[name]
	if !ok {
		return nil, errors.New("file is not there")
	}
	return []byte(text), nil
}

// knownSample knows the roles clerk and boss, the workflow leave, and that there
// is a workflow "faulty".
func knownSample(t testing.TB) Known {
	t.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	flows := map[string]*statemachine.Definition{}
	for _, text := range []string{leaveFlow, strictFlow, closedFlow} {
		flow, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(text)})
		require.NoError(t, err)
		flows[string(flow.ID)] = flow.Definition
	}
	return Known{
		HasRole: func(id string) bool { return id == "clerk" || id == "boss" }, Roles: []string{"clerk", "boss"},
		Workflow: func(id string) (*statemachine.Definition, bool) {
			d := flows[id]
			return d, d != nil || id == "faulty"
		},
		Workflows: []string{"leave", "strict", "closed"},
	}
}

func parseSample(t testing.TB, kind form.Kind, text string) *Template {
	t.Helper()
	parsed, err := ParseTemplate(TemplateText{Kind: kind, File: "t.yaml", Text: []byte(text), Read: readSample, Modified: time.Unix(1, 2_345_678)}, knownSample(t))
	require.NoError(t, err)
	return parsed
}

func TestAFormHasWhatItsFileSays(t *testing.T) {
	got := parseSample(t, form.KindForm, leaveForm)
	got.schema = nil
	assert.Equal(t, form.DigestOf(got.Schema), got.Digest, "the digest")
	got.Digest = form.Digest{}
	want := &Template{
		Kind: form.KindForm, ID: "leave-form", Name: statemachine.Plain("Leave Request"), Description: statemachine.Plain("Ask for days off"), Enabled: true,
		Roles: []string{"clerk", "boss"}, Workflows: []string{"leave"}, Submit: "submit",
		UI: data.Value(`{"order":["days","home"]}`), Modified: time.Unix(1, 2_000_000).UTC(),
		Schema: data.Value(`{"type":"object","properties":{"days":{"type":"integer","minimum":1,"maximum":60},"home":{"$ref":"#/$defs/address.schema.json"}},"required":["days"],"$defs":{` +
			`"address.schema.json":{"type":"object","properties":{"town":{"$ref":"#/$defs/parts~1town.json/$defs/town"},"next":{"$ref":"#/$defs/address.schema.json"}},"additionalProperties":false},` +
			`"parts/town.json":{"$defs":{"town":{"type":"string","maxLength":5,"default":{"$ref":"x"}}}}}}`),
	}
	assert.Equal(t, want, got)
	all := func(string) bool { return true }
	assert.True(t, got.BoundTo("leave", all) && !got.BoundTo("other", all), "bound to the wrong workflows")
}

// TestAFormWithoutWorkflowsBindsWithAnyThatKnowsItsEvent: the key missing says
// nothing, an empty list says none.
func TestAFormWithoutWorkflowsBindsWithAnyThatKnowsItsEvent(t *testing.T) {
	knows := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	for _, c := range []struct {
		name, lines string
		submit      string
		declares    []string
		want        bool
	}{
		{"no key", "", "submit", []string{"submit"}, true},
		{"no key, and another workflow", "", "submit", []string{"go"}, false},
		{"no key, with an event", "submit: go\n", "go", []string{"go"}, true},
		{"no key, with an event that is not there", "submit: go\n", "go", []string{"submit"}, false},
		{"an empty list", "workflows: []\n", "", []string{"submit", ""}, false},
		{"another one", "workflows: [leave]\n", "", []string{"submit", ""}, false},
	} {
		got := parseSample(t, form.KindForm, plainFile(c.lines))
		assert.True(t, got.Submit == c.submit && got.BoundTo("other", knows(c.declares...)) == c.want, "%v %v %v %v %v", c.name, got.Submit, !c.want, c.submit, c.want)
	}
	assert.False(t, parseSample(t, form.KindChecklist, safety).BoundTo("other", knows("submit", "")), "a checklist is bound to a workflow")
}

func TestAChecklistHasItsItems(t *testing.T) {
	got := parseSample(t, form.KindChecklist, safety)
	want := []Item{
		{ID: "exits", Label: statemachine.Plain("Exits are free"), Help: statemachine.Plain("Open every door."), Required: true}, {ID: "light", Label: statemachine.Plain("light")},
	}
	assert.True(t, reflect.DeepEqual(got.Items, want) && got.Name.For() == "safety" && got.Schema == nil, "got %+v", got)
	assert.True(t, got.Kind.String() == "checklist" && form.KindForm.String() == "form", "kinds: got %s and %s", got.Kind, form.KindForm)
}

func TestCheckNamesTheFirstPlaceThatDoesNotFit(t *testing.T) {
	for _, test := range []struct {
		name string
		kind form.Kind
		in   string
		want string // a part of the error; empty: none
	}{
		{"a form that fits", form.KindForm, `{"days":3,"home":{"town":"Ulm","next":{"town":"Hof"}}}`, ""},
		{"a form without what is required", form.KindForm, `{}`, "at /: missing property 'days'"},
		{"a form with a wrong type", form.KindForm, `{"days":"3"}`, "at /days: "},
		{"a form with too large a number", form.KindForm, `{"days":61}`, "at /days: "},
		{"a form that does not fit another file's schema", form.KindForm, `{"days":3,"home":{"next":{"town":"Ravensburg"}}}`, "at /home/next/town: "},
		{"a form that is no object", form.KindForm, `[]`, "at /: "},
		{"a checklist that fits", form.KindChecklist, `{"exits":true,"light":false}`, ""},
		{"a checklist without what is not required", form.KindChecklist, `{"exits":true}`, ""},
		{"a checklist without a required item", form.KindChecklist, `{"light":true}`, "at /: missing property 'exits'"},
		{"a required item that is not ticked", form.KindChecklist, `{"exits":false}`, "at /exits: "},
		{"an item that is no boolean", form.KindChecklist, `{"exits":true,"light":"yes"}`, "at /light: "},
		{"an item that the checklist does not have", form.KindChecklist, `{"exits":true,"lights":true}`, "'lights' not allowed"},
		{"a checklist that is null", form.KindChecklist, `null`, "at /: "},
	} {
		text := map[form.Kind]string{form.KindForm: leaveForm, form.KindChecklist: safety}[test.kind]
		err := parseSample(t, test.kind, text).Check(data.Value(test.in))
		assert.True(t, (err == nil) == (test.want == "") && !(err != nil && (!errors.Is(err, statemachine.ErrInvalidData) || !strings.Contains(err.Error(), test.want))),
			"%s: got %v, want it to say %q", test.name, err, test.want)
	}
}

func TestTheRoleOfACallerIsTheFirstInTheTemplatesOrder(t *testing.T) {
	form := parseSample(t, form.KindForm, leaveForm)
	for _, test := range []struct {
		roles []string
		want  string
	}{
		{[]string{"boss", "clerk"}, "clerk"},
		{[]string{"other", "boss"}, "boss"},
		{[]string{"other"}, ""},
		{nil, ""},
	} {
		got, ok := form.RoleOf(test.roles)
		assert.True(t, got == test.want && ok == (test.want != ""), "%v: got %q, %v, want %q", test.roles, got, ok, test.want)
	}
}

// plainFile and listFile are files with the given lines behind what every one needs.
func plainFile(lines string) string {
	return "id: f\naccess: {roles: [clerk]}\nschema: {type: object}\n" + lines
}

func listFile(lines string) string { return "id: c\naccess: {roles: [clerk]}\n" + lines }

// fitFile is a form for an event of the workflow strict.
func fitFile(event, fields, rest string) string {
	return "id: f\naccess: {roles: [clerk]}\nworkflows: [strict]\nsubmit: " + event + "\nschema: {type: object, properties: {" + fields + rest + "}}\n"
}

// TestAFormThatLetsRequiredFieldsOut: the event requires what may be left out.
func TestAFormThatLetsRequiredFieldsOut(t *testing.T) {
	const said = `t.yaml:5:37: the event "submit" of workflow "strict" requires "a", which may be left out of the form (let the form require it, too)`
	for _, test := range []struct{ name, text, want string }{
		{"optional", fitFile("submit", "a: {type: string}", ""), said},
		{
			"some choices that the event refuses", fitFile("typed", "size: {enum: [S, XL]}, note: {default: x}", ""),
			`t.yaml:5:37: the event "typed" of workflow "strict" refuses some of the choices that the form has for "size": "XL" (leave them out, or let the event's data have them)`,
		},
		{
			"an event that no workflow declares", plainFile("submit: sbmit\n"),
			`t.yaml:4:9: no workflow declares an event "sbmit": forms of this template can only be plain ones (leave submit out, or name workflows)`,
		},
		{"an event that some workflow declares", plainFile("submit: nested\n"), ""},
		{"required", fitFile("submit", "a: {type: string}", "}, required: [a], $defs: {"), ""},
		{"filled in beforehand", fitFile("submit", "a: {type: string, default: x}", ""), ""},
		{"required by a condition", fitFile("submit", "a: {type: string}", "}, if: {}, then: {required: [a]}, $defs: {"), ""},
		{"inside another", fitFile("nested", "list: {type: array, items: {required: [x], properties: {x: {}, y: {}}}", "}"), `t.yaml:5:100: the event "nested" of workflow "strict" requires "list.y", which`},
	} {
		got := ""
		if warnings := parseSample(t, form.KindForm, test.text).Warnings; len(warnings) > 0 {
			got = warnings.Error()
		}
		assert.True(t, strings.HasPrefix(got, test.want) && (got == "") == (test.want == ""), "%s:\n got %s\nwant %s", test.name, got, test.want)
	}
}

// fillFile is a form without a workflow.
func fillFile(schema, ui string) string {
	return "id: f\naccess: {roles: [clerk]}\nworkflows: []\nschema: {type: object, " + schema + "}\nui: {" + ui + "}\n"
}

func TestEveryFaultHasItsPlaceAndAdvice(t *testing.T) {
	refTo := func(ref string) string {
		return "id: f\naccess: {roles: [clerk]}\nschema: {type: object, properties: {a: {$ref: '" + ref + "'}}}\n"
	}
	for _, test := range []struct {
		name string
		kind form.Kind
		text string
		want []string // beginnings of the faults, in order
	}{
		{"a list at the top", form.KindForm, "- a\n", []string{"t.yaml:1:1: expected a mapping"}},
		{"an empty file", form.KindForm, "", []string{"t.yaml:1:1: expected a mapping, found null"}},
		{"broken YAML", form.KindForm, "id: [", []string{"t.yaml:"}},
		{"an unknown key", form.KindForm, plainFile("workflow: []\n"), []string{`t.yaml:4:1: unknown key "workflow" (did you mean "workflows"?)`}},
		{"an unknown key of access", form.KindForm, plainFile("")[:6] + "access: {role: [clerk], roles: [clerk]}\nschema: {type: object}\n", []string{`t.yaml:2:10: unknown key "role" (did you mean "roles"?)`}},
		{"an unknown key of an item", form.KindChecklist, listFile("items: [{id: a, lable: A}]\n"), []string{`t.yaml:3:17: unknown key "lable" (did you mean "label"?)`}},
		{"no id", form.KindForm, plainFile("")[6:], []string{"t.yaml:1:1: the template has no id"}},
		{"an id that is no identifier", form.KindForm, "id: a/b" + plainFile("")[5:], []string{`t.yaml:1:5: "a/b" is not an identifier (1 to 128 of`}},
		{"an id that is a number", form.KindForm, "id: 7" + plainFile("")[5:], []string{"t.yaml:1:5: expected a text, found a number (quote it)"}},
		{"the id of the interface", form.KindForm, "id: api" + plainFile("")[5:], []string{`t.yaml:1:5: the id "api" is taken: addresses of the form runtime begin with it (choose another id)`}},
		{"a name that is a number", form.KindForm, plainFile("name: 7\n"), []string{"t.yaml:4:7: expected a text"}},
		{"texts that are too long", form.KindForm, plainFile("name: " + strings.Repeat("ä", 201) + "\ndescription: " + strings.Repeat("ä", 2001) + "\n"), []string{"t.yaml:4:7: the name has more than 200", "t.yaml:5:14: the description has more than 2000"}},
		{"an item with long texts", form.KindChecklist, listFile("items: [{id: a, label: " + strings.Repeat("x", 201) + ", help: " + strings.Repeat("x", 2001) + "}]\n"), []string{"t.yaml:3:24: the label has more than 200", "t.yaml:3:233: the help has more than 2000"}},
		{"too many items", form.KindChecklist, listFile("items:\n" + strings.Repeat("  - {id: a}\n", 1001)), []string{"t.yaml:4:3: the checklist has more than 1000 items"}},
		{"enabled that is a text", form.KindForm, plainFile("enabled: maybe\n"), []string{"t.yaml:4:10: expected true or false"}},
		{"no access", form.KindForm, "id: f\nschema: {type: object}\n", []string{"t.yaml:1:1: no role may use the template (name some: access: {roles: [...]}, or"}},
		{"access without roles", form.KindForm, "id: f\naccess: {}\nschema: {type: object}\n", []string{"t.yaml:2:9: no role may use the template"}},
		{"access with no role", form.KindForm, "id: f\naccess: {roles: []}\nschema: {type: object}\n", []string{"t.yaml:2:9: no role may use the template"}},
		{"access that is a list", form.KindForm, "id: f\naccess: [clerk]\nschema: {type: object}\n", []string{"t.yaml:2:9: expected a mapping, found a list"}},
		{"roles that are a mapping", form.KindForm, "id: f\naccess: {roles: {a: b}}\nschema: {type: object}\n", []string{"t.yaml:2:17: expected a text or a list of texts"}},
		{"an unknown role", form.KindForm, "id: f\naccess: {roles: [clerk, bos]}\nschema: {type: object}\n", []string{`t.yaml:2:25: unknown role "bos" (did you mean "boss"?)`}},
		{"an unknown role alone", form.KindForm, "id: f\naccess: {roles: clark}\nschema: {type: object}\n", []string{`t.yaml:2:17: unknown role "clark" (did you mean "clerk"?)`}},
		{"a role twice", form.KindForm, "id: f\naccess: {roles: [clerk, clerk]}\nschema: {type: object}\n", []string{`t.yaml:2:25: role "clerk" is there twice`}},
		{"an unknown workflow", form.KindForm, plainFile("workflows: [leaf]\n"), []string{`t.yaml:4:13: unknown workflow "leaf" (did you mean "leave"?)`}},
		{"a workflow twice", form.KindForm, plainFile("workflows: [leave, leave]\n"), []string{`t.yaml:4:20: workflow "leave" is there twice`}},
		{"a workflow that is a number", form.KindForm, plainFile("workflows: [1]\n"), []string{"t.yaml:4:13: expected a text"}},
		{"an event that the workflow does not have", form.KindForm, plainFile("workflows: leave\nsubmit: sumbit\n"), []string{`t.yaml:5:9: workflow "leave" declares no event "sumbit" (did you mean "submit"?)`}},
		{"an event of the machine itself", form.KindForm, plainFile("workflows: leave\nsubmit: done.state.b\n"), []string{`t.yaml:5:9: workflow "leave" declares no event "done.state.b"`}},
		{"what cannot be an event", form.KindForm, plainFile("workflows: leave\nsubmit: a b\n"), []string{`t.yaml:5:9: "a b" cannot be an event`}},
		{
			"fields that the event refuses", form.KindForm, fitFile("submit", "a: {type: string}, b: {}, c: {}", ""),
			[]string{
				`t.yaml:5:56: the event "submit" of workflow "strict" refuses the field "b" (leave the field out, or let the event's data have it)`,
				`t.yaml:5:63: the event "submit" of workflow "strict" refuses the field "c"`,
			},
		},
		{
			"a field that the event requires", form.KindForm, fitFile("submit", "", ""),
			[]string{`t.yaml:5:9: the event "submit" of workflow "strict" requires "a", which the form does not have (add the field to the form)`},
		},
		{
			"fields inside others", form.KindForm, fitFile("nested", "list: {type: array, items: {properties: {x: {}, z: {}}}", "}"),
			[]string{
				`t.yaml:5:37: the event "nested" of workflow "strict" requires "list.y", which the form does not have`,
				`t.yaml:5:85: the event "nested" of workflow "strict" refuses the field "list.z"`,
			},
		},
		{"fields of another file", form.KindForm, fitFile("town", "home: {$ref: address.schema.json}", ""), []string{`t.yaml:5:37: the event "town" of workflow "strict" refuses the field "home.next"`}},
		{
			"another type", form.KindForm, fitFile("typed", "days: {type: string}, note: {}", ""),
			[]string{`t.yaml:5:37: the event "typed" of workflow "strict" takes "days" of type integer, and the form has it of type string (let both have one type)`},
		},
		{
			"no choice that the event takes", form.KindForm, fitFile("typed", "size: {enum: [L, XL]}, note: {}", ""),
			[]string{`t.yaml:5:37: the event "typed" of workflow "strict" takes no value that the form has for "size" (refused: "L", "XL")`},
		},
		{
			"mistyped fields", form.KindForm, fitFile("typed", "dasy: {}, nota: {}", ""),
			[]string{
				`t.yaml:5:9: the event "typed" of workflow "strict" requires "note", which the form does not have (did you mean "nota"?)`,
				`t.yaml:5:37: the event "typed" of workflow "strict" refuses the field "dasy" (did you mean "days"?)`,
				`t.yaml:5:47: the event "typed" of workflow "strict" refuses the field "nota" (did you mean "note"?)`,
			},
		},
		{
			"a workflow that is not created without data", form.KindForm, plainFile("workflows: [leave, closed]\nsubmit: submit\n"),
			[]string{`t.yaml:4:20: workflow "closed" cannot be created without data, but a new form is empty: on create svcPublic: data does not fit the schema: at /: missing property 'who'`},
		},
		{"the same without brackets", form.KindForm, plainFile("workflows: closed\n"), []string{`t.yaml:4:12: workflow "closed" cannot be created without data`}},
		{"a field that goes to svcPrivate", form.KindForm, fitFile("open", "svcPrivate: {}", ""), []string{`t.yaml:5:37: the event "open" of workflow "strict" refuses the field "svcPrivate"`}},
		{"a field that could go anywhere", form.KindForm, fitFile("open", "svcPublic: {}, a: {}", ""), []string{`t.yaml:5:37: the event "open" of workflow "strict" refuses the field "svcPublic"`}},
		{
			"an order that lacks a field", form.KindForm, fillFile("properties: {reason: {}, days: {}}", "'ui:order': [days, resaon]"),
			[]string{`t.yaml:5:6: ui:order lacks the field "reason" (add it, or "*" for all others)`, `t.yaml:5:25: ui:order names the field "resaon", which the form does not have (did you mean "reason"?)`},
		},
		{"an order with a field twice", form.KindForm, fillFile("properties: {a: {}}", "'ui:order': [a, '*', '*']"), []string{`t.yaml:5:27: "*" is there twice`}},
		{
			"an order inside others", form.KindForm, fillFile("properties: {list: {type: array, items: {properties: {x: {}, z: {}}}}}", "list: {items: {'ui:order': [x]}}"),
			[]string{`t.yaml:5:21: ui:order lacks the field "z"`},
		},
		{"a required field that is not there", form.KindForm, fillFile("properties: {days: {}}, required: [days, day]", ""), []string{`t.yaml:4:65: the field "day" is required, and the form does not have it: nobody could submit it (did you mean "days"?)`}},
		{
			"a required field that is not there, inside others", form.KindForm,
			fillFile("properties: {list: {items: {properties: {x: {}}, required: [y], additionalProperties: false}}}", ""),
			[]string{`t.yaml:4:84: the field "list.y" is required`},
		},
		{"submit with no workflow", form.KindForm, plainFile("workflows: []\nsubmit: submit\n"), []string{"t.yaml:5:9: a form without workflows"}},
		{"no schema", form.KindForm, "id: f\naccess: {roles: [clerk]}\n", []string{"t.yaml:1:1: the form has no schema (say what"}},
		{"a schema that is a list", form.KindForm, "id: f\naccess: {roles: [clerk]}\nschema: []\n", []string{"t.yaml:3:9: expected a mapping, found a list"}},
		{"a schema of a list", form.KindForm, "id: f\naccess: {roles: [clerk]}\nschema: {type: array}\n", []string{"t.yaml:3:16: JSON Schema: the type of a form's data must be object (type: object)"}},
		{"a schema without a type", form.KindForm, "id: f\naccess: {roles: [clerk]}\nschema: {properties: {}}\n", []string{"t.yaml:3:9: JSON Schema: the type of a form's data must be object"}},
		{"a schema that is none", form.KindForm, "id: f\naccess: {roles: [clerk]}\nschema: {type: object, required: a}\n", []string{"t.yaml:3:34: JSON Schema: at /required: expected a list, found a text"}},
		{"a file that is not there", form.KindForm, refTo("no.json"), []string{`t.yaml:3:9: JSON Schema: file "no.json": file is not there`}},
		{"a file that is no JSON", form.KindForm, refTo("text.json"), []string{`t.yaml:3:9: JSON Schema: file "text.json": `}},
		{"a place that the file does not have", form.KindForm, refTo("address.schema.json#/no"), []string{`t.yaml:3:47: JSON Schema: the reference "#/$defs/address.schema.json/no" leads to nothing`}},
		{"a file outside", form.KindForm, refTo("../identity.yaml"), []string{`t.yaml:3:9: JSON Schema: "../identity.yaml" is not a file beside the template`}},
		{"a file outside, by way of another", form.KindForm, refTo("up.json"), []string{`t.yaml:3:9: JSON Schema: "../identity.yaml" is not a file beside the template`}},
		{"a file outside, in disguise", form.KindForm, refTo("a/%2e%2e/%2e%2e/identity.yaml"), []string{`t.yaml:3:9: JSON Schema: "a/%2e%2e/%2e%2e/identity.yaml" is not a file beside the template`}},
		{"an absolute file", form.KindForm, refTo("/etc/passwd"), []string{`t.yaml:3:47: JSON Schema: the reference "file:///etc/passwd" leads outside the folder`}},
		{"a file by its address", form.KindForm, refTo("file:///etc/passwd"), []string{`t.yaml:3:47: JSON Schema: the reference "file:///etc/passwd" leads outside the folder`}},
		{"the network", form.KindForm, refTo("https://example.org/s.json"), []string{`t.yaml:3:47: JSON Schema: the reference "https://example.org/s.json" leads outside the folder`}},
		{"the network, by way of a file", form.KindForm, refTo("far.json"), []string{`t.yaml:3:9: JSON Schema: the reference "https://example.org/s.json" leads outside the folder`}},
		{"layout that is a list", form.KindForm, plainFile("ui: []\n"), []string{"t.yaml:4:5: expected a mapping, found a list"}},
		{"items in a form", form.KindForm, plainFile("items: []\n"), []string{`t.yaml:4:1: a form cannot have "items"`}},
		{"a schema in a checklist", form.KindChecklist, listFile("schema: {}\nitems: [{id: a}]\n"), []string{`t.yaml:3:1: a checklist cannot have "schema"`}},
		{"a workflow in a checklist", form.KindChecklist, listFile("workflows: [leave]\nsubmit: submit\nitems: [{id: a}]\n"), []string{`t.yaml:3:1: a checklist cannot have "workflows"`, `t.yaml:4:1: a checklist cannot have "submit"`}},
		{"no items", form.KindChecklist, listFile(""), []string{"t.yaml:1:1: the checklist has no items (items: [{id: ..., label: ...}])"}},
		{"an empty list of items", form.KindChecklist, listFile("items: []\n"), []string{"t.yaml:3:8: the checklist has no items"}},
		{"items that are a text", form.KindChecklist, listFile("items: exits\n"), []string{"t.yaml:3:8: expected a list, found a text"}},
		{"an item that is a text", form.KindChecklist, listFile("items: [exits]\n"), []string{"t.yaml:3:9: expected a mapping, found a text"}},
		{"an item without id", form.KindChecklist, listFile("items: [{label: A}]\n"), []string{"t.yaml:3:9: the item has no id"}},
		{"an item whose id is no identifier", form.KindChecklist, listFile("items: [{id: a b}]\n"), []string{`t.yaml:3:14: "a b" is not an identifier`}},
		{"an item twice", form.KindChecklist, listFile("items: [{id: a}, {id: b}, {id: a}]\n"), []string{`t.yaml:3:32: item "a" is there twice`}},
		{"required that is a text", form.KindChecklist, listFile("items: [{id: a, required: sure}]\n"), []string{"t.yaml:3:27: expected true or false"}},
		{"all faults at once", form.KindForm, "id: a b\nnme: x\naccess: {roles: [boss, clrk]}\nworkflows: [leaf]\nschema: {}\nsubmit: go\n", []string{"t.yaml:1:5: ", "t.yaml:2:1: ", "t.yaml:3:24: ", "t.yaml:4:13: ", "t.yaml:5:9: "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			parsed, err := ParseTemplate(TemplateText{Kind: test.kind, File: "t.yaml", Text: []byte(test.text), Read: readSample}, knownSample(t))
			var faults document.Faults
			require.True(t, (parsed == nil || parsed.ID == "") && errors.As(err, &faults), "got %+v, %v, want faults", parsed, err)
			require.Len(t, faults, len(test.want), err)
			for i, want := range test.want {
				got := faults[i].Error()
				assert.True(t, strings.HasPrefix(got, want), "fault %d: got\n%s\nwant it to begin with\n%s", i, got, want)
			}
		})
	}
}

// TestWhatIsNoFault also holds that what was accepted stays readable: nothing is known
// of its roles and workflows then.
func TestWhatIsNoFault(t *testing.T) {
	for name, text := range map[string]string{
		"a disabled template for nobody":          "id: f\nenabled: false\nschema: {type: object}\n",
		"one role without brackets":               "id: f\naccess: {roles: clerk}\nschema: {type: object}\n",
		"a workflow of which nothing is known":    plainFile("workflows: [leave, faulty]\nsubmit: withdraw\n"),
		"workflows without a submit button":       plainFile("workflows: [leave]\n"),
		"a reference inside the schema":           "id: f\naccess: {roles: clerk}\nschema: {type: object, properties: {a: {$ref: '#/$defs/a'}}, $defs: {a: {type: string}}}\n",
		"a property with the name of a keyword":   "id: f\naccess: {roles: clerk}\nschema: {type: object, properties: {default: {$ref: address.schema.json}, $ref: {type: string}}}\n",
		"layout of a checklist":                   listFile("ui: {columns: 2}\nitems: [{id: a}]\n"),
		"a field that the event requires":         fitFile("submit", "a: {type: string}", ""),
		"fields inside others":                    fitFile("nested", "list: {type: array, items: {properties: {x: {}, y: {}}}", "}"),
		"svcPublic alone":                         fitFile("open", "svcPublic: {}", ""),
		"fields that the event does not name":     fitFile("open", "a: {}, b: {}", ""),
		"fields of an event without data":         fitFile("free", "a: {}", ""),
		"a field that no submit button sends":     strings.Replace(fitFile("submit", "b: {}", ""), "submit: submit\n", "", 1),
		"an order of all fields":                  fillFile("properties: {a: {}, b: {}}, required: [b]", "'ui:order': [b, a]"),
		"an order of some fields":                 fillFile("properties: {a: {}, b: {}}", "'ui:order': [b, '*']"),
		"a field of a condition":                  fillFile("properties: {a: {}}, if: {}, then: {properties: {b: {}}, required: [b]}", "'ui:order': [b, a]"),
		"a required field that a pattern matches": fillFile("properties: {a: {}}, allOf: [{required: [a]}], required: [b], patternProperties: {'^b': {}}", ""),
		"an order inside a circle":                fillFile("properties: {a: {$ref: '#'}}", "a: {a: {'ui:order': [a]}}"),
		"an object that says nothing of fields":   fillFile("properties: {a: {type: object, required: [x]}}", ""),
	} {
		t.Run(name, func(t *testing.T) {
			kind := form.KindForm
			if strings.Contains(text, "items: [{id") {
				kind = form.KindChecklist
			}
			parseSample(t, kind, text)
		})
	}
	for _, text := range []string{
		leaveForm, fitFile("submit", "b: {}", ""), fillFile("properties: {a: {}}", "'ui:order': []"), fillFile("required: [a]", ""),
	} {
		_, err := ParseTemplate(TemplateText{File: "t.yaml", Text: []byte(text), Read: readSample}, Known{})
		assert.NoError(t, err, "accepted before, %s", text)
	}
}

func TestJSONSaysTheSame(t *testing.T) {
	text := `{"id": "f", "access": {"roles": ["boss"]}, "schema": {"type": "object", "properties": {"a": {"type": "string"}}}}`
	got, err := ParseTemplate(TemplateText{File: "f.json", Text: []byte(text)}, knownSample(t))
	assert.True(t, err == nil && got.ID == "f" && got.Check(data.Value(`{"a":1}`)) != nil, "got %+v, %v", got, err)
}

func TestASchemaHasBounds(t *testing.T) {
	read := func(name string) ([]byte, error) {
		if name == "large.json" {
			return []byte(`{"title":"` + strings.Repeat("x", maxSchemaBytes) + `"}`), nil
		}
		var n int
		_, err := fmt.Sscanf(name, "%d.json", &n)
		return fmt.Appendf(nil, `{"$ref":"%d.json"}`, n+1), err
	}
	for ref, want := range map[string]string{"0.json": "more than 64 files", "large.json": "more than 1048576 bytes"} {
		_, err := bundle(data.Value(`{"type":"object","$ref":"`+ref+`"}`), read)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%s: got %v, want %s", ref, err, want)
	}
}

// FuzzParseTemplate: any text is a template or faults. What is accepted is whole,
// can be read again when all that it names is gone, and checks anything.
func FuzzParseTemplate(f *testing.F) {
	f.Add([]byte(leaveForm), `{"days":1}`)
	f.Add([]byte(safety), `{"exits":true}`)
	f.Add([]byte(plainFile("enabled: false\n")), `{}`)
	f.Add([]byte(`{"id":"f","access":{"roles":"boss"},"schema":{"type":"object","$defs":{"a":true},"properties":{"a":{"$ref":"address.schema.json#x"}}}}`), `[]`)
	known := knownSample(f)
	f.Fuzz(func(t *testing.T, text []byte, sent string) {
		for _, file := range []string{"t.yaml", "t.json"} {
			for _, kind := range []form.Kind{form.KindForm, form.KindChecklist} {
				src := TemplateText{Kind: kind, File: file, Text: text, Read: readSample}
				parsed, err := ParseTemplate(src, known)
				var faults document.Faults
				if err != nil {
					require.True(t, (parsed == nil || parsed.Schema == nil) && errors.As(err, &faults) && len(faults) != 0, "got %v and %v", parsed, err)
					continue
				}
				require.True(t, (parsed.Schema == nil) == (kind == form.KindChecklist) && (len(parsed.Items) == 0) == (kind == form.KindForm) && parsed.ID != reservedID,
					"not whole: %+v", parsed)
				again, err := ParseTemplate(src, Known{})
				require.True(t, err == nil && again.ID == parsed.ID, "read again: %v", err)
				if v, err := data.Clean([]byte(sent)); err == nil {
					err := parsed.Check(v)
					require.False(t, err != nil && !errors.Is(err, statemachine.ErrInvalidData), "check: %v", err)
				}
			}
		}
	})
}
