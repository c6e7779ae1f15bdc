package document

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mustParse(t testing.TB, src string) *Node {
	t.Helper()
	n, err := Parse("a.yaml", []byte(src))
	require.NoError(t, err)
	return n
}

func TestReadersTakeTheirKind(t *testing.T) {
	n := mustParse(t, "text: x\nempty: ''\nyes: true\nno: False\nint: 1_000\nround: 1e2\nlist: [a, b]\nnone: []\n")
	c := &Collector{File: "a.yaml"}
	whole := func(n *Node) int { i, _ := c.Int(n); return i }
	for _, got := range []struct {
		name      string
		got, want any
	}{
		{"a text", c.Text(n.Field("text")), "x"},
		{"an empty text", c.Text(n.Field("empty")), ""},
		{"true", c.Bool(n.Field("yes")), true},
		{"false", c.Bool(n.Field("no")), false},
		{"a number with groups", whole(n.Field("int")), 1000},
		{"a number with an exponent", whole(n.Field("round")), 100},
		{"a list", c.Texts(n.Field("list")), []string{"a", "b"}},
		{"an empty list", c.Texts(n.Field("none")), []string{}},
		{"a text as a list", c.Texts(n.Field("text")), []string{"x"}},
		{"a missing text", c.Text(n.Field("missing")), ""},
		{"a missing truth", c.Bool(nil), false},
		{"a missing number", whole(nil), 0},
		{"a missing list", c.Texts(nil), []string(nil)},
		{"below what is missing", c.Text(n.Field("missing").Field("more")), ""},
	} {
		assert.Equal(t, got.want, got.got, got.name)
	}
	c.Known(n, "text", "empty", "yes", "no", "int", "round", "list", "none", "more")
	c.Known(nil)
	assert.NoError(t, c.Err(), "faults")
}

func TestReadersReportTheWrongKind(t *testing.T) {
	n := mustParse(t, "number: 7\ntext: x\nnone:\nlist: [a, 1, {}]\nhalf: 1.5\nhuge: 1e30\nmap: {a: 1}\n")
	for _, c := range []struct {
		name string
		read func(*Collector)
		want string
	}{
		{"a number for a text", func(c *Collector) { c.Text(n.Field("number")) }, "a.yaml:1:9: expected a text, found a number (quote it)"},
		{"null for a text", func(c *Collector) { c.Text(n.Field("none")) }, "a.yaml:3:6: expected a text, found null"},
		{"a mapping for a text", func(c *Collector) { c.Text(n.Field("map")) }, "a.yaml:7:6: expected a text, found a mapping"},
		{"a text for a truth", func(c *Collector) { c.Bool(n.Field("text")) }, "a.yaml:2:7: expected true or false, found a text"},
		{"a text for a number", func(c *Collector) { c.Int(n.Field("text")) }, "a.yaml:2:7: expected a number, found a text"},
		{"a fraction for a whole number", func(c *Collector) { c.Int(n.Field("half")) }, `a.yaml:5:7: expected a whole number, found "1.5"`},
		{"a number too large", func(c *Collector) { c.Int(n.Field("huge")) }, `a.yaml:6:7: expected a whole number, found "1e30"`},
		{"a list with others inside", func(c *Collector) { c.Texts(n.Field("list")) }, "a.yaml:4:11: expected a text, found a number (quote it)\na.yaml:4:14: expected a text, found a mapping"},
		{"a number for a list", func(c *Collector) { c.Texts(n.Field("number")) }, "a.yaml:1:9: expected a text or a list of texts, found a number"},
		{"a list where keys are wanted", func(c *Collector) { c.Known(n.Field("list"), "a") }, "a.yaml:4:7: expected a mapping, found a list"},
		{"an unknown key near a known one", func(c *Collector) { c.Known(n, "numbr", "texts", "none", "list", "half", "huge", "map") }, "a.yaml:1:1: unknown key \"number\" (did you mean \"numbr\"?)\na.yaml:2:1: unknown key \"text\" (did you mean \"texts\"?)"},
		{"an unknown key near nothing", func(c *Collector) { c.Known(n.Field("map"), "target", "guard") }, `a.yaml:7:7: unknown key "a" (known here: target, guard)`},
		{"one about the whole file", func(c *Collector) { c.Add(nil, "no %s", "machines") }, "a.yaml: no machines"},
	} {
		collector := &Collector{File: "a.yaml"}
		c.read(collector)
		assert.Equal(t, c.want, fmt.Sprint(collector.Err()), "%s: faults", c.name)
	}
}

