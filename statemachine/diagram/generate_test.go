package diagram

import (
	"fmt"

	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
	"troupe/statemachine"
)

// words are parts of names: some that a page, a parser or a font could take for its own.
var words = []string{"draft", "review", "a", "W", "<b>", "&amp;", "]]>", `"`, "'", "--", "審査", "é\u0301", "\u202e", "\x01", "\xff", "ending.story", "%%", "end note", "[*]", "very-long-word-without-any-blank-at-all-", "x y"}

// charts draws charts of up to that many nodes, with all kinds of nodes and transitions. The tree and the targets are
// such as a parser would accept.
func charts(nodesMax int) *rapid.Generator[*statemachine.Chart] {
	return rapid.Custom(func(t *rapid.T) *statemachine.Chart {
		g := &generator{t: t, left: rapid.IntRange(2, nodesMax).Draw(t, "nodes"), c: &statemachine.Chart{ID: "w", Name: name(t), Version: 1}}
		for first := true; first || g.left > 1; first = false {
			g.node(-1, 0)
		}
		g.transitions()
		return g.c
	})
}

func name(t *rapid.T) string {
	text := ""
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		text += rapid.SampledFrom(words).Draw(t, "word")
	}
	return text
}

type generator struct {
	t    *rapid.T
	c    *statemachine.Chart
	left int
}

func (g *generator) node(parent, depth int) int {
	g.left--
	i := len(g.c.Nodes)
	g.c.Nodes = append(g.c.Nodes, statemachine.ChartNode{ID: statemachine.NodeID(fmt.Sprint(name(g.t), i)), Parent: parent})
	kinds := []statemachine.NodeKind{statemachine.Atomic, statemachine.Atomic, statemachine.Final, statemachine.Compound, statemachine.Parallel, statemachine.ShallowHistory, statemachine.DeepHistory}
	switch {
	case parent < 0:
		kinds = kinds[3:5]
	case depth > 4 || g.left < 1:
		kinds = kinds[:3]
	}
	kind := rapid.SampledFrom(kinds).Draw(g.t, "kind")
	g.c.Nodes[i].Label, g.c.Nodes[i].Tone = g.label(), statemachine.Tone(rapid.IntRange(0, 3).Draw(g.t, "tone"))
	g.c.Nodes[i].Kind = kind
	if kind != statemachine.Compound && kind != statemachine.Parallel {
		return i
	}
	children := []int{g.node(i, 9)} // NB: a leaf, so that something can be active
	for range rapid.IntRange(0, 7).Draw(g.t, "children") {
		if g.left < 1 {
			break
		}
		children = append(children, g.node(i, depth+1))
	}
	g.c.Nodes[i].Children = children
	if kind == statemachine.Compound {
		g.c.Nodes[i].Initial = []int{rapid.IntRange(i+1, len(g.c.Nodes)-1).Draw(g.t, "initial")}
	}
	return i
}

func (g *generator) label() (label statemachine.Text) {
	for _, language := range rapid.SampledFrom([][]string{nil, {""}, {"en", "de"}}).Draw(g.t, "languages") {
		label = append(label, statemachine.Translation{Language: language, Text: name(g.t)})
	}
	return label
}

func (g *generator) transitions() {
	begin := 0
	for i := range g.c.Nodes {
		n := &g.c.Nodes[i]
		if n.Parent < 0 {
			begin = i
		}
		end := begin + 1
		for end < len(g.c.Nodes) && g.c.Nodes[end].Parent >= 0 {
			end++
		}
		target := rapid.IntRange(begin, end-1)
		switch {
		case n.Kind.IsHistory():
			if rapid.Bool().Draw(g.t, "default") {
				n.Default = []int{target.Draw(g.t, "default")}
			}
			continue
		case n.Kind == statemachine.Final:
			continue
		}
		if rapid.IntRange(0, 9).Draw(g.t, "invokes") == 0 {
			n.Invokes, n.Jobs = []string{name(g.t)}, []string{name(g.t)}
		}
		for range rapid.IntRange(0, 3).Draw(g.t, "transitions") {
			tr := statemachine.ChartTransition{Trigger: statemachine.Trigger(rapid.IntRange(0, 7).Draw(g.t, "trigger")), Event: name(g.t), Label: g.label()}
			if rapid.Bool().Draw(g.t, "guarded") {
				tr.Guard = name(g.t)
			}
			if tr.Trigger == statemachine.AfterDelay {
				tr.Delay = "P2D"
			}
			for range rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(g.t, "targets") {
				tr.Targets = append(tr.Targets, target.Draw(g.t, "target"))
			}
			n.Transitions = append(n.Transitions, tr)
		}
	}
}
