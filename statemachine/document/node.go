package document

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"

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

// readPlain returns what a scalar without quotes is by YAML's core schema. The fault, when it has a reason, says why
// such a scalar is not taken; its place is the caller's to fill in.
func readPlain(s string) (Kind, Fault) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return Null, Fault{}
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return Bool, Fault{}
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN":
		return Null, Fault{Reason: "JSON has no number " + s, Suggestion: "quote it if it is a text"}
	}
	literal, fault := readNumber(s)
	if literal != "" {
		return Number, Fault{}
	}
	return String, fault
}

var (
	// decimal is a number in digits, grouped by underscores or not; the parts are sign, integer, fraction and exponent.
	decimal = regexp.MustCompile(`^([-+]?)([0-9]+(?:_[0-9]+)*)?(?:\.([0-9]+(?:_[0-9]+)*)?)?([eE][-+]?[0-9]+)?$`)
	based   = regexp.MustCompile(`^0(?:x[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|o[0-7]+(?:_[0-7]+)*)$`)
)

// maxBasedDigits bounds a hexadecimal or octal number: to convert one costs more than linear time.
const maxBasedDigits = 128

// readNumber returns the JSON literal of a number in YAML's spelling, and "" for what is not a number. The fault, when it
// has a reason, says why s is neither a number nor a text.
func readNumber(s string) (literal string, fault Fault) {
	if s == "" || strings.IndexByte("+-.0123456789", s[0]) < 0 {
		return "", Fault{}
	}
	if based.MatchString(s) {
		return readBased(s)
	}
	// What JSON can write is put together again from its parts; of what it cannot,
	// a sign is dropped, a digit added, a point taken away. The digits stay.
	m := decimal.FindStringSubmatch(s)
	if m == nil || m[2] == "" && m[3] == "" {
		return "", Fault{}
	}
	sign, whole, fraction, exponent := m[1], ungroup(m[2]), ungroup(m[3]), m[4]
	if len(whole) > 1 && whole[0] == '0' {
		// NB: 010 is ten in YAML 1.2, eight in YAML 1.1, and may be meant as text.
		return "", Fault{
			Reason:     "a number with a leading zero: " + data.Quote(s),
			Suggestion: "quote it if it is a text, leave out the zero if not, write 0o for octal",
		}
	}
	if whole == "" {
		whole = "0"
	}
	if sign == "-" {
		literal = "-"
	}
	literal += whole
	if fraction != "" {
		literal += "." + fraction
	}
	literal += exponent
	if _, err := data.Clean([]byte(literal)); err != nil {
		return "", Fault{Reason: "the exponent is too large: " + data.Quote(s), Suggestion: "quote it if it is a text"}
	}
	return literal, Fault{}
}

// readBased converts a hexadecimal or octal number to decimal digits, of any size that fits the limit.
func readBased(s string) (literal string, fault Fault) {
	n, ok := new(big.Int), len(s) <= maxBasedDigits
	if ok {
		_, ok = n.SetString(ungroup(s), 0)
	}
	if !ok {
		return "", Fault{Reason: "the number is too long: " + data.Quote(s), Suggestion: "quote it if it is a text"}
	}
	return n.String(), Fault{}
}

func ungroup(digits string) string { return strings.ReplaceAll(digits, "_", "") }
