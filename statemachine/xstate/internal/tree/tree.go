// Package tree makes the nodes of a document that is to be written, each with the place of the node that it comes
// from, so that a fault in what was written can be named where it was read. It has the words of XState that both
// directions use. It knows neither the states of a machine nor those of a definition.
package tree

import (
	"strings"

	"troupe/statemachine/document"
)

// Text returns a text.
func Text(at *document.Node, s string) *document.Node {
	n := placed(at, document.String)
	n.Text = s
	return n
}

// Word returns a scalar that is not text, such as true or 5.
func Word(at *document.Node, kind document.Kind, s string) *document.Node {
	n := placed(at, kind)
	n.Text = s
	return n
}

// List returns a list.
func List(at *document.Node, items ...*document.Node) *document.Node {
	n := placed(at, document.Sequence)
	n.Items = items
	return n
}

// Mapping returns an empty mapping; Put adds to it.
func Mapping(at *document.Node) *document.Node { return placed(at, document.Mapping) }

func placed(at *document.Node, kind document.Kind) *document.Node {
	n := &document.Node{Kind: kind}
	if at != nil {
		n.Line, n.Column = at.Line, at.Column
	}
	return n
}

// Put adds a member to a mapping, unless the value is nil.
func Put(n *document.Node, key string, value *document.Node) {
	if value != nil {
		n.Fields = append(n.Fields, document.Field{Key: Text(value, key), Value: value})
	}
}

// PutAt is Put with a place for the key.
func PutAt(n *document.Node, at *document.Node, key string, value *document.Node) {
	n.Fields = append(n.Fields, document.Field{Key: Text(at, key), Value: value})
}

// Only returns a mapping of one member.
func Only(at *document.Node, key string, value *document.Node) *document.Node {
	n := Mapping(at)
	Put(n, key, value)
	return n
}

// Items returns what a list has; anything else is a list of one, and null and nothing are one of none.
func Items(n *document.Node) []*document.Node {
	switch {
	case n == nil || n.Kind == document.Null:
		return nil
	case n.Kind == document.Sequence:
		return n.Items
	}
	return []*document.Node{n}
}

// OneOrMore is the short form of a list: its only element, and nil for none.
func OneOrMore(at *document.Node, list []*document.Node) *document.Node {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return List(at, list...)
}

// IsWord reports whether n is a text.
func IsWord(n *document.Node) bool { return n != nil && n.Kind == document.String }

// Expression returns the text inside "${…}", when s is wholly one.
func Expression(s string) (string, bool) {
	if inner, ok := strings.CutPrefix(s, "${"); ok {
		return strings.CutSuffix(inner, "}")
	}
	return "", false
}

// Condition is the text of a condition, which may stand in "${…}".
func Condition(s string) string {
	if inner, ok := Expression(s); ok {
		return inner
	}
	return s
}

// Kind is the type of a state, in XState's words.
type Kind string

// The kinds of states.
const (
	Atomic   Kind = "atomic"
	Compound Kind = "compound"
	Parallel Kind = "parallel"
	Final    Kind = "final"
	History  Kind = "history"
)

const (
	// OwnMeta is the key of meta under which exports keep what XState has no key for.
	OwnMeta = "troupe"
	// WrittenDelays is the key below it that has delays, by milliseconds, as they are written in the definition.
	WrittenDelays = "delays"
)

// KeysOf returns the keys of a mapping; nil has none.
func KeysOf(n *document.Node) []string {
	if n == nil {
		return nil
	}
	out := make([]string, len(n.Fields))
	for i, f := range n.Fields {
		out[i] = f.Key.Text
	}
	return out
}

// Clipped is a text of at most so many bytes, and an ellipsis when there was more.
func Clipped(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
