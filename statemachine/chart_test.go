package statemachine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// textOf writes a chart with a line for each node and transition.
func textOf(c *Chart) string {
	var b strings.Builder
	for _, n := range c.Nodes {
		parent := "-"
		if n.Parent >= 0 {
			parent = fmt.Sprint(n.Parent)
		}
		fmt.Fprintf(&b, "%s %d of %s %v", n.ID, n.Kind, parent, n.Children)
		for _, list := range []struct {
			name string
			of   any
			some bool
		}{{"initial", n.Initial, n.Initial != nil}, {"default", n.Default, n.Default != nil}, {"invokes", n.Invokes, n.Invokes != nil}} {
			if list.some {
				fmt.Fprintf(&b, " %s %v", list.name, list.of)
			}
		}
		b.WriteByte('\n')
		for _, tr := range n.Transitions {
			fmt.Fprintf(&b, "  %d %q", tr.Trigger, tr.Event)
			if tr.Delay != "" {
				fmt.Fprintf(&b, " after %s %s", tr.Delay, tr.Wait)
			}
			if tr.Guard != "" {
				fmt.Fprintf(&b, " [%s]", tr.Guard)
			}
			fmt.Fprintf(&b, " %v", tr.Targets)
			if tr.Reenter {
				b.WriteString(" reenter")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// TestChartHasNoOtherNode: appendixd looks for those of each position.
func TestChartHasNoOtherNode(t *testing.T) {
	c := parseChart(t, "id: w\nstateMachines: {both: {states: {deep: {on: {go: deep}}}}, other: {states: {a: {on: {f: b}}, b: {type: final}}}}\n").Chart()
	for _, p := range []Position{{Machine: "none", Node: "a"}, {Machine: "other", Node: "deep"}, {Machine: "other", Node: "Start"}} {
		_, ok := c.Node(p)
		assert.False(t, ok, "%v is found", p)
	}
}

// TestChartTakes holds statemachine/DEFINITION.md, "Event patterns", for transitions of a Chart.
func TestChartTakes(t *testing.T) {
	for _, c := range []struct {
		of   ChartTransition
		name EventName
		want bool
	}{
		{ChartTransition{Event: "pay.*"}, "pay.late", true},
		{ChartTransition{Event: "pay.*"}, "pay", true},
		{ChartTransition{Event: "pay"}, "pay.late", false},
		{ChartTransition{Event: "*"}, "pay", true},
		{ChartTransition{Event: "*"}, "after.P1D.a", false},
		{ChartTransition{Event: "done.state.a"}, "done.state.a", true},
		{ChartTransition{Event: "pay.* stop"}, "pay.late", true},
		{ChartTransition{Event: "pay.* stop"}, "stop", true},
		{ChartTransition{Event: "pay.* stop"}, "stop.late", false},
		{ChartTransition{Event: "done.*"}, "done.invoke.a", false},
		{ChartTransition{Event: "done.*", Wide: func(EventName) bool { return true }}, "done.invoke.a", true},
		{ChartTransition{Trigger: AfterDelay, Event: "after.P1D.a"}, "after.P1D.a", true},
		{ChartTransition{Trigger: AfterDelay, Event: "after.P1D.a"}, "after.P1D.b", false},
		{ChartTransition{Trigger: Always}, "", false},
		{ChartTransition{Event: "*"}, "", false},
	} {
		assert.Equal(t, c.want, c.of.Takes(c.name), "%+v takes %q", c.of, c.name)
	}
}

// checkChart holds that a chart's indexes are right.
func checkChart(t *testing.T, c *Chart) {
	t.Helper()
	for i := range c.Nodes {
		n := &c.Nodes[i]
		assert.Less(t, n.Parent, i, "node")
		all := append(append(append([]int(nil), n.Children...), n.Initial...), n.Default...)
		for _, tr := range n.Transitions {
			for _, to := range tr.Targets {
				assert.Equal(t, c.Machine(i), c.Machine(to), "a transition of %d leads to %d, in another machine", i, to)
			}
		}
		for _, inside := range all {
			assert.True(t, inside >= 0 && inside < len(c.Nodes) && c.Machine(inside) == c.Machine(i), "node %d: %+v", i, n)
		}
	}
}
