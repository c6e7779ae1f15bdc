package document

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// maxFlow is how long a mapping or a list in one line may be, with what stands before it.
const maxFlow = 120

// Write returns the YAML text of a tree, which Parse reads as the same tree: small parts in one line, others as blocks. Places do not
// count. It is for trees whose keys and texts are UTF-8.
func Write(n *Node) []byte {
	var w writer
	w.block(n, 0)
	return append(bytes.TrimLeft(w.out, "\n"), '\n')
}

type writer struct{ out []byte }

// block writes n behind what stands in the line: a scalar or a short part in the same line, others in lines of their own.
func (w *writer) block(n *Node, indent int) {
	if flow, ok := flowOf(n); ok && (indent > 0 || n.Kind < Sequence || len(n.Fields)+len(n.Items) == 0) && w.column()+1+len(flow) <= maxFlow || n.Kind < Sequence {
		w.space()
		w.out = append(w.out, flow...)
		return
	}
	for _, f := range n.Fields {
		w.line(indent)
		w.out = append(append(w.out, scalarOf(f.Key)...), ':')
		w.block(f.Value, indent+1)
	}
	for _, item := range n.Items {
		w.line(indent)
		w.out = append(w.out, '-')
		w.item(item, indent)
	}
}

// item writes an element of a list. The first member of a mapping follows the dash.
func (w *writer) item(n *Node, indent int) {
	if flow, ok := flowOf(n); ok && w.column()+1+len(flow) <= maxFlow || n.Kind < Sequence {
		w.space()
		w.out = append(w.out, flow...)
		return
	}
	inner := writer{}
	inner.block(n, indent+1)
	w.space()
	w.out = append(w.out, bytes.TrimLeft(inner.out, "\n ")...)
}

func (w *writer) line(indent int) {
	w.out = append(w.out, '\n')
	w.out = append(w.out, strings.Repeat("  ", indent)...)
}

func (w *writer) space() {
	if len(w.out) > 0 && w.out[len(w.out)-1] != '\n' {
		w.out = append(w.out, ' ')
	}
}

func (w *writer) column() int { return len(w.out) - bytes.LastIndexByte(w.out, '\n') - 1 }

// flowOf writes n in one line; ok is false when that is too long.
func flowOf(n *Node) (flow string, ok bool) {
	if n.Kind < Sequence {
		return scalarOf(n), true
	}
	var b strings.Builder
	open, shut := "{", "}"
	if n.Kind == Sequence {
		open, shut = "[", "]"
	}
	b.WriteString(open)
	add := func(before string, value *Node) bool {
		if b.Len() > 1 {
			b.WriteString(", ")
		}
		inner, ok := flowOf(value)
		b.WriteString(before + inner)
		return ok && b.Len() <= maxFlow
	}
	for _, f := range n.Fields {
		if !add(scalarOf(f.Key)+": ", f.Value) {
			return "", false
		}
	}
	for _, item := range n.Items {
		if !add("", item) {
			return "", false
		}
	}
	return b.String() + shut, true
}

// plain is what needs no quotes, in a block as well as in one line.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.$/-][A-Za-z0-9_.$/ -]*$`)

func scalarOf(n *Node) string {
	switch n.Kind {
	case Null:
		return "null"
	case Bool, Number:
		return n.Text
	}
	text := n.Text
	if kind, fault := readPlain(text); kind == String && fault.Reason == "" && plain.MatchString(text) &&
		!strings.HasPrefix(text, "-") && !strings.HasPrefix(text, ".") && !strings.HasSuffix(text, " ") {
		return text
	}
	if strings.IndexFunc(text, func(r rune) bool { return r == unicode.ReplacementChar || r > unicode.MaxLatin1 || !unicode.IsPrint(r) }) < 0 {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return DoubleQuoted(text)
}

// DoubleQuoted returns a text in double quotes; what does not print is escaped (YAML 1.2, section 7.3.1).
func DoubleQuoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case unicode.IsPrint(r) && r != '\uFEFF':
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
