package diagram

import (
	"fmt"
	"testing"

	"troupe/statemachine"
)

// bigChart has that many nodes in groups of ten, each with a few transitions, some of them far away.
func bigChart(nodes int) *statemachine.Chart {
	c := &statemachine.Chart{ID: "big", Name: "Big", Version: 1}
	add := func(kind statemachine.NodeKind, parent int) int {
		i := len(c.Nodes)
		c.Nodes = append(c.Nodes, statemachine.ChartNode{ID: statemachine.NodeID(fmt.Sprint("state ", i)), Kind: kind, Parent: parent})
		if parent >= 0 {
			c.Nodes[parent].Children = append(c.Nodes[parent].Children, i)
		}
		return i
	}
	machine := add(statemachine.Compound, -1)
	var leaves []int
	for len(c.Nodes) < nodes {
		group := add(statemachine.Compound, machine)
		for range 9 {
			leaves = append(leaves, add(statemachine.Atomic, group))
		}
		c.Nodes[group].Initial = []int{group + 1}
	}
	c.Nodes[machine].Initial = []int{1}
	for k, i := range leaves {
		to := func(by int, event string) {
			c.Nodes[i].Transitions = append(c.Nodes[i].Transitions, statemachine.ChartTransition{Event: event, Targets: []int{leaves[by%len(leaves)]}})
		}
		to(k+1, "next")
		if k%3 == 0 {
			to(k+2, "skip")
		}
		if k%7 == 0 {
			to(k*7919+13, "away")
		}
	}
	return c
}

// flatChart is a chain of that many nodes without groups. All lead back to the first, and far ahead.
func flatChart(nodes int) *statemachine.Chart {
	c := &statemachine.Chart{ID: "flat", Nodes: []statemachine.ChartNode{{ID: "m", Kind: statemachine.Compound, Parent: -1, Initial: []int{1}}}}
	for i := 1; i <= nodes; i++ {
		to := func(event string, j int) statemachine.ChartTransition {
			return statemachine.ChartTransition{Event: event, Targets: []int{j}}
		}
		c.Nodes[0].Children = append(c.Nodes[0].Children, i)
		c.Nodes = append(c.Nodes, statemachine.ChartNode{ID: statemachine.NodeID(fmt.Sprint("state ", i)), Transitions: []statemachine.ChartTransition{
			to("next", i%nodes+1), to("back", 1), to("ahead", min(i+nodes/2, nodes)),
		}})
	}
	return c
}

func BenchmarkSVG(b *testing.B) {
	for _, nodes := range []int{50, 500, 2000, 4000} {
		p := &Picture{Chart: bigChart(nodes)}
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.SVG()
			}
		})
	}
}
