package check

import (
	"maps"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// Check finds the faults that only the whole chart shows (statemachine/DEFINITION.md, "Faults of the chart").
func (c *Checker) Check(misshapen bool) {
	before := c.Count()
	c.checkTargets()
	c.checkHistory()
	misshapen = misshapen || c.Count() > before
	if c.Stored || c.Definition.Semantics != chart.NativeSemantics {
		return // a stored text runs with a slip, and other tools take one
	}
	c.checkShadowed()
	if misshapen {
		return // what is missing would make the rest of the chart look wrong
	}
	c.checkReachable()
	c.checkExits()
	c.checkLoops()
	c.checkEvents()
	c.checkNodeNames()
}

func at(line int) *document.Node { return &document.Node{Line: line} }

// checkTargets holds that several targets of one transition can be active together.
func (c *Checker) checkTargets() {
	for _, n := range c.Definition.Nodes {
		lists := [][]*chart.Node{n.Initial, n.Fallback}
		lines := []int{n.Line, n.Line}
		for t := range n.TransitionsOf() {
			lists, lines = append(lists, t.Targets), append(lines, t.Line)
		}
		for i, targets := range lists {
			if !chart.AreOrthogonal(targets) {
				c.Advise(at(lines[i]), "name one of them, or one in each region", "the targets cannot be active together: they must lie in different regions of a parallel node")
			}
		}
	}
}

// checkHistory refuses defaults that lead back to themselves.
func (c *Checker) checkHistory() {
	for _, n := range c.Definition.Nodes {
		for _, f := range n.Fallback {
			if f.Kind.IsHistory() {
				c.Advise(at(n.Line), "name a node that is none", "the default of history node %q is a history node", string(n.ID))
			}
		}
		for _, i := range n.Initial {
			if i.Kind.IsHistory() && i.Parent == n && i.Fallback == nil {
				c.Advise(at(n.Line), "give it a target", "history node %q is initial and needs a target as its default", string(i.ID))
			}
		}
	}
}

func (c *Checker) checkReachable() {
	seen := chart.NewNodeSet(len(c.Definition.Nodes))
	var visit func(n *chart.Node)
	visit = func(n *chart.Node) {
		if seen.Has(n.Index) {
			return
		}
		seen.Add(n.Index)
		if n.Parent != nil {
			visit(n.Parent)
		}
		next := slices.Concat(n.Initial, n.Fallback)
		if n.Kind == chart.Parallel {
			next = append(next, n.Children...)
		}
		for t := range n.TransitionsOf() {
			next = append(next, t.Targets...)
		}
		for _, to := range next {
			visit(to)
			// A node below a parallel one brings the other regions along, which visiting its ancestors does.
		}
	}
	visit(c.Definition.Nodes[0])
	for _, n := range c.Definition.Nodes {
		if !seen.Has(n.Index) {
			c.Advise(at(n.Line), "name it as a target, or remove it", "node %q is unreachable: no transition and no initial leads to it", string(n.ID))
		}
	}
}

// checkShadowed finds transitions behind one that always comes first.
func (c *Checker) checkShadowed() {
	for _, n := range c.Definition.Nodes {
		for _, list := range [][]*chart.Transition{n.On, n.Always} {
			taken := map[any]int{} // what comes first, by what takes it: the place in the list
			for i, t := range list {
				first := len(list)
				for _, trigger := range c.triggersOver(t) {
					if at, ok := taken[trigger]; ok {
						first = min(first, at)
					}
				}
				if first < len(list) {
					c.Advise(at(t.Line), "give the earlier one a guard, or put this one before it", "the transition can never be taken: the one in line %d has no guard and comes first", list[first].Line)
				}
				if _, ok := taken[triggerOf(t)]; !ok && t.Guard == nil && t.Allow == nil {
					taken[triggerOf(t)] = i
				}
			}
		}
	}
}

// triggerOf is what t is taken by: a node that is done, a timer, what happens to a child, or a pattern of events.
func triggerOf(tr *chart.Transition) any {
	switch {
	case tr.OnDone != nil:
		return tr.OnDone
	case tr.After != nil:
		return tr.After
	case tr.Child != nil:
		return *tr.Child
	}
	return tr.Event
}

// triggersOver are those of all transitions that take whatever takes t: as many as its event has parts, however many transitions there are.
func (c *Checker) triggersOver(t *chart.Transition) []any {
	if t.After != nil || t.Child != nil {
		return []any{triggerOf(t)}
	}
	over := []any{t.Event}
	if t.OnDone != nil {
		over = append(over, t.OnDone)
	}
	if c.Definition.IsExact(t.Event) || t.Event == (chart.EventPattern{}) {
		return over
	}
	over = append(over, chart.EventPattern{Any: true})
	for name := string(t.Event.Name); name != "" && !t.Event.Any; {
		over = append(over, chart.EventPattern{Name: chart.EventName(name), Prefix: true})
		name = name[:max(strings.LastIndexByte(name, '.'), 0)]
	}
	return over
}

// checkExits finds nodes that an instance could never leave again although they are not final: no transition on them or around
// them, and none in a region beside them that leads out.
func (c *Checker) checkExits() {
	// How many transitions lead out of a parallel node from inside it, and how many of them from inside a region.
	leave, fromRegion := map[*chart.Node]int{}, map[*chart.Node]int{}
	for _, n := range c.Definition.Nodes {
		for t := range n.TransitionsOf() {
			for region, p := n, n.Parent; p != nil && p.Parent != nil; region, p = p, p.Parent {
				if p.Kind == chart.Parallel && slices.ContainsFunc(t.Targets, func(to *chart.Node) bool { return !p.Contains(to) }) {
					leave[p]++
					fromRegion[region]++
				}
			}
		}
	}
	for _, n := range c.Definition.Nodes {
		if n.Kind != chart.Atomic || n.Parent == nil || hasTransition(n) {
			continue
		}
		isLed := false
		for region := n; region.Parent != nil; region = region.Parent {
			isLed = isLed || leave[region.Parent] > fromRegion[region]
		}
		if !isLed {
			c.Advise(at(n.Line), "give it a transition, or type: final", "node %q has no exit", string(n.ID))
		}
	}
}

func hasTransition(n *chart.Node) bool {
	for ; n.Parent != nil; n = n.Parent {
		if len(n.On)+len(n.Always) > 0 {
			return true
		}
	}
	return false
}

// checkLoops finds cycles of eventless transitions that nothing guards: an instance that comes there would never come to rest.
func (c *Checker) checkLoops() {
	state := make([]uint8, len(c.Definition.Nodes)) // 0 new, 1 on the path, 2 done
	var visit func(n *chart.Node) bool
	visit = func(n *chart.Node) bool {
		switch state[n.Index] {
		case 1:
			return true
		case 2:
			return false
		}
		state[n.Index] = 1
		defer func() { state[n.Index] = 2 }()
		for _, t := range n.Always {
			if t.Guard != nil {
				continue
			}
			for _, next := range enabledNext(t) {
				if visit(next) {
					c.Advise(at(t.Line), "give one of them a guard", "a cycle of eventless transitions without a guard starts here")
					return false
				}
			}
			break // later ones are shadowed
		}
		return false
	}
	for _, n := range c.Definition.Nodes {
		visit(n)
	}
}

// enabledNext returns the nodes whose eventless transitions are looked at after
// t was taken: what is entered, and what stays active around it.
func enabledNext(tr *chart.Transition) []*chart.Node {
	if len(tr.Targets) == 0 {
		return []*chart.Node{tr.Source}
	}
	var out []*chart.Node
	var enter func(n *chart.Node)
	enter = func(n *chart.Node) {
		if n.Kind.IsHistory() {
			return // what is remembered is not known here
		}
		out = append(out, n)
		for _, next := range n.DefaultEntry() {
			enter(next)
		}
	}
	for _, to := range tr.Targets {
		enter(to)
		for p := to.Parent; p != nil && p.Parent != nil; p = p.Parent {
			out = append(out, p)
		}
	}
	return out
}

func (c *Checker) checkNodeNames() {
	names := map[string]bool{}
	for _, n := range c.Definition.Nodes[1:] {
		names[string(n.ID)] = true
		names[string(n.Machine.ID)+"."+string(n.ID)] = true
	}
	all := slices.Sorted(maps.Keys(names))
	for _, p := range c.Programs {
		for _, name := range p.Program.Nodes() {
			if !names[name] {
				c.Suggest(p.At, name, all, "unknown node %q in In(…)", data.Shorten(name))
			}
		}
	}
}
