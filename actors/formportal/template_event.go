package formportal

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/schema"
)

// usualSubmit is the event of the submit button of a form that does not say which workflows it is for, nor which event.
const usualSubmit = "submit"

// Every workflow that the template names must know it, and take what the form sends.
func (p *templateParser) submit(n *document.Node) {
	field := n.Field("submit")
	if field == nil {
		if p.t.AnyWorkflow {
			p.t.Submit = usualSubmit
		}
		return
	}
	text := p.Text(field)
	if field.Kind != document.String { // a fault already
		return
	}
	name, ok := statemachine.ParseEventName(text)
	if !ok {
		p.Add(field, "%s cannot be an event", data.Quote(text))
		return
	}
	p.t.Submit = text
	if workflows := n.Field("workflows"); workflows != nil && isEmptyList(workflows) {
		p.Add(field, "a form without workflows has no event to send").Suggestion = "leave submit out, or name workflows"
		return
	}
	if p.known.Workflow == nil {
		return
	}
	if p.t.AnyWorkflow && !p.isDeclared(name) {
		p.warnings.Add(field, "no workflow declares an event %s: forms of this template can only be plain ones", data.Quote(text)).
			Suggestion = "leave submit out, or name workflows"
	}
	for _, id := range p.t.Workflows {
		switch d, _ := p.known.Workflow(id); {
		case d == nil:
		case d.Declares(name):
			p.compare(n.Field("schema"), id, d, name)
		default:
			var names []string
			for _, known := range d.EventNames() {
				names = append(names, string(known))
			}
			p.suggest(field, text, names, "workflow %q declares no event %s", id, data.Quote(text))
		}
	}
}

func (p *templateParser) isDeclared(event statemachine.EventName) bool {
	return slices.ContainsFunc(append([]string{unknownWorkflow}, p.known.Workflows...), func(id string) bool {
		d, ok := p.known.Workflow(id)
		return ok && (d == nil || d.Declares(event))
	})
}

// unknownWorkflow is the id of no workflow. It is there when others may be that are unknown.
const unknownWorkflow = ""

func (p *templateParser) creatable(n *document.Node) {
	if p.known.Workflow == nil {
		return
	}
	items := n.Items
	if n.Kind == document.String {
		items = []*document.Node{n}
	}
	for _, item := range items {
		if !slices.Contains(p.t.Workflows, item.Text) {
			continue
		}
		if d, _ := p.known.Workflow(item.Text); d != nil {
			if err := d.TakesNoData(); err != nil {
				p.Add(item, "workflow %q cannot be created without data, but a new form is empty: %v", item.Text, err).
					Suggestion = "let create of the workflow do without, and ask for it in the event"
			}
		}
	}
}

// compare checks the form's schema against what a workflow's event takes, so that its author learns of what nobody
// could submit.
func (p *templateParser) compare(schema *document.Node, workflow string, d *statemachine.Definition, event statemachine.EventName) {
	of := fmt.Sprintf("the event %s of workflow %q", data.Quote(string(event)), workflow)
	for _, m := range d.Mismatches(event, p.t.schema) {
		at := fieldIn(schema, m.Path)
		if m.Missing && !m.Optional {
			at = fieldIn(schema, m.Path[:len(m.Path)-1])
		}
		said := sayMisfit(of, m)
		faults := &p.Collector
		if !said.isFault {
			faults = &p.warnings
		}
		faults.Add(at, "%s", said.reason).Suggestion = said.suggestion
	}
}

type misfit struct {
	reason, suggestion string
	isFault            bool
}

// sayMisfit says it. of names the event.
func sayMisfit(of string, m schema.Mismatch) misfit {
	name := m.Path[len(m.Path)-1]
	field, meant := data.Quote(strings.Join(m.Path, ".")), document.DidYouMean(name, m.Others)
	switch {
	case m.Optional:
		return misfit{fmt.Sprintf("%s requires %s, which may be left out of the form", of, field), "let the form require it, too", false}
	case m.Missing:
		return misfit{fmt.Sprintf("%s requires %s, which the form does not have", of, field), cmp.Or(meant, "add the field to the form"), true}
	case m.Values == nil:
		return misfit{fmt.Sprintf("%s refuses the field %s", of, field), cmp.Or(meant, "leave the field out, or let the event's data have it"), true}
	case m.Values.Sent != "":
		reason := fmt.Sprintf("%s takes %s of type %s, and the form has it of type %s", of, field, m.Values.Taken, m.Values.Sent)
		return misfit{reason, "let both have one type", true}
	case m.Values.All:
		return misfit{fmt.Sprintf("%s takes no value that the form has for %s", of, field), "refused: " + listed(m.Values.Refused), true}
	}
	reason := fmt.Sprintf("%s refuses some of the choices that the form has for %s: %s", of, field, listed(m.Values.Refused))
	return misfit{reason, "leave them out, or let the event's data have them", false}
}

