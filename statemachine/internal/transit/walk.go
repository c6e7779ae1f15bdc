package transit

import (
	"slices"

	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

// LooksPerUnit is how many transitions one unit pays for that do not take the event.
const LooksPerUnit = 8

// Walk is where an instance stands while transitions are taken.
type Walk struct {
	Chart  *chart.Definition
	Active chart.NodeSet
	// State has what history nodes remember.
	State *record.State
	// Budget pays for looks.
	Budget *expr.Budget
	// ByDefault are the nodes that were entered by default, of those with an opening.
	ByDefault []*chart.Node
}

// Look charges a look at n transitions, nodes, timers or tasks: a chart of thousands would take minutes for the microsteps of an event.
func (w *Walk) Look(n int) { w.Budget.Charge(uint64(n) / LooksPerUnit) }

// Domain is getTransitionDomain: the node whose active descendants the transition leaves. It never reaches beyond the state machine, so
// that one machine cannot stop another (statemachine/DEFINITION.md, "Domains").
func (w *Walk) Domain(t *chart.Transition) *chart.Node {
	targets := w.effectiveTargets(t.Targets)
	if !t.Reenter && !slices.ContainsFunc(targets, func(n *chart.Node) bool {
		return n != t.Source && !t.Source.Contains(n)
	}) {
		return t.Source
	}
	for p := t.Source.Parent; p != nil && p != t.Source.Machine; p = p.Parent {
		if (p.Kind == chart.Compound || w.Chart.Semantics == chart.XstateSemantics) && !slices.ContainsFunc(targets, func(n *chart.Node) bool { return !p.Contains(n) }) {
			return p
		}
	}
	return t.Source.Machine
}

// effectiveTargets replaces history nodes by what they stand for now.
func (w *Walk) effectiveTargets(targets []*chart.Node) []*chart.Node {
	if !slices.ContainsFunc(targets, func(n *chart.Node) bool { return n.Kind.IsHistory() }) {
		return targets
	}
	return w.appendEffective(nil, targets)
}

func (w *Walk) appendEffective(out, targets []*chart.Node) []*chart.Node {
	for _, n := range targets {
		switch {
		case !n.Kind.IsHistory():
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		case w.State.Remembered(n) != nil:
			for _, i := range w.State.Remembered(n) {
				if !slices.Contains(out, w.Chart.Nodes[i]) {
					out = append(out, w.Chart.Nodes[i])
				}
			}
		default:
			out = w.appendEffective(out, n.Defaults())
		}
	}
	return out
}
