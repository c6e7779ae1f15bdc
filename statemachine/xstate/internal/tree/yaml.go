package tree

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"troupe/statemachine/document"
)

// Writer writes a tree as YAML in block style, in its order, and remembers where each node came to stand.
type Writer struct {
	text         strings.Builder
	line, column int
	// from has the nodes by their new places, and first the first one of each line.
	from  map[[2]int]*document.Node
	first map[int]*document.Node
}

// NewWriter returns one that has written nothing.
func NewWriter() *Writer {
	return &Writer{line: 1, column: 1, from: map[[2]int]*document.Node{}, first: map[int]*document.Node{}}
}

// Comment writes lines that begin with "# ".
func (w *Writer) Comment(lines ...string) {
	for _, line := range lines {
		w.write("# " + strings.Map(printable, line))
		w.newLine(0)
	}
}

func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

func (w *Writer) write(s string) {
	w.text.WriteString(s)
	w.column += utf8.RuneCountInString(s)
}

func (w *Writer) newLine(indent int) {
	w.text.WriteByte('\n')
	w.text.WriteString(strings.Repeat(" ", indent))
	w.line, w.column = w.line+1, indent+1
}

// Bytes is what was written.
func (w *Writer) Bytes() []byte { return []byte(w.text.String()) }

func (w *Writer) place(n *document.Node) {
	w.from[[2]int{w.line, w.column}] = n
	if w.first[w.line] == nil {
		w.first[w.line] = n
	}
}

// SourceOf returns the node that was written at a place, as well as that is known.
func (w *Writer) SourceOf(line, column int) *document.Node {
	if n := w.from[[2]int{line, column}]; n != nil {
		return n
	}
	return w.first[line]
}

// Top writes the members of the whole document, with an empty line between the larger ones.
func (w *Writer) Top(n *document.Node) {
	for i, f := range n.Fields {
		large := len(f.Value.Fields)+len(f.Value.Items) > 0
		if i > 0 && large {
			w.newLine(0)
		}
		w.field(f, 0)
		w.newLine(0)
	}
}

func (w *Writer) fields(n *document.Node, indent int) {
	for i, f := range n.Fields {
		if i > 0 {
			w.newLine(indent)
		}
		w.field(f, indent)
	}
}

func (w *Writer) field(f document.Field, indent int) {
	key := f.Key.Text
	if !wholeNumber.MatchString(key) { // a number as a key is its digits
		key = quoted(key)
	}
	if len(key) > longestKey {
		w.write("? ")
		w.place(f.Key)
		w.write(key)
		w.newLine(indent)
	} else {
		w.place(f.Key)
		w.write(key)
	}
	w.write(":")
	w.behindKey(f.Value, indent)
}

// longestKey is how long a key may be, in bytes, that stands in one line with its value: YAML allows 1,024 characters.
const longestKey = 512

func (w *Writer) behindKey(n *document.Node, indent int) {
	switch {
	case n.Kind == document.Mapping && len(n.Fields) > 0:
		w.newLine(indent + 2)
		w.place(n)
		w.fields(n, indent+2)
	case n.Kind == document.Sequence && len(n.Items) > 0:
		w.newLine(indent + 2)
		w.place(n)
		w.items(n, indent+2)
	default:
		w.write(" ")
		w.value(n, indent)
	}
}

func (w *Writer) items(n *document.Node, indent int) {
	for i, item := range n.Items {
		if i > 0 {
			w.newLine(indent)
		}
		w.write("- ")
		w.value(item, indent+2)
	}
}

func (w *Writer) value(n *document.Node, indent int) {
	w.place(n)
	switch n.Kind {
	case document.Mapping:
		if len(n.Fields) == 0 {
			w.write("{}")
		}
		w.fields(n, indent)
	case document.Sequence:
		if len(n.Items) == 0 {
			w.write("[]")
		}
		w.items(n, indent)
	case document.String:
		w.write(quoted(n.Text))
	case document.Null:
		w.write("null")
	default:
		w.write(n.Text)
	}
}

// plain is a text that means itself without quotes, for every reader.
var plain = regexp.MustCompile(`^[A-Za-z_$/][A-Za-z0-9_$/.()-]*( [A-Za-z0-9_$/.()-]+)*$`)

// words are plain and mean something else to one version of YAML or another.
var words = map[string]bool{"null": true, "true": true, "false": true, "yes": true, "no": true, "on": true, "off": true}

func quoted(s string) string {
	if plain.MatchString(s) && (!words[strings.ToLower(s)] || s == "on") {
		return s
	}
	escaped := false
	for _, r := range s {
		escaped = escaped || !unicode.IsPrint(r) || r == '\uFEFF'
	}
	if !escaped {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return document.DoubleQuoted(s)
}

var wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,9})$`)
