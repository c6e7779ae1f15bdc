package scxml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"troupe/statemachine/document"
)

// Bounds of a document.
const (
	maxBytes    = 1 << 20
	maxDepth    = 60
	maxElements = 20_000
)

// The namespaces that mean something here.
const (
	scxmlSpace  = "http://www.w3.org/2005/07/scxml"
	troupeSpace = "urn:troupe:definition" // what only a definition has
)

type element struct {
	space, name string
	attributes  []xml.Attr
	children    []*element
	text        string // all text in it, put together
	line        int
	start, end  int64 // of the content, in bytes
}

func (e *element) attribute(name string) (value string, ok bool) {
	for _, a := range e.attributes {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

func (e *element) own(name string) (value string, ok bool) {
	for _, a := range e.attributes {
		if a.Name.Space == troupeSpace && a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

func (e *element) all(name string) (out []*element) {
	for _, c := range e.children {
		if c.name == name && c.isSCXML() {
			out = append(out, c)
		}
	}
	return out
}

func (e *element) first(name string) *element {
	if all := e.all(name); len(all) > 0 {
		return all[0]
	}
	return nil
}

func (e *element) contains(of *element) bool {
	return e.start <= of.start && of.end <= e.end && e != of
}

func (e *element) isSCXML() bool { return e.space == scxmlSpace || e.space == "" }

func (e *element) at() *document.Node { return &document.Node{Line: e.line} }

func parse(c *document.Collector, text []byte) *element {
	if len(text) > maxBytes {
		c.Add(nil, "the file has %d bytes, more than %d", len(text), maxBytes)
		return nil
	}
	d := xml.NewDecoder(strings.NewReader(string(text)))
	var stack []*element
	var root *element
	for count := 0; ; {
		begin := d.InputOffset()
		line, _ := d.InputPos()
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.Add(&document.Node{Line: errorLine(err, line)}, "XML: %s", reasonOf(err))
			return nil
		}
		switch t := t.(type) {
		case xml.StartElement:
			if count++; count > maxElements || len(stack) >= maxDepth {
				c.Add(&document.Node{Line: line}, "more than %d elements, or nested deeper than %d", maxElements, maxDepth)
				return nil
			}
			e := &element{space: t.Name.Space, name: t.Name.Local, attributes: t.Copy().Attr, line: line, start: d.InputOffset()}
			if len(stack) > 0 {
				parent := stack[len(stack)-1]
				parent.children = append(parent.children, e)
			} else {
				root = e
			}
			stack = append(stack, e)
		case xml.EndElement:
			stack[len(stack)-1].end = begin
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(stack) > 0 {
				stack[len(stack)-1].text += string(t)
			}
		case xml.Directive:
			c.Add(&document.Node{Line: line}, "a document type is not read").Suggestion = "leave <!…> out"
			return nil
		}
	}
	if root == nil {
		c.Add(nil, "the file has no element")
	}
	return root
}

func errorLine(err error, line int) int {
	if of := (*xml.SyntaxError)(nil); errors.As(err, &of) {
		return of.Line
	}
	return line
}

func reasonOf(err error) string {
	if of := (*xml.SyntaxError)(nil); errors.As(err, &of) {
		return of.Msg
	}
	return strings.TrimPrefix(err.Error(), "xml: ")
}

type xmlWriter struct {
	out   []byte
	open  []string
	inTag bool // the start tag is not closed yet
	flat  bool // the element has text
}

type attribute struct{ name, value string }

func (w *xmlWriter) raw(s string) { w.out = append(w.out, s...) }

// readable are the spellings that people know. Attributes stand in double quotes.
var readable = strings.NewReplacer("&#34;", "&quot;", "&#39;", "'", "&#x9;", "&#9;")

func escaped(s string) []byte {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return []byte(readable.Replace(b.String()))
}

func (w *xmlWriter) start(name string, attributes ...attribute) {
	w.closeTag()
	w.raw(strings.Repeat("  ", len(w.open)) + "<" + name)
	w.open, w.inTag, w.flat = append(w.open, name), true, false
	for _, a := range attributes {
		w.attribute(a.name, a.value)
	}
}

func (w *xmlWriter) attribute(name, value string) {
	if value == "" {
		return
	}
	w.raw(" " + name + `="`)
	w.out = append(append(w.out, escaped(value)...), '"')
}

func (w *xmlWriter) closeTag() {
	if w.inTag {
		w.raw(">\n")
		w.inTag = false
	}
}

func (w *xmlWriter) text(s string) {
	w.raw(">" + strings.ReplaceAll(string(escaped(s)), "&quot;", `"`))
	w.inTag, w.flat = false, true
}

func (w *xmlWriter) end() {
	name := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	switch {
	case w.inTag:
		w.raw("/>\n")
	case w.flat:
		w.raw("</" + name + ">\n")
	default:
		w.raw(strings.Repeat("  ", len(w.open)) + "</" + name + ">\n")
	}
	w.inTag, w.flat = false, false
}
