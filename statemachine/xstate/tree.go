package xstate

import (
	"strings"

	"troupe/statemachine/document"
)

// The functions here make nodes of a tree that is to be written. Each has the place of the node that it comes from, so
// that a fault in what was written can be named where it was read.

// textAt returns a text.
func textAt(at *document.Node, s string) *document.Node {
	n := placed(at, document.String)
	n.Text = s
	return n
}

// wordAt returns a scalar that is no text, such as true or 5.
func wordAt(at *document.Node, kind document.Kind, s string) *document.Node {
	n := placed(at, kind)
	n.Text = s
	return n
}

func listAt(at *document.Node, items ...*document.Node) *document.Node {
	n := placed(at, document.Sequence)
	n.Items = items
	return n
}

// mappingAt returns an empty mapping; put adds to it.
func mappingAt(at *document.Node) *document.Node { return placed(at, document.Mapping) }

func placed(at *document.Node, kind document.Kind) *document.Node {
	n := &document.Node{Kind: kind}
	if at != nil {
		n.Line, n.Column = at.Line, at.Column
	}
	return n
}

// put adds a member to a mapping, unless the value is nil.
func put(n *document.Node, key string, value *document.Node) {
	if value != nil {
		n.Fields = append(n.Fields, document.Field{Key: textAt(value, key), Value: value})
	}
}

// putAt is put with a place for the key.
func putAt(n *document.Node, at *document.Node, key string, value *document.Node) {
	n.Fields = append(n.Fields, document.Field{Key: textAt(at, key), Value: value})
}

// items returns what a list has; anything else is a list of one, and null and nothing are one of none.
func items(n *document.Node) []*document.Node {
	switch {
	case n == nil || n.Kind == document.Null:
		return nil
	case n.Kind == document.Sequence:
		return n.Items
	}
	return []*document.Node{n}
}

// oneOrMore is the short form of a list: its only element, and nil for none.
func oneOrMore(at *document.Node, list []*document.Node) *document.Node {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return listAt(at, list...)
}

// isWord reports whether n is a text.
func isWord(n *document.Node) bool { return n != nil && n.Kind == document.String }

// expression returns the text inside "${…}", when s is wholly one.
func expression(s string) (string, bool) {
	if inner, ok := strings.CutPrefix(s, "${"); ok {
		return strings.CutSuffix(inner, "}")
	}
	return "", false
}

// condition is the text of a condition, which may stand in "${…}".
func condition(s string) string {
	if inner, ok := expression(s); ok {
		return inner
	}
	return s
}
