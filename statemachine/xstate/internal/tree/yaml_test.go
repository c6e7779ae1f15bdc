package tree

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// TestYAMLMeansWhatWasWritten writes random trees and reads them again.
func TestYAMLMeansWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := Mapping(nil)
		Put(top, "top", randomTree(4).Draw(t, "tree"))
		w := NewWriter()
		w.Comment("a comment\nof two lines")
		w.Top(top)
		read, err := document.Parse("a.yaml", w.Bytes())
		require.NoError(t, err, w.text.String())
		want, err := top.Data()
		require.NoError(t, err)
		got, err := read.Data()
		require.True(t, err == nil && got.String() == want.String(), "%s\nis %s, want %s (%v)", w.text.String(), got, want, err)
		checkSources(t, w, read, top)
	})
}

// checkSources holds that the writer finds each node by the place where the parser sees it.
func checkSources(t *rapid.T, w *Writer, read, written *document.Node) {
	if from := w.SourceOf(read.Line, read.Column); from != written && read.Line > 2 {
		// A mapping or list begins where its first member does.
		require.True(t, from != nil && len(read.Fields)+len(read.Items) != 0, "%d:%d is %v, want %v in\n%s", read.Line, read.Column, from, written, w.text.String())
	}
	for i, f := range read.Fields {
		checkSources(t, w, f.Key, written.Fields[i].Key)
		checkSources(t, w, f.Value, written.Fields[i].Value)
	}
	for i, item := range read.Items {
		checkSources(t, w, item, written.Items[i])
	}
}

func randomTree(depth int) *rapid.Generator[*document.Node] {
	text := rapid.OneOf(
		rapid.StringMatching(`[a-zA-Zé0-9 :#'"\[\]{},&*!|>%@~$./?-]{0,12}`), rapid.String(),
		rapid.SampledFrom([]string{"null", "true", "on", "y", "~", "1", "01", "1.5", "-", "? a", "a: b", " a", "a ", "---", "...", "<<", "\ufeff", "\u2028", "\u0085", "\x00", "a\nb", "${x}", "# a"}),
	)
	scalar := rapid.Custom(func(t *rapid.T) *document.Node {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return Word(nil, document.Number, rapid.SampledFrom([]string{"0", "-1", "1.5", "1e5", "12345678901234567890"}).Draw(t, "number"))
		case 1:
			return Word(nil, document.Bool, "true")
		case 2:
			return placed(nil, document.Null)
		}
		return Text(nil, text.Draw(t, "text"))
	})
	if depth == 0 {
		return scalar
	}
	return rapid.Custom(func(t *rapid.T) *document.Node {
		switch rapid.IntRange(0, 2).Draw(t, "shape") {
		case 0:
			return scalar.Draw(t, "scalar")
		case 1:
			return List(nil, rapid.SliceOfN(randomTree(depth-1), 0, 4).Draw(t, "items")...)
		}
		n := Mapping(nil)
		for _, key := range rapid.SliceOfNDistinct(rapid.OneOf(text, rapid.StringMatching(`[a-z]{600}`)), 0, 4, rapid.ID[string]).Draw(t, "keys") {
			if _, err := data.Clean(data.AppendString(nil, key)); err == nil {
				PutAt(n, nil, key, randomTree(depth-1).Draw(t, "value"))
			}
		}
		return n
	})
}
