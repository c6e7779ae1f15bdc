package statemachine

import (
	"slices"

	"troupe/statemachine/expr"
)

// trigger is what transitions are selected for.
type trigger struct {
	name EventName // "" selects the eventless ones
	// done is the node whose completion raised the event; nil for all others.
	done *node
	// after is the timer that ended; nil for all others. Its event is no name that a pattern matches.
	after *after
	// told is what has become of a child; nil for all others. Its event is no name that a pattern matches.
	told *telling
	// exact: only a transition that names the event takes it, and no pattern.
	exact bool
	// ending: the instance takes nothing behind this. nothing: no transition takes it. leaving: it runs its exits at the end.
	ending, nothing, leaving bool
	// external: a caller sent it, so that allow is asked.
	external bool
}

// refusal says why a transition that would take an event does not.
type refusal uint8

const (
	notRefused refusal = iota
	byRights           // the caller may not
	byClaim            // the caller may, but somebody else has the task of its node
)

// looksPerUnit is how many transitions one unit pays for that do not take the event.
const looksPerUnit = 8

// looksPerNode is what leaving or entering a node comes to beside them.
const looksPerNode = 16

// look charges a look at n transitions, nodes, timers or tasks: a chart of thousands would take minutes for the microsteps of an event.
func (m *move) look(n int) { m.budget.Charge(uint64(n) / looksPerUnit) }

// selectTransitions picks, for each active leaf in document order, the first
// enabled transition on the way up, and removes the conflicts (W3C SCXML, Appendix D,
// selectTransitions). refused reports that a transition would have been
// enabled if the caller were someone else. When all machines are done, no transition is taken any more, also none of
// the machines themselves (statemachine/DEFINITION.md, "Final nodes and done events").
//
// allow takes part like a guard: a transition that the caller may not take is
// ignored, so that one event can mean different things to different
// callers (statemachine/DEFINITION.md, "Selection"). The result is good until the next
// call.
func (m *move) selectTransitions(t trigger) (picked []*transition, refused refusal) {
	if m.d.isDoneWith(m.active) {
		return nil, notRefused
	}
	picked = m.picked[:0]
	m.seen = m.seen.emptyFor(len(m.d.nodes)) // what lies above a node is the same for all leaves below it: ask once
	for i := m.active.next(1); i >= 0; i = m.active.next(i + 1) {
		leaf := m.d.nodes[i]
		if !leaf.isLeaf() {
			continue
		}
	climb:
		for n := leaf; n.parent != nil && !m.seen.has(n.index); n = n.parent {
			m.seen.add(n.index)
			list := n.on
			if t.name == "" {
				list = n.always
			}
			m.look(len(list))
			for _, tr := range list {
				if t.name != "" && !tr.takes(t) {
					continue
				}
				enabled, why := m.isEnabled(tr, t.external)
				if enabled {
					picked = append(picked, tr)
					break climb
				}
				refused = max(refused, why)
			}
		}
	}
	m.picked = picked
	if len(picked) > 1 && m.d.semantics == xstateSemantics && t.name != "" {
		m.look(len(picked) * len(picked))
		picked = innermost(picked)
	}
	if len(picked) > 1 {
		picked = m.withoutConflicts(picked)
	}
	return picked, refused
}

// innermost leaves out the transitions of nodes that have another one of the list inside: in XState, a region that
// takes an event keeps it from what is around the parallel node (statemachine/DEFINITION.md, "Rules of XState").
func innermost(picked []*transition) []*transition {
	all := slices.Clone(picked)
	return slices.DeleteFunc(picked, func(outer *transition) bool {
		return slices.ContainsFunc(all, func(inner *transition) bool { return outer.source.contains(inner.source) })
	})
}

func (tr *transition) takes(t trigger) bool {
	switch {
	case tr.onDone != nil:
		return tr.onDone == t.done
	case tr.everything:
		return !t.exact
	case tr.after != nil, t.after != nil:
		return tr.after == t.after
	case tr.told != nil, t.told != nil:
		return tr.told != nil && t.told != nil && *tr.told == *t.told
	}
	if t.exact {
		return tr.event == eventPattern{name: t.name}
	}
	return tr.event.matches(t.name) || tr.more != nil && slices.ContainsFunc(tr.more, func(p eventPattern) bool { return p.matches(t.name) })
}

// isEnabled evaluates the guard and, for an event from outside, allow and then the claim. why: only that disables the transition.
func (m *move) isEnabled(tr *transition, external bool) (enabled bool, why refusal) {
	switch {
	case tr.guard != nil && !m.guard(tr.guard):
		return false, notRefused
	case external && tr.allow != nil && !tr.allow.admits(m.caller, &m.scope):
		return false, byRights
	case external && len(m.in.tasks) > 0 && m.isHeld(tr):
		return false, byClaim
	}
	return true, notRefused
}

