package statemachine

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

const (
	// maxLabel is the longest label, in characters.
	maxLabel = 200
	// maxColumns bounds the columns of a definition.
	maxColumns = 20
)

// label reads a short text without expressions, or a map of languages; nil when n is nil.
func (b *builder) label(n *document.Node) Text {
	t := b.texts().words(n)
	for i := range t {
		t[i].Text = chart.OneLine(t[i].Text)
		if utf8.RuneCountInString(t[i].Text) > maxLabel && !b.parser.options.Stored {
			b.advise(n, "say the rest in the description", "the text is longer than %d characters", maxLabel)
		}
	}
	return t
}

// columns reads the paths that lists show.
func (b *builder) columns(n *document.Node) {
	switch {
	case n == nil:
		return
	case n.Kind != document.Sequence:
		b.Add(n, "must be a list of paths such as svcPublic.amount")
		return
	case len(n.Items) > maxColumns:
		b.Add(n, "more than %d columns", maxColumns)
		return
	}
	for _, item := range n.Items {
		if c, ok := b.column(item); ok {
			b.d.Columns = append(b.d.Columns, c)
		}
	}
}

// column reads one: a path, or a path with a label.
func (b *builder) column(n *document.Node) (c Column, ok bool) {
	at := n
	if n.Kind == document.Mapping {
		b.known(n, columnKeys)
		if at = n.Field("path"); at == nil {
			b.Add(n, "a column needs \"path\"")
			return c, false
		}
		c.Label = b.label(n.Field("label"))
	}
	text := b.Text(at)
	path, err := data.ParsePath(text)
	switch {
	case at.Kind != document.String:
		return c, false
	case err == nil && path[0] == "svcPrivate":
		b.advise(at, "show a part of svcPublic", "column %q: svcPrivate is not shown", data.Shorten(text))
		return c, false
	case err != nil || len(path) < 2 || path[0] != "svcPublic":
		b.Add(at, "column %q: must be a path below svcPublic", data.Shorten(text))
		return c, false
	case slices.ContainsFunc(b.d.Columns, func(before Column) bool { return slices.Equal(before.Path, path) }):
		b.Add(at, "column %q stands twice", data.Shorten(text))
		return c, false
	}
	c.Path = path
	if c.Label == nil {
		c.Label = Plain(cmp.Or(chart.CutText(chart.OneLine(path[len(path)-1]), maxLabel), text))
	}
	return c, true
}

// presented reads how people see a node.
func (b *builder) presented(n *chart.Node, v *document.Node) {
	n.Label = b.label(v.Field("label"))
	n.Tone = n.ToneIn()
	if at := v.Field("tone"); at != nil {
		n.Tone = oneOf(b, at, toneWords)
	}
}

// presentedEvent reads how people see an event.
func (b *builder) presentedEvent(c *chart.EventDeclaration, v *document.Node) {
	c.Label, c.Done = b.label(v.Field("label")), b.label(v.Field("done"))
	c.Style = oneOf(b, v.Field("style"), styleWords)
}
