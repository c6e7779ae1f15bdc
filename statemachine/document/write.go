package document

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Write returns the YAML text of a tree, which Parse and every other reader of YAML reads as the same tree. Places do not
// count. It is for trees whose keys and texts are UTF-8.
func Write(n *Node) []byte {
	w := Writer{forAll: true}
	w.value(n, 0)
	w.newLine(0)
	return w.text
}

// Writer writes a tree as YAML in block style, in its order. The zero value is ready; that of NewWriter remembers where
// each node came to stand.
type Writer struct {
	forAll       bool // also for readers of YAML 1.1, in which the key on is true: not for definitions
	text         []byte
	line, column int
	// from has the nodes by their new places, and first the first one of each line.
	from  map[[2]int]*Node
	first map[int]*Node
}

// NewWriter returns one that remembers the places.
func NewWriter() *Writer {
	return &Writer{line: 1, column: 1, from: map[[2]int]*Node{}, first: map[int]*Node{}}
}

// Bytes is what was written.
func (w *Writer) Bytes() []byte { return w.text }

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
	w.text = append(w.text, s...)
	w.column += utf8.RuneCountInString(s)
}

func (w *Writer) newLine(indent int) {
	w.text = append(append(w.text, '\n'), strings.Repeat(" ", indent)...)
	w.line, w.column = w.line+1, indent+1
}

func (w *Writer) place(n *Node) {
	if w.from == nil {
		return
	}
	w.from[[2]int{w.line, w.column}] = n
	if w.first[w.line] == nil {
		w.first[w.line] = n
	}
}

// SourceOf returns the node that was written at a place, as well as that is known.
func (w *Writer) SourceOf(line, column int) *Node {
	if n := w.from[[2]int{line, column}]; n != nil {
		return n
	}
	return w.first[line]
}

// Top writes the members of the whole document, with an empty line between the larger ones.
func (w *Writer) Top(n *Node) {
	for i, f := range n.Fields {
		if i > 0 && len(f.Value.Fields)+len(f.Value.Items) > 0 {
			w.newLine(0)
		}
		w.field(f, 0)
		w.newLine(0)
	}
}

func (w *Writer) value(n *Node, indent int) {
	w.place(n)
	switch {
	case n.Kind == Mapping && len(n.Fields) > 0:
		for i, f := range n.Fields {
			if i > 0 {
				w.newLine(indent)
			}
			w.field(f, indent)
		}
	case n.Kind == Sequence && len(n.Items) > 0:
		for i, item := range n.Items {
			if i > 0 {
				w.newLine(indent)
			}
			w.write("- ")
			w.value(item, indent+2)
		}
	default:
		w.write(scalar(n))
	}
}

// longestKey is how long a key may be, in bytes, that stands in one line with its value: YAML allows 1,024 characters.
const longestKey = 512

func (w *Writer) field(f Field, indent int) {
	key := scalar(f.Key)
	if f.Key.Text == "on" && !w.forAll { // every definition has it as a key, and readers of YAML 1.2 take it for a text
		key = "on"
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
	switch {
	case len(f.Value.Fields) > 0:
		indent += 2
		w.newLine(indent)
	case len(f.Value.Items) > 0: // a list in a mapping is not indented
		w.newLine(indent)
	default:
		w.write(" ")
	}
	w.value(f.Value, indent)
}

// plain is a text that means itself without quotes, for every reader of YAML, unless it is one of words.
var (
	plain = regexp.MustCompile(`^[A-Za-z_$/][A-Za-z0-9_$/.()-]*( [A-Za-z0-9_$/.()-]+)*$`)
	words = regexp.MustCompile(`(?i)^(?:y|n|yes|no|on|off|true|false|null)$`)
)

func scalar(n *Node) string {
	switch n.Kind {
	case Null:
		return "null"
	case Bool, Number:
		return n.Text
	case Sequence:
		return "[]"
	case Mapping:
		return "{}"
	}
	switch text := n.Text; {
	case plain.MatchString(text) && !words.MatchString(text):
		return text
	case strings.IndexFunc(text, isEscaped) < 0:
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	default:
		return doubleQuoted(text)
	}
}

func isEscaped(r rune) bool { return !unicode.IsPrint(r) || r == '\uFEFF' }

// doubleQuoted returns a text in double quotes; what does not print is escaped (YAML 1.2, section 7.3.1).
func doubleQuoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case !isEscaped(r):
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
