package schematest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed" // for those who draw by this package
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// small are values that stand in place of others.
var small = []string{
	`null`, `true`, `false`, `0`, `1`, `-1`, `1.5`, `250`, `""`, `"x"`, `"a b"`, `"1"`, `"true"`, `"P1D"`, `"1h30m"`,
	`"${1}"`, `"*"`, `"svcPublic.x"`, `"https://example.org"`, `"a@example.org"`, `[]`, `{}`, `["x"]`, `[null]`, `{"x":1}`, `[{}]`,
}

func (f *Format) changed(t testing.TB, files []string) *rapid.Generator[data.Value] {
	t.Helper()
	if len(files) == 0 {
		t.Fatal("no files")
	}
	c := &changes{words: append([]string{"x", "a b", "1", "250", "P1D", "*", "x.*", ""}, allKeys(t, f.text)...)}
	for _, text := range small {
		c.small = append(c.small, parsed(t, text))
	}
	var from []*document.Node
	for _, text := range files {
		from = append(from, parsed(t, text))
	}
	return rapid.Custom(func(t *rapid.T) data.Value {
		file := copied(rapid.SampledFrom(from).Draw(t, "from"))
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			c.change(t, file)
		}
		v, err := file.Data()
		if err != nil {
			t.Fatal(err)
		}
		return v
	})
}

type changes struct {
	words []string // that keys become
	small []*document.Node
}

func (c *changes) change(t *rapid.T, file *document.Node) {
	var all, groups []*document.Node
	walkNodes(file, func(n *document.Node) {
		all = append(all, n)
		if n.Kind == document.Mapping || n.Kind == document.Sequence {
			groups = append(groups, n)
		}
	})
	from := c.small
	if rapid.Bool().Draw(t, "own") {
		from = all
	}
	other := func() *document.Node { return copied(rapid.SampledFrom(from).Draw(t, "other")) }
	if len(groups) == 0 {
		*file = *other()
		return
	}
	at := rapid.SampledFrom(groups).Draw(t, "at")
	kind := rapid.SampledFrom([]string{"drop", "rename", "replace", "wrap", "add"}).Draw(t, "change")
	size := len(at.Fields) + len(at.Items)
	if size == 0 || kind == "add" {
		c.add(t, at, other())
		return
	}
	i := rapid.IntRange(0, size-1).Draw(t, "which")
	switch {
	case kind == "drop" && at.Kind == document.Mapping:
		at.Fields = slices.Delete(at.Fields, i, i+1)
	case kind == "drop":
		at.Items = slices.Delete(at.Items, i, i+1)
	case kind == "rename" && at.Kind == document.Mapping:
		if key := c.key(t); at.Field(key.Text) == nil {
			at.Fields[i].Key = key
		}
	case kind == "replace":
		*part(at, i) = other()
	case kind == "wrap":
		*part(at, i) = &document.Node{Kind: document.Sequence, Items: []*document.Node{*part(at, i)}}
	}
}

func (c *changes) key(t *rapid.T) *document.Node {
	return &document.Node{Kind: document.String, Text: rapid.SampledFrom(c.words).Draw(t, "word")}
}

func (c *changes) add(t *rapid.T, at, part *document.Node) {
	if at.Kind == document.Sequence {
		at.Items = append(at.Items, part)
	} else if key := c.key(t); at.Field(key.Text) == nil {
		at.Fields = append(at.Fields, document.Field{Key: key, Value: part})
	}
}

// part is where the i-th part of a mapping or a list hangs.
func part(of *document.Node, i int) **document.Node {
	if of.Kind == document.Mapping {
		return &of.Fields[i].Value
	}
	return &of.Items[i]
}

func walkNodes(n *document.Node, visit func(*document.Node)) {
	visit(n)
	for _, f := range n.Fields {
		walkNodes(f.Value, visit)
	}
	for _, item := range n.Items {
		walkNodes(item, visit)
	}
}

func copied(n *document.Node) *document.Node {
	out := *n
	out.Fields, out.Items = slices.Clone(n.Fields), slices.Clone(n.Items)
	for i := range out.Fields {
		out.Fields[i].Value = copied(out.Fields[i].Value)
	}
	for i := range out.Items {
		out.Items[i] = copied(out.Items[i])
	}
	return &out
}
