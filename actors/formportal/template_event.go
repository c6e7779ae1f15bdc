package formportal

import (
	"cmp"
	"fmt"
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

// unknownWorkflow is the id of no workflow. It is there when others may be that nobody knows of.
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
				p.Add(item, "workflow %q cannot be created without data, and a new form has none: %v", item.Text, err).
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
