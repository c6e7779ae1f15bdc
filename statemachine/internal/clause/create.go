package clause

import (
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/schema"
)

// Constants reads const: values that expressions name as const.name. It comes before anything that may hold an expression.
func (b *Reader) Constants(n *document.Node) {
	if n == nil {
		return
	}
	values := b.object(n)
	if values == nil {
		return
	}
	b.literal(n)
	language, err := b.Env.WithConstants(values)
	if err == nil {
		b.Language = language
		return
	}
	for _, f := range n.Fields {
		if !expr.IsName(f.Key.Text) {
			b.Advise(f.Key, "letters, digits and _, and no word of the expression language", "%q cannot be the name of a constant", data.Shorten(f.Key.Text))
		}
	}
	if b.Err() == nil {
		b.Add(n, "%v", err)
	}
}

func (b *Reader) literal(n *document.Node) {
	if _, is := chart.Expression(n.Text); is && n.Kind == document.String {
		b.Advise(n, "write the value, or compute it where it is used", "a constant cannot be an expression")
	}
	for _, f := range n.Fields {
		b.literal(f.Value)
	}
	for _, item := range n.Items {
		b.literal(item)
	}
}

// Creation reads create: what callers may set, a JSON Schema each, or false.
func (b *Reader) Creation(n *document.Node) {
	if !b.Mapping(n, DocumentKeys) {
		return
	}
	b.Definition.CreatePublic = b.settable(n.Field("svcPublic"))
	b.Definition.CreatePrivate = b.settable(n.Field("svcPrivate"))
}

func (b *Reader) settable(n *document.Node) *schema.Schema {
	if n == nil || n.Kind != document.Bool || b.Bool(n) {
		return b.schema(n)
	}
	s, err := schema.Nothing()
	if err != nil {
		b.Add(n, "JSON Schema: %v", err)
	}
	return s
}
