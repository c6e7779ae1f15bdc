package reference

import (
	"html"
	"slices"
	"strings"

	"troupe/gateway/hypertext"
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
func (b *builder) typeOf(n *document.Node) hypertext.Raw {
	switch {
	case n.Field("$ref") != nil:
		_, name := b.follow(n)
		return hypertext.Raw(`<a href="#schema-` + html.EscapeString(name) + `">` + html.EscapeString(name) + `</a>`) // escaped
	case n.Field("const") != nil:
		return codeOf(n.Field("const").Text)
	case n.Field("enum") != nil:
		return joined(n.Field("enum").Items, func(v *document.Node) hypertext.Raw { return codeOf(v.Text) })
	case n.Field("anyOf") != nil:
		return joined(n.Field("anyOf").Items, b.typeOf)
	case text(n, "type") == "array" && n.Field("items") != nil:
		return "array of " + b.typeOf(n.Field("items"))
	case n.Field("type") != nil && n.Field("type").Kind == document.Sequence:
		return joined(n.Field("type").Items, func(v *document.Node) hypertext.Raw { return hypertext.Raw(html.EscapeString(v.Text)) }) // escaped
	}
	return hypertext.Raw(html.EscapeString(text(n, "type"))) // escaped
}

func codeOf(text string) hypertext.Raw {
	return hypertext.Raw("<code>" + html.EscapeString(text) + "</code>") // escaped
}

func joined(nodes []*document.Node, each func(*document.Node) hypertext.Raw) hypertext.Raw {
	var parts []string
	for _, n := range nodes {
		parts = append(parts, string(each(n)))
	}
	return hypertext.Raw(strings.Join(parts, " or ")) // made of HTML
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