func listed(texts []string) string {
	const most = 5
	if len(texts) > most {
		return strings.Join(texts[:most], ", ") + ", …"
	}
	return strings.Join(texts, ", ")
}

// fieldIn returns where a schema has the field that the path leads to, or the last place on the way.
func fieldIn(schema *document.Node, path []string) *document.Node {
	at, _ := placeIn(schema, path)
	return at
}

// placeIn is fieldIn; below is the field's own schema, or the last one on the way.
func placeIn(schema *document.Node, path []string) (at, below *document.Node) {
	at = schema
	for _, name := range path {
		for schema.Field("items") != nil {
			schema = schema.Field("items")
		}
		properties := schema.Field("properties")
		if properties == nil {
			return at, schema
		}
		for _, f := range properties.Fields {
			if f.Key.Text == name {
				at, schema = f.Key, f.Value
			}
		}
	}
	return at, schema
}

// everythingElse stands in an order for the fields that it does not name.
const everythingElse = "*"

// fillable checks that a page can be made of the form, and that what is filled in can be submitted.
func (p *templateParser) fillable(n *document.Node) {
	if p.known.Workflow == nil || p.t.schema == nil {
		return
	}
	shape := p.t.schema.Shape()
	p.required(n.Field("schema"), shape, nil, nil)
	if ui := n.Field("ui"); ui != nil {
		p.order(ui, shape)
	}
}

func (p *templateParser) required(schema *document.Node, shape schema.Shape, path []string, around []schema.Shape) {
	fields := shape.Fields()
	if shape.Within(around) || len(path) > 0 && len(fields) == 0 {
		return // NB: of a value without fields the schema tells nothing
	}
	around = append(slices.Clone(around), shape)
	for _, name := range shape.Required() {
		if !shape.Mentions(name) {
			p.suggest(requiredIn(schema, path, name), name, fields, "the field %s is required, and the form does not have it: nobody could submit it",
				data.Quote(strings.Join(append(slices.Clone(path), name), ".")))
		}
	}
	for _, name := range fields {
		below := append(slices.Clone(path), name)
		p.required(schema, shape.Field(name), below, around)
		p.required(schema, shape.Field(name).Items(), below, around)
	}
}

// requiredIn returns where a schema requires the field, or the last place on the way there.
func requiredIn(schema *document.Node, path []string, name string) *document.Node {
	at, below := placeIn(schema, path)
	for below.Field("items") != nil {
		below = below.Field("items")
	}
	if list := below.Field("required"); list != nil {
		for _, item := range list.Items {
			if item.Text == name {
				return item
			}
		}
	}
	return at
}

func (p *templateParser) order(ui *document.Node, shape schema.Shape) {
	for _, f := range ui.Fields {
		switch name := f.Key.Text; {
		case name == "ui:order" && f.Value.Kind == document.Sequence:
			p.ordered(f.Key, f.Value, shape)
		case name == "items" && len(shape.Fields()) == 0:
			p.order(f.Value, shape.Items())
		case f.Value.Kind == document.Mapping && !strings.HasPrefix(name, "ui:"):
			p.order(f.Value, shape.Field(name))
		}
	}
}

func (p *templateParser) ordered(key, list *document.Node, shape schema.Shape) {
	fields := shape.Fields()
	var named []string
	for _, item := range list.Items {
		name := item.Text
		switch {
		case slices.Contains(named, name):
			p.Add(item, "%s is there twice", data.Quote(name))
		case name != everythingElse && !shape.Mentions(name):
			p.suggest(item, name, fields, "ui:order names the field %s, which the form does not have", data.Quote(name))
		}
		named = append(named, name)
	}
	if slices.Contains(named, everythingElse) {
		return
	}
	for _, name := range fields {
		if !slices.Contains(named, name) {
			p.Add(key, "ui:order lacks the field %s", data.Quote(name)).Suggestion = `add it, or "*" for all others`
		}
	}
}

// Texts of a template are in one or in several languages, as those of a definition are.

func (p *templateParser) text(n *document.Node) statemachine.Text {
	if n == nil || n.Kind != document.Mapping {
		return statemachine.Plain(p.Text(n))
	}
	return p.languages(p.own(), n)
}

type report struct{ faults, warnings *document.Collector }

func (p *templateParser) own() report { return report{&p.Collector, &p.warnings} }

