// Package hypertext writes HTML in which every value is escaped unless its type says that it is HTML.
//
// Package html/template would do more, and it calls methods by their names: a program that links it keeps every
// method of every type that it has, which was a sixth of ours.
package hypertext

import (
	"fmt"
	"html"
	"strings"
)

// Raw is HTML. Anyone who converts a text to it has escaped it.
type Raw string

// Writer collects a page. The zero value is empty.
type Writer struct{ b strings.Builder }

// Put appends a format of package fmt. All values but Raw and numbers are escaped as texts, so that they stand between
// tags and in attributes with quotation marks; they must not stand in scripts, styles and addresses that others choose.
func (w *Writer) Put(format string, values ...any) {
	safe := make([]any, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case Raw:
			safe[i] = string(v)
		case string:
			safe[i] = html.EscapeString(v)
		case int, int64, uint64, float64:
			safe[i] = v
		default:
			safe[i] = html.EscapeString(fmt.Sprint(v))
		}
	}
	fmt.Fprintf(&w.b, format, safe...)
}

// Raw is all that was written.
func (w *Writer) Raw() Raw { return Raw(w.b.String()) }
