package reference

import (
	"html/template"
	"slices"
	"strings"

	"troupe/statemachine/document"
)

// schema shows a schema. A reference is a link, with what stands beside it.
func (b *builder) schema(n *document.Node) schemaView {
	if n == nil {
		return schemaView{}
	}
	s := schemaView{Type: b.typeOf(n), Notes: notesOf(n), Description: prose(text(n, "description"))}
	if items := n.Field("items"); items != nil && items.Field("$ref") == nil {
		n = items // the members of what is in the list
	}
	required := n.Field("required")
	for _, member := range fields(n.Field("properties")) {
		s.Members = append(s.Members, memberView{
			Name:     member.Key.Text,
			Required: required != nil && slices.ContainsFunc(required.Items, func(r *document.Node) bool { return r.Text == member.Key.Text }),
			Schema:   b.schema(member.Value),
		})
	}
	return s
}

// typeOf says in a few words what a value is.
func (b *builder) typeOf(n *document.Node) template.HTML {
	switch {
	case n.Field("$ref") != nil:
		_, name := b.follow(n)
		return template.HTML(`<a href="#schema-` + template.HTMLEscapeString(name) + `">` + template.HTMLEscapeString(name) + `</a>`) // escaped
	case n.Field("const") != nil:
		return codeOf(n.Field("const").Text)
	case n.Field("enum") != nil:
		return joined(n.Field("enum").Items, func(v *document.Node) template.HTML { return codeOf(v.Text) })
	case n.Field("anyOf") != nil:
		return joined(n.Field("anyOf").Items, b.typeOf)
	case text(n, "type") == "array" && n.Field("items") != nil:
		return "array of " + b.typeOf(n.Field("items"))
	case n.Field("type") != nil && n.Field("type").Kind == document.Sequence:
		return joined(n.Field("type").Items, func(v *document.Node) template.HTML { return template.HTML(template.HTMLEscapeString(v.Text)) }) // escaped
	}
	return template.HTML(template.HTMLEscapeString(text(n, "type"))) // escaped
}

func codeOf(text string) template.HTML {
	return template.HTML("<code>" + template.HTMLEscapeString(text) + "</code>") // escaped
}

func joined(nodes []*document.Node, each func(*document.Node) template.HTML) template.HTML {
	var parts []string
	for _, n := range nodes {
		parts = append(parts, string(each(n)))
	}
	return template.HTML(strings.Join(parts, " or ")) // made of HTML
}

// notesOf lists what narrows a value.
func notesOf(n *document.Node) (notes []string) {
	for _, keyword := range []struct{ name, words string }{
		{"format", "%"},
		{"minimum", "from %"},
		{"maximum", "to %"},
		{"minLength", "% or more characters"},
		{"maxLength", "% or fewer characters"},
		{"maxProperties", "% or fewer members"},
		{"pattern", "%"},
	} {
		if value := text(n, keyword.name); value != "" {
			notes = append(notes, strings.Replace(keyword.words, "%", value, 1))
		}
	}
	return notes
}
