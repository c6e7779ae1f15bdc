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

// travel has each text of a form in two languages, wherever one can stand; title and description are also the names of fields.
const travel = `id: travel
name: {en: Travel, de: Reise}
description: {en: Ask for a trip., de: Eine Reise beantragen.}
access: {roles: [clerk]}
schema:
  type: object
  title: {en: Your trip, de: Ihre Reise}
  properties:
    title: {type: string, title: {en: Occasion, de: Anlass}, default: {en: kept}}
    class:
      oneOf: [{const: 1, title: {en: First, de: Erste}}, {const: 2, title: Second}]
    legs:
      type: array
      items:
        type: object
        properties:
          to: {type: string, title: {en: To, de: Nach}, description: {en: A town., de: Ein Ort.}}
  if: {properties: {class: {const: 1}}}
  then: {description: {en: Dear., de: Teuer.}}
ui:
  title: {"ui:placeholder": {en: A fair, de: Eine Messe}, "ui:options": {rows: 3, help: {en: Be brief., de: Kurz.}}}
  class: {"ui:enumNames": [{en: One, de: Eins}, Two]}
  legs: {items: {to: {"ui:title": {en: Town, de: Ort}}}}
`

// inOne is a file with only one of two languages, which is what a page shows.
func inOne(file, language string) string {
	for _, m := range []string{
		"Travel|Reise", "Ask for a trip.|Eine Reise beantragen.", "Your trip|Ihre Reise", "Occasion|Anlass", "First|Erste", "To|Nach", "A town.|Ein Ort.", "Dear.|Teuer.",
		"A fair|Eine Messe", "Be brief.|Kurz.", "One|Eins", "Town|Ort",
	} {
		en, de, _ := strings.Cut(m, "|")
		text := en
		if language == "de" {
			text = de
		}
		file = strings.ReplaceAll(file, "{en: "+en+", de: "+de+"}", `"`+text+`"`)
	}
	return file
}

// TestTextsOfAFormAreInSeveralLanguages: a reader gets one of each, as if the file had only that one.
func TestTextsOfAFormAreInSeveralLanguages(t *testing.T) {
	got := parseSample(t, form.KindForm, travel)
	for _, c := range []struct {
		languages []string
		as        string
	}{
		{nil, "en"},
		{[]string{"de-AT", "en"}, "de"},
		{[]string{"en-GB"}, "en"},
		{[]string{"fr", "de"}, "de"},
		{[]string{"fr"}, "en"},
	} {
		want := parseSample(t, form.KindForm, inOne(travel, c.as))
		assert.Equal(t, want.Schema.String(), got.SchemaFor(c.languages...).String(), "%q: got the schema, %s", c.languages, want.Schema)
		assert.Equal(t, want.UI.String(), got.UIFor(c.languages...).String(), "%q: got the hints, %s", c.languages, want.UI)
		name, what := got.Name.For(c.languages...), got.Description.For(c.languages...)
		assert.True(t, name == want.Name.For() && what == want.Description.For(), "%q: got %q and %q", c.languages, name, what)
		assert.Nil(t, want.texts, "a file with plain texts has others")
	}
	plain := parseSample(t, form.KindForm, inOne(travel, "en"))
	assert.True(t, got.Digest == plain.Digest && got.Schema.String() == plain.Schema.String(), "drafts do not fit any more when a form is translated")
	assert.ErrorIs(t, got.Check(data.Value(`{"class":3}`)), statemachine.ErrInvalidData, "what does not fit")
	assert.NoError(t, got.Check(data.Value(`{"title":"a","class":2,"legs":[{"to":"b"}]}`)), "what fits")
}

