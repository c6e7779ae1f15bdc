package document

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawTree(t *rapid.T, depth int) *Node {
	kind := Kind(rapid.IntRange(0, 5).Draw(t, "kind"))
	if depth == 0 {
		kind = min(kind, String)
	}
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "null", "true", "1", "01", "-", "- a", "a: b", "a #b", "x y", " x", "x ", "'", `"`, "${a + 'b'}", "on", "<<", "a\nb", "é", "\u2028", ".5", "*", "&a", "!t", "@", "`", "%", "?", "1e5", "~", "{}", "[a"}),
		rapid.String(),
	)
	n := &Node{Kind: kind}
	switch kind {
	case Null:
	case Bool:
		n.Text = rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool")
	case Number:
		n.Text = rapid.SampledFrom([]string{"0", "-1", "1.5", "1e5", "12345678901234567890"}).Draw(t, "number")
	case String:
		n.Text = text.Draw(t, "text")
	case Sequence:
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			n.Items = append(n.Items, drawTree(t, depth-1))
		}
	case Mapping:
		for _, key := range rapid.SliceOfNDistinct(text, 0, 4, rapid.ID[string]).Draw(t, "keys") {
			n.Fields = append(n.Fields, Field{Key: &Node{Kind: String, Text: key}, Value: drawTree(t, depth-1)})
		}
	}
	return n
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawTree(t, 5)
		text := Write(n)
		again, err := Parse("w.yaml", text)
		require.NoError(t, err, text)
		require.Equal(t, mustJSON(t, n), mustJSON(t, again), text)
	})
}

func mustJSON(t *rapid.T, n *Node) string {
	v, err := n.Data()
	require.NoError(t, err)
	return string(v)
}

// TestWrite: small parts stand in one line, others in blocks.
func TestWrite(t *testing.T) {
	const text = `id: w
context: {svcPublic: {a: 1, 'b c?': null, on: 'true', d: '-'}}
stateMachines:
  m:
    initial: a
    states:
      a:
        entry:
          - {assign: {svcPublic.a: '${svcPublic.a + ''x''}'}}
          - {log: a text that is long enough to make the list too long for one line}
          - if: 'In("a")'
            then: [{log: 'then, and this is so long that it is not in one line either, because of the limit of 120'}]
          - "line\nbreak"
        on: {go: b}
        meta: [[[]], {}]
      b: {}
`
	n, err := Parse("w.yaml", []byte(text))
	require.NoError(t, err)
	assert.Equal(t, text, string(Write(n)))
}
