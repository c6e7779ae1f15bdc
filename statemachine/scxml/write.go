package scxml

import (
	"bytes"
	"encoding/xml"
	"strings"
)

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

// attribute adds one to the element that has just been started. An empty one is left out.
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

// text writes the text of an element that has nothing else.
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

// comment writes what people may want to know.
func (w *xmlWriter) comment(s string) {
	if s == "" {
		return
	}
	w.closeTag()
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "--", "- -")
	w.raw(strings.Repeat("  ", len(w.open)) + "<!-- " + strings.TrimSuffix(strings.Join(strings.Fields(s), " "), "-") + " -->\n")
}