// TestTextsOfAChecklistAreInSeveralLanguages, those of a file beside a form too.
func TestTextsOfAChecklistAreInSeveralLanguages(t *testing.T) {
	got := parseSample(t, form.KindChecklist, "id: walk\nname: {en: Walk, de: Gang}\naccess: {roles: [clerk]}\nitems: [{id: a, label: {de: Licht, en: Light}, help: {en: All, de: Alle}}, {id: b}]\n")
	if i := got.Items[0]; i.Label.For("en") != "Light" || i.Label.For() != "Licht" || i.Help.For("de") != "Alle" || got.Items[1].Label.For("de") != "b" || got.Name.For("de") != "Gang" {
		t.Errorf("got %+v", got)
	}
	read := func(string) ([]byte, error) {
		return []byte(`{"type": "string", "title": {"en": "Contact", "de": "Kontakt"}}`), nil
	}
	of, err := ParseTemplate(TemplateText{Kind: form.KindForm, File: "forms/t.yaml", Read: read, Text: []byte("id: f\naccess: {roles: [clerk]}\nschema: {type: object, properties: {c: {$ref: contact.json}}}\n")}, Known{})
	require.NoError(t, err)
	for language, want := range map[string]string{"de": "Kontakt", "en": "Contact", "fr": "Contact"} {
		s := of.SchemaFor(language).String()
		assert.True(t, strings.Contains(s, `"title":"`+want+`"`) && !strings.Contains(s, `"de"`), "%s: got %s", language, s)
	}
}

// TestFaultsInTextsHaveTheirPlace, in the file that has them.
func TestFaultsInTextsHaveTheirPlace(t *testing.T) {
	const head = "id: f\naccess: {roles: [clerk]}\n"
	known := Known{Workflow: func(string) (*statemachine.Definition, bool) { return nil, true }}
	for _, c := range []struct {
		kind       form.Kind
		text, want string
	}{
		{form.KindForm, head + "name: {deutsch_: A}\nschema: {type: object}\n", `forms/t.yaml:3:8: "deutsch_" is not a language (write a tag such as "en" or "pt-BR")`},
		{form.KindForm, head + "description: {}\nschema: {type: object}\n", "forms/t.yaml:3:14: must have one to 64 languages"},
		{form.KindForm, head + "name: {en: " + strings.Repeat("a", 201) + "}\nschema: {type: object}\n", "forms/t.yaml:3:7: the name has more than 200 characters"},
		{form.KindForm, head + "schema:\n  type: object\n  properties:\n    a: {title: {en: [1]}}\n", "forms/t.yaml:6:21: expected a text, found a list"},
		{form.KindForm, head + "schema:\n  type: object\n  properties:\n    a:\n      items:\n        description: {en: ''}\n", "forms/t.yaml:8:27: the text is empty"},
		{form.KindForm, head + "schema:\n  type: object\n  anyOf:\n    - title: {en: '${x}'}\n", "forms/t.yaml:6:19: this text cannot have an expression"},
		{form.KindForm, head + "schema: {type: object}\nui:\n  a: {\"ui:placeholder\": {en: [b]}}\n", "forms/t.yaml:5:30: expected a text, found a list"},
		{form.KindForm, head + "schema: {type: object}\nui:\n  a: {\"ui:enumNames\": [{x_: b}]}\n", `forms/t.yaml:5:25: "x_" is not a language`},
		{form.KindForm, head + "schema: {type: object, $ref: shared.json}\n", `forms/shared.json:2:11: "x_" is not a language`},
		{form.KindChecklist, head + "items:\n  - id: a\n    help: {en: \"a\\u202Eb\"}\n", "forms/t.yaml:5:16: the text has U+202E, a character that cannot be seen"},
	} {
		read := func(string) ([]byte, error) { return []byte("{\n\"title\": {\"x_\": \"b\"}}"), nil }
		_, err := ParseTemplate(TemplateText{Kind: c.kind, File: "forms/t.yaml", Text: []byte(c.text), Read: read}, known)
		var faults document.Faults
		assert.True(t, errors.As(err, &faults) && len(faults) == 1 && strings.HasPrefix(fmt.Sprint(faults[0]), c.want), "%s: got %v, want %s", c.text, err, c.want)
	}
}

