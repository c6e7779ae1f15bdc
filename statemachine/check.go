package statemachine

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// check finds the faults that only the whole chart shows (statemachine/DEFINITION.md,
// "Faults of the chart").
func (b *builder) check() {
	before := b.Count()
	b.checkTargets()
	b.checkHistory()
	misshapen := b.misshapen || b.Count() > before
	if b.parser.options.Stored || b.d.semantics != nativeSemantics {
		return // a stored text runs with a slip, and other tools take one
	}
	b.checkShadowed()
	if misshapen {
		return // what is missing would make the rest of the chart look wrong
	}
	b.checkReachable()
	b.checkExits()
	b.checkLoops()
	b.checkEvents()
	b.checkNodeNames()
}

func at(line int) *document.Node { return &document.Node{Line: line} }

// transitionsOf yields everything that can be taken while n is active.
func (n *node) transitionsOf() iter.Seq[*transition] {
	return func(yield func(*transition) bool) {
		for _, list := range [2][]*transition{n.on, n.always} {
			for _, t := range list {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// checkTargets holds that several targets of one transition can be active
// together.
func (b *builder) checkTargets() {
	for _, n := range b.d.nodes {
		lists := [][]*node{n.initial, n.fallback}
		lines := []int{n.line, n.line}
		for t := range n.transitionsOf() {
			lists, lines = append(lists, t.targets), append(lines, t.line)
		}
		for i, targets := range lists {
			if !areOrthogonal(targets) {
				b.advise(at(lines[i]), "name one of them, or one in each region", "the targets cannot be active together: they must lie in different regions of a parallel node")
			}
		}
	}
}

func areOrthogonal(targets []*node) bool {
	for i, t := range targets {
		for _, u := range targets[:i] {
			if common(t, u).kind != parallel || t.contains(u) || u.contains(t) || t == u {
				return false
			}
		}
	}
	return true
}

// common returns the deepest node that holds both, which may be one of them.
func common(a, b *node) *node {
	for a != b && !a.contains(b) {
		a = a.parent
	}
	return a
}

// checkHistory refuses defaults that lead back to themselves.
func (b *builder) checkHistory() {
	for _, n := range b.d.nodes {
		for _, f := range n.fallback {
			if f.kind.isHistory() {
				b.advise(at(n.line), "name a node that is none", "the default of history node %q is a history node", string(n.id))
			}
		}
		for _, i := range n.initial {
			if i.kind.isHistory() && i.parent == n && i.fallback == nil {
				b.advise(at(n.line), "give it a target", "history node %q is initial and needs a target as its default", string(i.id))
			}
		}
	}
}

// checkReachable finds nodes that nothing leads to.
func (b *builder) checkReachable() {
	seen := newNodeSet(len(b.d.nodes))
	var visit func(n *node)
	visit = func(n *node) {
		if seen.has(n.index) {
			return
		}
		seen.add(n.index)
		if n.parent != nil {
			visit(n.parent)
		}
		next := slices.Concat(n.initial, n.fallback)
		if n.kind == parallel {
			next = append(next, n.children...)
		}
		for t := range n.transitionsOf() {
			next = append(next, t.targets...)
		}
		for _, to := range next {
			visit(to)
			// A node below a parallel one brings the other regions along,
			// which visiting its ancestors does.
		}
	}
	visit(b.d.nodes[0])
	for _, n := range b.d.nodes {
		if !seen.has(n.index) {
			b.advise(at(n.line), "name it as a target, or remove it", "node %q is unreachable: no transition and no initial leads to it", string(n.id))
		}
	}
}

// checkShadowed finds transitions behind one that always comes first.
func (b *builder) checkShadowed() {
	for _, n := range b.d.nodes {
		for _, list := range [][]*transition{n.on, n.always} {
			taken := map[any]int{} // what comes first, by what takes it: the place in the list
			for i, t := range list {
				first := len(list)
				for _, trigger := range b.triggersOver(t) {
					if at, ok := taken[trigger]; ok {
						first = min(first, at)
					}
				}
				if first < len(list) {
					b.advise(at(t.line), "give the earlier one a guard, or put this one before it", "the transition can never be taken: the one in line %d has no guard and comes first", list[first].line)
				}
				if _, ok := taken[t.trigger()]; !ok && t.guard == nil && t.allow == nil {
					taken[t.trigger()] = i
				}
			}
		}
	}
}

// trigger is what t is taken by: a node that is done, a timer, what becomes of a child, or a pattern of events.
func (tr *transition) trigger() any {
	switch {
	case tr.onDone != nil:
		return tr.onDone
	case tr.after != nil:
		return tr.after
	case tr.told != nil:
		return *tr.told
	}
	return tr.event
}

// triggersOver are those of all transitions that take whatever takes t: as many as its event has parts, however many transitions there are.
func (b *builder) triggersOver(t *transition) []any {
	if t.after != nil || t.told != nil {
		return []any{t.trigger()}
	}
	over := []any{t.event}
	if t.onDone != nil {
		over = append(over, t.onDone)
	}
	if b.d.isExact(t.event) || t.event == (eventPattern{}) {
		return over
	}
	over = append(over, eventPattern{any: true})
	for name := string(t.event.name); name != "" && !t.event.any; {
		over = append(over, eventPattern{name: EventName(name), prefix: true})
		name = name[:max(strings.LastIndexByte(name, '.'), 0)]
	}
	return over
}

// checkExits finds nodes that an instance could never leave again although they
// are not final: no transition on them or around them, and none in a region
// beside them that leads out.
func (b *builder) checkExits() {
	// How many transitions lead out of a parallel node from inside it, and how many of them from inside a region.
	leave, fromRegion := map[*node]int{}, map[*node]int{}
	for _, n := range b.d.nodes {
		for t := range n.transitionsOf() {
			for region, p := n, n.parent; p != nil && p.parent != nil; region, p = p, p.parent {
				if p.kind == parallel && slices.ContainsFunc(t.targets, func(to *node) bool { return !p.contains(to) }) {
					leave[p]++
					fromRegion[region]++
				}
			}
		}
	}
	for _, n := range b.d.nodes {
		if n.kind != atomic || n.parent == nil || hasTransition(n) {
			continue
		}
		isLed := false
		for region := n; region.parent != nil; region = region.parent {
			isLed = isLed || leave[region.parent] > fromRegion[region]
		}
		if !isLed {
			b.advise(at(n.line), "give it a transition, or type: final", "node %q has no exit", string(n.id))
		}
	}
}

func hasTransition(n *node) bool {
	for ; n.parent != nil; n = n.parent {
		if len(n.on)+len(n.always) > 0 {
			return true
		}
	}
	return false
}

// checkLoops finds cycles of eventless transitions that nothing guards: an
// instance that comes there would never come to rest.
func (b *builder) checkLoops() {
	state := make([]uint8, len(b.d.nodes)) // 0 new, 1 on the path, 2 done
	var visit func(n *node) bool
	visit = func(n *node) bool {
		switch state[n.index] {
		case 1:
			return true
		case 2:
			return false
		}
		state[n.index] = 1
		defer func() { state[n.index] = 2 }()
		for _, t := range n.always {
			if t.guard != nil {
				continue
			}
			for _, next := range t.enabledNext() {
				if visit(next) {
					b.advise(at(t.line), "give one of them a guard", "a cycle of eventless transitions without a guard starts here")
					return false
				}
			}
			break // later ones are shadowed
		}
		return false
	}
	for _, n := range b.d.nodes {
		visit(n)
	}
}

// enabledNext returns the nodes whose eventless transitions are looked at after
// t was taken: what is entered, and what stays active around it.
func (tr *transition) enabledNext() []*node {
	if len(tr.targets) == 0 {
		return []*node{tr.source}
	}
	var out []*node
	var enter func(n *node)
	enter = func(n *node) {
		if n.kind.isHistory() {
			return // what is remembered is not known here
		}
		out = append(out, n)
		for _, next := range n.defaultEntry() {
			enter(next)
		}
	}
	for _, to := range tr.targets {
		enter(to)
		for p := to.parent; p != nil && p.parent != nil; p = p.parent {
			out = append(out, p)
		}
	}
	return out
}

// checkNodeNames finds names in In(…) that no node has.
func (b *builder) checkNodeNames() {
	names := map[string]bool{}
	for _, n := range b.d.nodes[1:] {
		names[string(n.id)] = true
		names[string(n.machine.id)+"."+string(n.id)] = true
	}
	all := slices.Sorted(maps.Keys(names))
	for _, p := range b.programs {
		for _, name := range p.program.Nodes() {
			if !names[name] {
				b.suggest(p.at, name, all, "unknown node %q in In(…)", data.Shorten(name))
			}
		}
	}
}