func TestASuggestionCanBeSetLater(t *testing.T) {
	c := &Collector{File: "f"}
	first := c.Add(&Node{Line: 2, Column: 1}, "second")
	for range 50 {
		c.Add(&Node{Line: 1, Column: 1}, "first")
	}
	first.Suggestion = "do this"
	faults := c.Faults()
	assert.Equal(t, "f:2:1: second (do this)", faults[len(faults)-1].Error(), "the last fault")
}

func TestOnlyAHundredFaultsAreKept(t *testing.T) {
	c := &Collector{File: "f"}
	for i := range maxFaults + 5 {
		c.Add(&Node{Line: i + 1, Column: 1}, "fault").Suggestion = "fix"
	}
	faults := c.Faults()
	require.Len(t, faults, maxFaults+1, "faults are kept, want %d and a line", maxFaults)
	assert.Equal(t, "f: and 5 more", faults[maxFaults].Error(), "the last line")
}

func TestFaultsOfSeveralFilesAreSorted(t *testing.T) {
	faults := Faults{{File: "b", Line: 1}, {File: "a", Line: 2, Column: 2, Reason: "x"}, {File: "a", Line: 2, Column: 1}, {File: "a", Line: 1}, {File: "a", Line: 2, Column: 2, Reason: "y"}}
	faults.Sort()
	assert.Equal(t, "a:2: x", (Fault{File: "a", Line: 2, Reason: "x"}).Error(), "a fault of a whole line reads")
	var got []string
	for _, f := range faults {
		got = append(got, fmt.Sprintf("%s%d.%d%s", f.File, f.Line, f.Column, f.Reason))
	}
	assert.Equal(t, "a1.0 a2.1 a2.2x a2.2y b1.0", strings.Join(got, " "), "order %v", got)
}

func TestDataOfATreeMadeByHand(t *testing.T) {
	v, err := (*Node)(nil).Data()
	assert.True(t, v == nil && err == nil, "Data of no node = %s, %v, want absent", v, err)
	key := &Node{Kind: String, Text: "a"}
	loop := &Node{Kind: Sequence}
	loop.Items = []*Node{loop}
	for _, c := range []struct {
		name string
		n    *Node
	}{
		{"a number that is none", &Node{Kind: Number, Text: "x"}},
		{"an unknown kind", &Node{Kind: 99}},
		{"a missing element", &Node{Kind: Sequence, Items: []*Node{nil}}},
		{"a missing key", &Node{Kind: Mapping, Fields: []Field{{Value: key}}}},
		{"a missing value", &Node{Kind: Mapping, Fields: []Field{{Key: key}}}},
		{"a duplicate key", &Node{Kind: Mapping, Fields: []Field{{key, key}, {key, key}}}},
		{"a loop", loop},
	} {
		if v, err := c.n.Data(); err == nil {
			t.Errorf("%s: Data = %s, want an error", c.name, v)
		} else if errors.Is(err, errNode) == (c.name == "a duplicate key") {
			t.Errorf("%s: Data fails with %v", c.name, err)
		}
	}
}

func TestClosest(t *testing.T) {
	keys := []string{"target", "guard", "actions", "allow", "entry", "exit", "on", "id", "description", "stateMachines"}
	for _, c := range []struct{ name, word, want string }{
		{"a missing letter", "trget", "target"},
		{"a letter too many", "gguard", "guard"},
		{"a wrong letter", "exyt", "exit"},
		{"two swapped letters", "entyr", "entry"},
		{"two mistakes", "alowe", "allow"},
		{"the wrong case", "ACTIONS", "actions"},
		{"the wrong case in the middle", "statemachines", "stateMachines"},
		{"a third of a long word", "stateMaschienen", "stateMachines"},
		{"a short word", "no", "on"},
		{"a short word with nothing in common", "xy", ""},
		{"another word", "webhook", ""},
		{"no word", "", ""},
		{"a very long word", strings.Repeat("a", 10_000), ""},
	} {
		assert.Equal(t, c.want, Closest(c.word, keys), "%s: Closest(%.20q)", c.name, c.word)
	}
	assert.Equal(t, "ac", Closest("ab", []string{"ac", "ad"}), "of two words equally near")
}

func TestDistanceAgreesWithTheObviousOne(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := []rune(word.Draw(t, "a")), []rune(word.Draw(t, "b"))
		require.Equal(t, slowDistance(a, b), distance(a, b), "distance(%s, %s)", string(a), string(b))
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