// TestWarningsForAuthors: what is allowed and looks like a slip, in the file that has it. Of a form without such there is none.
func TestWarningsForAuthors(t *testing.T) {
	schema := "properties: {a: {type: string, minLenght: 3, 'x-typ': 1, 'ui:typ': 2}, typ: {type: object}}"
	hints := "a: {'ui:widgit': textarea, 'ui:foo': 1, 'ui:options': {rows: 3, foo: 1}}, l: {items: {'ui:ordre': []}}, anyOf: [{'ui:hlep': a}]"
	known := "'ui:order': ['*'], a: {'ui:widget': radio, 'ui:help': {en: a, de: b}, 'ui:readonly': true, 'ui:classNames': x, 'ui:ArrayFieldTemplate': T, 'ui:enumNames': [a, {en: b}], 'ui:sums': [b], 'ui:currency': EUR}"
	kinds := "'ui:order': a, a: {'ui:title': 3, 'ui:help': [a], 'ui:enumNames': a, 'ui:options': [], b: {'ui:options': {placeholder: true}, 'ui:enumNames': [1, b], 'ui:widget': {}}}"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", fillFile("properties: {a: {type: string}}", known), ""},
		{
			"keywords and hints of a schema", fillFile(schema, ""), `t.yaml:4:55: JSON Schema has no keyword "minLenght": it does nothing (did you mean "minLength"?)
t.yaml:4:81: the page knows no hint "ui:typ": it does nothing`,
		},
		{"hints", fillFile("properties: {a: {}, l: {}}", hints), `t.yaml:5:10: the page knows no hint "ui:widgit": it does nothing (did you mean "ui:widget"?)
t.yaml:5:33: the page knows no hint "ui:foo": it does nothing
t.yaml:5:92: the page knows no hint "ui:ordre": it does nothing (did you mean "ui:order"?)
t.yaml:5:119: the page knows no hint "ui:hlep": it does nothing (did you mean "ui:help"?)`},
		{"hints that are something else", fillFile("properties: {a: {}}", kinds), `t.yaml:5:18: the hint "ui:order": expected a list, found a text
t.yaml:5:37: the hint "ui:title": expected a text, found a number (quote it)
t.yaml:5:51: the hint "ui:help": expected a text, found a list
t.yaml:5:72: the hint "ui:enumNames": expected a list, found a text
t.yaml:5:89: the hint "ui:options": expected a mapping, found a list
t.yaml:5:125: the hint "placeholder": expected a text, found true or false (quote it)
t.yaml:5:149: the hint "ui:enumNames": expected a text, found a number (quote it)
t.yaml:5:169: the hint "ui:widget": expected a text, found a mapping`},
		{"languages", fillFile("properties: {a: {title: {en: A, deutsch: B}}}", "a: {'ui:help': {eng: A}}") + "name: {xx: A, de-AT: B}\n", `t.yaml:4:56: "deutsch" is not the tag of a known language (write one such as "en" or "pt-BR")
t.yaml:5:22: readers ask for the language by its shorter tag, and not for "eng" (did you mean "en"?)
t.yaml:6:8: "xx" is not the tag of a known language (write one such as "en" or "pt-BR")`},
		{"a file beside it", fillFile("$ref: s.json", ""), `s.json:1:12: "xx" is not the tag of a known language (write one such as "en" or "pt-BR")
s.json:1:24: the page knows no hint "ui:hlep": it does nothing (did you mean "ui:help"?)`},
	} {
		of, err := ParseTemplate(TemplateText{Kind: form.KindForm, File: "t.yaml", Text: []byte(c.text), Read: func(string) ([]byte, error) {
			return []byte(`{"title": {"xx": "a"}, "ui:hlep": 1}`), nil
		}}, Known{Workflow: func(string) (*statemachine.Definition, bool) { return nil, true }})
		if !assert.NoError(t, err, c.name) {
			continue
		}
		got := ""
		if len(of.Warnings) > 0 {
			got = of.Warnings.Error()
		}
		assert.Equal(t, c.want, got, c.name)
	}
}
