package document

import (
	"errors"
	"fmt"

	"troupe/statemachine/data"
)

// Kind tells what a Node is.
type Kind uint8

// The kinds of nodes. The zero Kind is Null.
const (
	// Null is null, ~ or nothing at all.
	Null Kind = iota
	// Bool is true or false.
	Bool
	// Number is any number that JSON can write, of any size.
	Number
	// String is every other scalar, and all that is quoted.
	String
	// Sequence is a list of Items.
	Sequence
	// Mapping is a list of Fields.
	Mapping
)

// String returns the word that messages use.
func (k Kind) String() string {
	names := [...]string{"null", "true or false", "a number", "a text", "a list", "a mapping"}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Node is a part of a file. Only the fields of its kind are set.
type Node struct {
	Kind Kind
	// Line and Column are where the node begins, counted from 1 in characters.
	Line, Column int
	// Text is a scalar's content: of a string without quotes and escapes, of others as it was written.
	Text string
	// Fields are the members of a mapping, in the order of the file. Keys are strings and differ.
	Fields []Field
	// Items are the elements of a sequence.
	Items []*Node
}

// Field is one member of a mapping.
type Field struct{ Key, Value *Node }

// Field returns the value of the member with the given key, and nil when there is none, or n is nil or no mapping.
func (n *Node) Field(name string) *Node {
	if n == nil {
		return nil
	}
	for _, f := range n.Fields {
		if f.Key.Text == name {
			return f.Value
		}
	}
	return nil
}

// errNode is returned by Data for a tree that Parse did not make.
var errNode = errors.New("not a node of a file")

// Find returns the first string in n with the given text, keys included; nil when there is none.
func (n *Node) Find(text string) *Node {
	if n == nil || n.Kind == String && n.Text == text {
		return n
	}
	for _, f := range n.Fields {
		if f.Key.Text == text {
			return f.Key
		}
		if at := f.Value.Find(text); at != nil {
			return at
		}
	}
	for _, item := range n.Items {
		if at := item.Find(text); at != nil {
			return at
		}
	}
	return nil
}

// Data returns the JSON value that the node writes: keys in their order, numbers as they are spelled where JSON has
// that spelling. A nil node is absent. For what Parse returned there is no error; a tree made by hand can be wrong.
func (n *Node) Data() (data.Value, error) {
	if n == nil {
		return nil, nil
	}
	// The result is checked like a request: nothing but a promise keeps the tree
	// from being changed after it was parsed.
	b, err := n.appendJSON(nil, 0)
	if err != nil {
		return nil, fmt.Errorf("%d:%d: %w", n.Line, n.Column, err)
	}
	return data.Clean(b)
}

func (n *Node) appendJSON(b []byte, depth int) ([]byte, error) {
	if n == nil || depth > data.MaxDepth {
		return nil, errNode
	}
	switch n.Kind {
	case Null:
		return append(b, "null"...), nil
	case Bool:
		if len(n.Text) > 0 && n.Text[0]|0x20 == 't' {
			return append(b, "true"...), nil
		}
		return append(b, "false"...), nil
	case Number:
		literal, fault := readNumber(n.Text)
		if literal == "" {
			return nil, fmt.Errorf("%w: %s", errNode, fault.Reason)
		}
		return append(b, literal...), nil
	case String:
		return data.AppendString(b, n.Text), nil
	case Sequence:
		return n.appendItems(b, depth)
	case Mapping:
		return n.appendFields(b, depth)
	}
	return nil, errNode
}

func (n *Node) appendItems(b []byte, depth int) ([]byte, error) {
	b = append(b, '[')
	var err error
	for i, item := range n.Items {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = item.appendJSON(b, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// appendFields appends a mapping as an object. That keys differ is checked with everything else by Data.
func (n *Node) appendFields(b []byte, depth int) ([]byte, error) {
	b = append(b, '{')
	var err error
	for i, f := range n.Fields {
		if i > 0 {
			b = append(b, ',')
		}
		if f.Key == nil {
			return nil, errNode
		}
		b = append(data.AppendString(b, f.Key.Text), ':')
		if b, err = f.Value.appendJSON(b, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