func (p *templateParser) languages(to report, n *document.Node) statemachine.Text {
	return statemachine.ReadText(to.faults, to.warnings, n, p.known.Workflow == nil)
}

func schemaText(keyword string) bool { return keyword == "title" || keyword == "description" }

// checkSchema finds faults in the texts of a schema, which are maps of languages, and hints that nothing knows.
func (p *templateParser) checkSchema(to report, n *document.Node) {
	if n.Kind == document.Sequence {
		for _, item := range n.Items {
			p.checkSchema(to, item)
		}
	}
	for _, f := range n.Fields {
		warnOfHint(to.warnings, f.Key)
		switch key := f.Key.Text; {
		case schemaText(key) && f.Value.Kind == document.Mapping:
			p.languages(to, f.Value)
		case values[key]:
		case named[key] && f.Value.Kind == document.Mapping:
			for _, schema := range f.Value.Fields {
				p.checkSchema(to, schema.Value)
			}
		default:
			p.checkSchema(to, f.Value)
		}
	}
}

// readChecked reads a file beside the template, and finds faults in its texts. What is not a document at all is found when
// it is bundled.
func (p *templateParser) readChecked(name string) ([]byte, error) {
	text, err := p.read(name)
	if err != nil {
		return nil, err
	}
	file := path.Join(path.Dir(p.File), name)
	if tree, err := document.Parse(file, text); err == nil {
		beside := report{&document.Collector{File: file}, &document.Collector{File: file}}
		p.checkSchema(beside, tree)
		p.beside = append(p.beside, beside.faults.Faults()...)
		p.warningsBeside = append(p.warningsBeside, beside.warnings.Faults()...)
	}
	return text, nil
}

type picker struct {
	languages []string
	picked    bool // there was one
}

func (p *picker) text(dst []byte, v data.Value) []byte {
	var t statemachine.Text
	for language, text := range v.Members() {
		t = append(t, statemachine.Translation{Language: language, Text: text.Text()})
	}
	p.picked = true
	return data.AppendString(dst, t.For(p.languages...))
}

// each appends an array or an object with each of its elements replaced; anything else is copied.
func each(dst []byte, v data.Value, replace func(dst []byte, key string, v data.Value) []byte) []byte {
	switch v.Kind() {
	case data.Array:
		dst = append(dst, '[')
		for _, element := range v.Elements() {
			dst = append(replace(dst, "", element), ',')
		}
		return append(trimComma(dst), ']')
	case data.Object:
		dst = append(dst, '{')
		for key, value := range v.Members() {
			dst = append(replace(append(data.AppendString(dst, key), ':'), key, value), ',')
		}
		return append(trimComma(dst), '}')
	}
	return append(dst, v...)
}

func (p *picker) schema(dst []byte, v data.Value) []byte {
	return each(dst, v, func(dst []byte, key string, v data.Value) []byte {
		switch isObject := v.Kind() == data.Object; {
		case schemaText(key) && isObject:
			return p.text(dst, v)
		case values[key]:
			return append(dst, v...)
		case named[key] && isObject:
			return each(dst, v, func(dst []byte, _ string, v data.Value) []byte { return p.schema(dst, v) })
		}
		return p.schema(dst, v)
	})
}

func (p *picker) hints(dst []byte, v data.Value, texts []string) []byte {
	return each(dst, v, func(dst []byte, key string, v data.Value) []byte {
		switch isText := slices.Contains(texts, key); {
		case isText && v.Kind() == data.Object:
			return p.text(dst, v)
		case isText:
			return each(dst, v, func(dst []byte, _ string, v data.Value) []byte {
				if v.Kind() == data.Object {
					return p.text(dst, v)
				}
				return append(dst, v...)
			})
		case key == "ui:options":
			return p.hints(dst, v, optionTexts)
		}
		return p.hints(dst, v, hintTexts)
	})
}

// plainSchema is a schema with the first text of each; several: there was one in several languages.
func plainSchema(v data.Value) (plain data.Value, several bool) {
	p := picker{}
	plain = p.schema(nil, v)
	return plain, p.picked
}

// SchemaFor is the schema with texts in the first of the languages that they are in, else in the first of the file. It
// is only read.
func (t *Template) SchemaFor(languages ...string) data.Value {
	if t.texts == nil {
		return t.Schema
	}
	p := picker{languages: languages}
	return p.schema(nil, t.texts)
}

// UIFor are the hints in the same way.
func (t *Template) UIFor(languages ...string) data.Value {
	p := picker{languages: languages}
	if of := p.hints(nil, t.UI, hintTexts); p.picked {
		return of
	}
	return t.UI
}
