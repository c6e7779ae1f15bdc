package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
	"troupe/statemachine/document"
)

func TestASuggestionCanBeSetLater(t *testing.T) {
	c := &document.Collector{File: "f"}
	c.Known(nil)
	c.Add(nil, "no %s", "machines")
	assert.EqualError(t, c.Err(), "f: no machines", "one about the whole file")
	first := c.Add(&document.Node{Line: 2, Column: 1}, "second")
	for range 50 {
		c.Add(&document.Node{Line: 1, Column: 1}, "first")
	}
	first.Suggestion = "do this"
	faults := c.Faults()
	assert.Equal(t, "ac", document.Closest("ab", []string{"ac", "ad"}), "of two words equally near")
	assert.Equal(t, "users.delete", document.Closest("users.del", []string{"users.read", "users.delete"}), "of two words equally near, the one that begins so")
	assert.Equal(t, "f:2:1: second (do this)", faults[len(faults)-1].Error(), "the last fault")
}

func TestOnlyAHundredFaultsAreKept(t *testing.T) {
	c := &document.Collector{File: "f"}
	for i := range 105 {
		c.Add(&document.Node{Line: i + 1, Column: 1}, "fault").Suggestion = "fix"
	}
	faults := c.Faults()
	require.Len(t, faults, 101, "faults are kept, want 100 and a line")
	assert.Equal(t, "f: and 5 more", faults[100].Error(), "the last line")
}

func TestFaultsOfSeveralFilesAreSorted(t *testing.T) {
	faults := document.Faults{{File: "b", Line: 1}, {File: "a", Line: 2, Column: 2, Reason: "x"}, {File: "a", Line: 2, Column: 1}, {File: "a", Line: 1}, {File: "a", Line: 2, Column: 2, Reason: "y"}}
	faults.Sort()
	assert.Equal(t, "a:2: x", (document.Fault{File: "a", Line: 2, Reason: "x"}).Error(), "a fault of a whole line reads")
	var got []string
	for _, f := range faults {
		got = append(got, fmt.Sprintf("%s%d.%d%s", f.File, f.Line, f.Column, f.Reason))
	}
	assert.Equal(t, "a1.0 a2.1 a2.2x a2.2y b1.0", strings.Join(got, " "), "order %v", got)
}

func TestDataOfATreeMadeByHand(t *testing.T) {
	v, err := (*document.Node)(nil).Data()
	assert.True(t, v == nil && err == nil, "Data of no node = %s, %v, want absent", v, err)
	key := &document.Node{Kind: document.String, Text: "a"}
	loop := &document.Node{Kind: document.Sequence}
	loop.Items = []*document.Node{loop}
	for _, c := range []struct {
		name string
		n    *document.Node
	}{
		{"a number that is none", &document.Node{Kind: document.Number, Text: "x"}},
		{"an unknown kind", &document.Node{Kind: 99}},
		{"a missing element", &document.Node{Kind: document.Sequence, Items: []*document.Node{nil}}},
		{"a missing key", &document.Node{Kind: document.Mapping, Fields: []document.Field{{Value: key}}}},
		{"a missing value", &document.Node{Kind: document.Mapping, Fields: []document.Field{{Key: key}}}},
		{"a duplicate key", &document.Node{Kind: document.Mapping, Fields: []document.Field{{key, key}, {key, key}}}},
		{"a loop", loop},
	} {
		if v, err := c.n.Data(); err == nil {
			t.Errorf("%s: Data = %s, want an error", c.name, v)
		} else if strings.Contains(err.Error(), "not a node of a file") == (c.name == "a duplicate key") {
			t.Errorf("%s: Data fails with %v", c.name, err)
		}
	}
}