// rightTo is the best right that the caller has to an event by the transitions that take it, wherever they stand; Granted when
// none does. of says what one rule gives. It looks at the whole chart, so it is for an event that nothing takes now.
func (m *move) rightTo(t *trigger, of func(*rule) Right) Right {
	best, taken := Denied, false
	for _, n := range m.d.nodes {
		m.look(1 + len(n.on))
		for _, tr := range n.on {
			if !tr.takes(*t) {
				continue
			}
			if best = max(best, of(tr.allow)); best == Granted {
				return Granted
			}
			taken = true
		}
	}
	if !taken {
		return Granted
	}
	return best
}

// rightNow is what a rule gives the caller of the event.
func (m *move) rightNow(r *rule) Right {
	if r.admits(m.caller, &m.scope) {
		return Granted
	}
	return Denied
}

// foreseen is rightNow without the event.
func (m *move) foreseen(r *rule) Right { return r.foresee(m.caller, &m.scope, (*rule).readsEvent) }

// guard evaluates p; a guard that fails is false and raises error.execution.
func (m *move) guard(p *expr.Program) bool {
	ok, err := p.Bool(&m.scope)
	if err != nil {
		m.raiseError(err)
		return false
	}
	return ok
}

// withoutConflicts is removeConflictingTransitions: of two transitions that
// would leave the same node, the one deeper in the chart wins, else the first.
func (m *move) withoutConflicts(picked []*transition) []*transition {
	kept := make([]claim, 0, len(picked))
next:
	for _, t := range picked {
		one := m.claimOf(t)
		m.look(len(kept))
		isBeaten := func(other claim) bool { return m.conflict(one, other) }
		for _, other := range kept {
			if isBeaten(other) && !other.source.contains(t.source) {
				continue next
			}
		}
		kept = append(slices.DeleteFunc(kept, isBeaten), one)
	}
	picked = picked[:0]
	for _, c := range kept {
		picked = append(picked, c.transition)
	}
	return picked
}

// claim is a transition and the places in document order that it needs for itself; none when it has no targets.
type claim struct {
	*transition
	from, to int
}

// conflict reports whether the transitions cannot be taken together: both would
// leave a common node, or one would leave the source in which the other stays. SCXML
// does not have the second case: there, a transition to its own atomic source leaves
// it. Here it stays, and its exit set is empty (statemachine/DEFINITION.md,
// "Conflicts").
func (m *move) conflict(a, b claim) bool {
	from, to := max(a.from, b.from), min(a.to, b.to)
	return from <= to && m.active.anyIn(from, to)
}

// claimOf returns what is below the domain of the transition, and its source when it stays active.
func (m *move) claimOf(t *transition) claim {
	if len(t.targets) == 0 {
		return claim{t, 0, -1}
	}
	d := m.domain(t)
	if d == t.source {
		return claim{t, d.index, d.last}
	}
	return claim{t, d.index + 1, d.last}
}

// domain is getTransitionDomain: the node whose active descendants the
// transition leaves. It never reaches beyond the state machine, so that one
// machine cannot stop another (statemachine/DEFINITION.md, "Domains").
func (m *move) domain(t *transition) *node {
	targets := m.effectiveTargets(t.targets)
	if !t.reenter && !slices.ContainsFunc(targets, func(n *node) bool {
		return n != t.source && !t.source.contains(n)
	}) {
		return t.source
	}
	for p := t.source.parent; p != nil && p != t.source.machine; p = p.parent {
		if (p.kind == compound || m.d.semantics == xstateSemantics) && !slices.ContainsFunc(targets, func(n *node) bool { return !p.contains(n) }) {
			return p
		}
	}
	return t.source.machine
}

// effectiveTargets replaces history nodes by what they stand for now.
func (m *move) effectiveTargets(targets []*node) []*node {
	if !slices.ContainsFunc(targets, func(n *node) bool { return n.kind.isHistory() }) {
		return targets
	}
	return m.appendEffective(nil, targets)
}

func (m *move) appendEffective(out, targets []*node) []*node {
	for _, n := range targets {
		switch {
		case !n.kind.isHistory():
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		case m.remembered(n) != nil:
			for _, i := range m.remembered(n) {
				if !slices.Contains(out, m.d.nodes[i]) {
					out = append(out, m.d.nodes[i])
				}
			}
		default:
			out = m.appendEffective(out, n.defaults())
		}
	}
	return out
}

// defaults is what a history node enters when it remembers nothing.
func (n *node) defaults() []*node {
	if n.fallback != nil {
		return n.fallback
	}
	return n.parent.defaultEntry()
}

// defaultEntry is what entering a compound or parallel node leads to.
func (n *node) defaultEntry() []*node {
	if n.kind == parallel {
		return n.children
	}
	return n.initial
}

// remembered returns the nodes that a history node recorded, or nil.
func (m *move) remembered(history *node) []int {
	for _, r := range m.in.memory {
		if r.history == history.index {
			return r.nodes
		}
	}
	return nil
}
