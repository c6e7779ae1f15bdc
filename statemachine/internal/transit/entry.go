package transit

import (
	"slices"

	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

// PlanEntry adds to enter all nodes that entering the targets below domain implies: SCXML's computeEntrySet.
func (w *Walk) PlanEntry(enter chart.NodeSet, targets []*chart.Node, domain *chart.Node) {
	for _, n := range targets {
		w.PlanDescendants(enter, n, domain)
	}
	for _, n := range w.effectiveTargets(targets) {
		w.planAncestors(enter, n, domain, domain)
	}
	if domain.Kind == chart.Parallel {
		// SCXML has only compound domains. This one stays active, and all of its regions were left.
		w.PlanRegions(enter, domain, domain)
	}
}

// PlanDescendants adds a node and what is entered in it.
func (w *Walk) PlanDescendants(enter chart.NodeSet, n, domain *chart.Node) {
	if n.Kind.IsHistory() {
		if n.Opening != nil && w.State.Remembered(n) == nil {
			w.ByDefault = append(w.ByDefault, n)
		}
		stands := w.effectiveTargets([]*chart.Node{n})
		for _, s := range stands {
			w.PlanDescendants(enter, s, domain)
		}
		// SCXML goes up to the parent of the history node also when the domain lies inside it, and enters regions beside the domain that
		// were not left (statemachine/DEFINITION.md, "Domains").
		upTo := n.Parent
		if upTo.Contains(domain) {
			upTo = domain
		}
		for _, s := range stands {
			w.planAncestors(enter, s, upTo, domain)
		}
		return
	}
	enter.Add(n.Index)
	switch n.Kind {
	case chart.Compound:
		if n.Opening != nil {
			w.ByDefault = append(w.ByDefault, n)
		}
		for _, s := range n.Initial {
			w.PlanDescendants(enter, s, domain)
		}
		for _, s := range w.effectiveTargets(n.Initial) {
			w.planAncestors(enter, s, n, domain)
		}
	case chart.Parallel:
		w.PlanRegions(enter, n, domain)
	}
}

// PlanRegions adds the regions of a parallel node that nothing else enters.
func (w *Walk) PlanRegions(enter chart.NodeSet, p, domain *chart.Node) {
	for _, r := range p.Children {
		if !enter.AnyIn(r.Index, r.Last) {
			w.PlanDescendants(enter, r, domain)
		}
	}
}

// planAncestors adds the nodes between n and ancestor, both left out.
func (w *Walk) planAncestors(enter chart.NodeSet, n, ancestor, domain *chart.Node) {
	if n == ancestor {
		return // an internal transition to its own source
	}
	for p := n.Parent; p != nil && p != ancestor; p = p.Parent {
		enter.Add(p.Index)
		if p.Kind == chart.Parallel {
			w.PlanRegions(enter, p, domain)
		}
	}
}

// Remember has a history node record what is active below its parent.
func (w *Walk) Remember(h *chart.Node) {
	var nodes []int
	for i := w.Active.Next(h.Parent.Index + 1); i >= 0 && i <= h.Parent.Last; i = w.Active.Next(i + 1) {
		n := w.Chart.Nodes[i]
		if h.Kind == chart.DeepHistory && n.IsLeaf() || h.Kind == chart.ShallowHistory && n.Parent == h.Parent {
			nodes = append(nodes, i)
		}
	}
	w.Look(h.Parent.Last - h.Parent.Index + LooksPerUnit*len(w.State.Memory))
	kept := slices.DeleteFunc(slices.Clone(w.State.Memory), func(r record.Memory) bool { return r.History == h.Index })
	w.State.Memory = append(kept, record.Memory{History: h.Index, Nodes: nodes})
}
