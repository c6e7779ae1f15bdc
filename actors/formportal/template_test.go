package formportal

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
	"shared.json":         "{\n\"title\": {\"x_\": \"b\"}}",
	"s.json":              `{"title": {"xx": "a"}, "ui:hlep": 1}`,
	"contact.json":        `{"type": "string", "title": {"en": "Contact", "de": "Kontakt"}}`,
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

func plainFile(lines string) string {
	return "id: f\naccess: {roles: [clerk]}\nschema: {type: object}\n" + lines
}

func TestTextsThatAreTooLong(t *testing.T) {
	list := "id: c\naccess: {roles: [clerk]}\nitems:"
	for text, want := range map[string]string{
		plainFile("name: " + strings.Repeat("ä", 201) + "\ndescription: " + strings.Repeat("ä", 2001) + "\n"):   "t.yaml:4:7: the name has more than 200 characters\nt.yaml:5:14: the description has more than 2000 characters",
		list + " [{id: a, label: " + strings.Repeat("x", 201) + ", help: " + strings.Repeat("x", 2001) + "}]\n": "t.yaml:3:24: the label has more than 200 characters\nt.yaml:3:233: the help has more than 2000 characters",
		list + "\n" + strings.Repeat("  - {id: a}\n", 1001):                                                     "t.yaml:4:3: the checklist has more than 1000 items",
	} {
		kind := form.KindForm
		if strings.HasPrefix(text, list) {
			kind = form.KindChecklist
		}
		_, err := ParseTemplate(TemplateText{Kind: kind, File: "t.yaml", Text: []byte(text)}, Known{})
		assert.EqualError(t, err, want)
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
