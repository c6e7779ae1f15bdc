package scxml

import (
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// What trees of definitions are made of.

func text(s string) *document.Node { return &document.Node{Kind: document.String, Text: s} }

func truth(v bool) *document.Node {
	if v {
		return &document.Node{Kind: document.Bool, Text: "true"}
	}
	return &document.Node{Kind: document.Bool, Text: "false"}
}

func list(items ...*document.Node) *document.Node {
	return &document.Node{Kind: document.Sequence, Items: items}
}

type mapping struct{ *document.Node }

func newMapping() mapping { return mapping{&document.Node{Kind: document.Mapping}} }

func (m mapping) set(key string, v *document.Node) mapping {
	if v == nil {
		return m
	}
	for i, f := range m.Fields {
		if f.Key.Text == key {
			m.Fields[i].Value = v
			return m
		}
	}
	m.Fields = append(m.Fields, document.Field{Key: text(key), Value: v})
	return m
}

// add adds one more to the values of a member: to a list from the second on.
func (m mapping) add(key string, v *document.Node) {
	before := m.Field(key)
	switch {
	case before == nil:
		m.set(key, v)
	case before.Kind == document.Sequence:
		before.Items = append(before.Items, v)
	default:
		m.set(key, list(before, v))
	}
}

func (m mapping) remove(key string) {
	m.Fields = slices.DeleteFunc(m.Fields, func(f document.Field) bool { return f.Key.Text == key })
}

func (m mapping) orNil() *document.Node {
	if len(m.Fields) == 0 {
		return nil
	}
	return m.Node
}

func textOrList(words []string) *document.Node {
	if len(words) == 1 {
		return text(words[0])
	}
	out := list()
	for _, w := range words {
		out.Items = append(out.Items, text(w))
	}
	return out
}

// literal is a JSON value as a part of a definition. A text that would be taken for an expression becomes one that gives it.
func literal(v data.Value) *document.Node {
	switch v.Kind() {
	case data.Null, data.Absent:
		return &document.Node{Kind: document.Null}
	case data.Bool:
		return truth(string(v) == "true")
	case data.Number:
		return &document.Node{Kind: document.Number, Text: string(v)}
	case data.String:
		if s := v.Text(); !strings.HasPrefix(s, "${") {
			return text(s)
		}
		return text("${" + string(v) + "}")
	case data.Array:
		out := list()
		for _, item := range v.Elements() {
			out.Items = append(out.Items, literal(item))
		}
		return out
	}
	m := newMapping()
	for key, item := range v.Members() {
		m.set(key, literal(item))
	}
	return m.Node
}
