package clause

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

const (
	// MaxLabel is the longest label, in characters.
	MaxLabel = 200
	// MaxColumns bounds the columns of a definition.
	MaxColumns = 20
)

// Label reads a short text without expressions, or a map of languages; nil when n is nil.
func (b *Reader) Label(n *document.Node) chart.Text {
	t := b.texts().words(n)
	for i := range t {
		t[i].Text = chart.OneLine(t[i].Text)
		if utf8.RuneCountInString(t[i].Text) > MaxLabel && !b.Stored {
			b.Advise(n, "say the rest in the description", "the text is longer than %d characters", MaxLabel)
		}
	}
	return t
}

// Columns reads the paths that lists show.
func (b *Reader) Columns(n *document.Node) {
	switch {
	case n == nil:
		return
	case n.Kind != document.Sequence:
		b.Add(n, "must be a list of paths such as svcPublic.amount")
		return
	case len(n.Items) > MaxColumns:
		b.Add(n, "more than %d columns", MaxColumns)
		return
	}
	for _, item := range n.Items {
		if c, ok := b.column(item); ok {
			b.Definition.Columns = append(b.Definition.Columns, c)
		}
	}
}

func (b *Reader) column(n *document.Node) (c chart.Column, ok bool) {
	at := n
	if n.Kind == document.Mapping {
		b.Mapping(n, ColumnKeys)
		if at = n.Field("path"); at == nil {
			b.Add(n, "a column needs \"path\"")
			return c, false
		}
		c.Label = b.Label(n.Field("label"))
	}
	text := b.Text(at)
	path, err := data.ParsePath(text)
	switch {
	case at.Kind != document.String:
		return c, false
	case err == nil && path[0] == "svcPrivate":
		b.Advise(at, "show a part of svcPublic", "column %q: svcPrivate is not shown", data.Shorten(text))
		return c, false
	case err != nil || len(path) < 2 || path[0] != "svcPublic":
		b.Add(at, "column %q: must be a path below svcPublic", data.Shorten(text))
		return c, false
	case slices.ContainsFunc(b.Definition.Columns, func(before chart.Column) bool { return slices.Equal(before.Path, path) }):
		b.Add(at, "column %q stands twice", data.Shorten(text))
		return c, false
	}
	c.Path = path
	if c.Label == nil {
		c.Label = chart.Plain(cmp.Or(chart.CutText(chart.OneLine(path[len(path)-1]), MaxLabel), text))
	}
	return c, true
}

func (b *Reader) presentedEvent(c *chart.EventDeclaration, v *document.Node) {
	c.Label, c.Done = b.Label(v.Field("label")), b.Label(v.Field("done"))
	c.Style = OneOf(b, v.Field("style"), StyleWords)
}