// TestTheClosestWordIsTheObviousOne draws words of which half the letters may be wrong.
func TestTheClosestWordIsTheObviousOne(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,7}`)
	rapid.Check(t, func(t *rapid.T) {
		of, among, want, best := word.Draw(t, "word"), rapid.SliceOfN(word, 1, 3).Draw(t, "among"), "", 7
		for _, other := range among {
			if d := slowDistance([]rune(of), []rune(other)); (d < best || d == best && strings.HasPrefix(other, of) && !strings.HasPrefix(want, of)) && d <= 2 && 2*d <= max(len(of), len(other)) {
				want, best = other, d
			}
		}
		require.Equal(t, want, document.Closest(of, among), "the closest to %q of %q", of, among)
	})
}

func slowDistance(a, b []rune) int {
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	restA, restB := a[:len(a)-1], b[:len(b)-1]
	cost := 1
	if a[len(a)-1] == b[len(b)-1] {
		cost = 0
	}
	best := min(slowDistance(restA, b)+1, slowDistance(a, restB)+1, slowDistance(restA, restB)+cost)
	if len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-2] && a[len(a)-2] == b[len(b)-1] {
		best = min(best, slowDistance(a[:len(a)-2], b[:len(b)-2])+1)
	}
	return best
}

func drawTree(t *rapid.T, depth int) *document.Node {
	kind := document.Kind(rapid.IntRange(0, 5).Draw(t, "kind"))
	if depth == 0 {
		kind = min(kind, document.String)
	}
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "null", "true", "1", "01", "-", "- a", "a: b", "a #b", "x y", " x", "x ", "'", `"`, "${a + 'b'}", "on", "<<", "a\nb", "é", "\u2028", ".5", "*", "&a", "!t", "@", "`", "%", "?", "1e5", "~", "{}", "[a", "---", "...", "? a", "|", ">", "\ufeff", "\u0085", "\u007f", "\x00", "# a"}),
		rapid.String(), rapid.StringMatching(`[ -~é]{0,12}`),
	)
	n := &document.Node{Kind: kind}
	switch kind {
	case document.Null:
	case document.Bool:
		n.Text = rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool")
	case document.Number:
		n.Text = rapid.SampledFrom([]string{"0", "-1", "1.5", "1e5", "12345678901234567890"}).Draw(t, "number")
	case document.String:
		n.Text = text.Draw(t, "text")
	case document.Sequence:
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			n.Items = append(n.Items, drawTree(t, depth-1))
		}
	case document.Mapping:
		for _, key := range rapid.SliceOfNDistinct(rapid.OneOf(text, rapid.StringMatching(`[a-z]{600}`)), 0, 4, rapid.ID[string]).Draw(t, "keys") {
			n.Fields = append(n.Fields, document.Field{Key: &document.Node{Kind: document.String, Text: key}, Value: drawTree(t, depth-1)})
		}
	}
	return n
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawTree(t, 5)
		again, err := document.Parse("w.yaml", document.Write(n))
		require.NoError(t, err, string(document.Write(n)))
		require.Equal(t, mustJSON(t, n), mustJSON(t, again), string(document.Write(n)))
		top := &document.Node{Kind: document.Mapping, Fields: []document.Field{{Key: &document.Node{Kind: document.String, Text: "top"}, Value: n}}}
		w := document.NewWriter()
		w.Comment("a comment\nof two lines")
		w.Top(top)
		again, err = document.Parse("w.yaml", w.Bytes())
		require.NoError(t, err, string(w.Bytes()))
		require.Equal(t, mustJSON(t, top), mustJSON(t, again), string(w.Bytes()))
		checkSources(t, w, again.Fields[0].Value, n)
	})
}

// checkSources holds that the writer finds each node by the place where the parser sees it.
func checkSources(t *rapid.T, w *document.Writer, read, written *document.Node) {
	if from := w.SourceOf(read.Line, read.Column); from != written {
		// A mapping or list begins where its first member does.
		require.True(t, from != nil && len(read.Fields)+len(read.Items) != 0, "%d:%d is %v, want %v in\n%s", read.Line, read.Column, from, written, w.Bytes())
	}
	for i, f := range read.Fields {
		checkSources(t, w, f.Key, written.Fields[i].Key)
		checkSources(t, w, f.Value, written.Fields[i].Value)
	}
	for i, item := range read.Items {
		checkSources(t, w, item, written.Items[i])
	}
}

func mustJSON(t *rapid.T, n *document.Node) string {
	v, err := n.Data()
	require.NoError(t, err)
	return string(v)
}

// TestWrite: every collection that has something stands in lines of its own, and lists are not indented.
func TestWrite(t *testing.T) {
	const text = `id: w
context:
  svcPublic:
    a: 1
    'b c?': null
    'on': 'true'
    d: '-'
states:
  a:
    entry:
    - assign:
        svcPublic.a: '${svcPublic.a + ''x''}'
    - "line\nbreak"
    - - 1
      - - {}
    'on':
      go: b
    meta: []
`
	n, err := document.Parse("w.yaml", []byte(text))
	require.NoError(t, err)
	assert.Equal(t, text, string(document.Write(n)))
}
