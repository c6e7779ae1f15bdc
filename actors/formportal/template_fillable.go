package formportal

import (
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/schema"
)

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
		return // NB: of a value without fields the schema says nothing
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
