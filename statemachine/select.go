package statemachine

import (
	"slices"

	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
)

// trigger is what transitions are selected for.
type trigger struct {
	name EventName // "" selects the eventless ones
	// done is the node whose completion raised the event; nil for all others.
	done *chart.Node
	// after is the timer that ended; nil for all others. Its event is no name that a pattern matches.
	after *chart.After
	// told is what has become of a child; nil for all others. Its event is no name that a pattern matches.
	told *chart.ChildTransition
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
func (m *macrostep) look(n int) { m.budget.Charge(uint64(n) / looksPerUnit) }

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
func (m *macrostep) selectTransitions(t trigger) (picked []*chart.Transition, refused refusal) {
	if m.d.IsDoneWith(m.active) {
		return nil, notRefused
	}
	picked = m.picked[:0]
	m.seen = m.seen.EmptyFor(len(m.d.Nodes)) // what lies above a node is the same for all leaves below it: ask once
	for i := m.active.Next(1); i >= 0; i = m.active.Next(i + 1) {
		leaf := m.d.Nodes[i]
		if !leaf.IsLeaf() {
			continue
		}
	climb:
		for n := leaf; n.Parent != nil && !m.seen.Has(n.Index); n = n.Parent {
			m.seen.Add(n.Index)
			list := n.On
			if t.name == "" {
				list = n.Always
			}
			m.look(len(list))
			for _, tr := range list {
				if t.name != "" && !t.takenBy(tr) {
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
	if len(picked) > 1 && m.d.Semantics == chart.XstateSemantics && t.name != "" {
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
func innermost(picked []*chart.Transition) []*chart.Transition {
	all := slices.Clone(picked)
	return slices.DeleteFunc(picked, func(outer *chart.Transition) bool {
		return slices.ContainsFunc(all, func(inner *chart.Transition) bool { return outer.Source.Contains(inner.Source) })
	})
}

// takenBy reports whether the transition takes the event, its guard and rights left out.
func (t *trigger) takenBy(tr *chart.Transition) bool {
	switch {
	case tr.OnDone != nil:
		return tr.OnDone == t.done
	case tr.Everything:
		return !t.exact
	case tr.After != nil, t.after != nil:
		return tr.After == t.after
	case tr.Child != nil, t.told != nil:
		return tr.Child != nil && t.told != nil && *tr.Child == *t.told
	}
	if t.exact {
		return tr.Event == chart.EventPattern{Name: t.name}
	}
	return tr.Event.Matches(t.name) || tr.More != nil && slices.ContainsFunc(tr.More, func(p chart.EventPattern) bool { return p.Matches(t.name) })
}

// isEnabled evaluates the guard and, for an event from outside, allow and then the claim. why: only that disables the transition.
func (m *macrostep) isEnabled(tr *chart.Transition, external bool) (enabled bool, why refusal) {
	switch {
	case tr.Guard != nil && !m.guard(tr.Guard):
		return false, notRefused
	case external && tr.Allow != nil && !tr.Allow.Admits(m.caller, &m.scope):
		return false, byRights
	case external && len(m.in.State.Tasks) > 0 && m.isHeld(tr):
		return false, byClaim
	}
	return true, notRefused
}

// rightTo is the best right that the caller has to an event by the transitions that take it, wherever they stand; Granted when
// none does. of says what one rule gives. It looks at the whole chart, so it is for an event that nothing takes now.
func (m *macrostep) rightTo(t *trigger, of func(*chart.Rule) Right) Right {
	best, taken := Denied, false
	for _, n := range m.d.Nodes {
		m.look(1 + len(n.On))
		for _, tr := range n.On {
			if !t.takenBy(tr) {
				continue
			}
			if best = max(best, of(tr.Allow)); best == Granted {
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
func (m *macrostep) rightNow(r *chart.Rule) Right {
	if r.Admits(m.caller, &m.scope) {
		return Granted
	}
	return Denied
}

// foreseen is rightNow without the event.
func (m *macrostep) foreseen(r *chart.Rule) Right {
	return r.Foresee(m.caller, &m.scope, (*chart.Rule).ReadsEvent)
}

// guard evaluates p; a guard that fails is false and raises error.execution.
func (m *macrostep) guard(p *expr.Program) bool {
	ok, err := p.Bool(&m.scope)
	if err != nil {
		m.raiseError(err)
		return false
	}
	return ok
}

// withoutConflicts is removeConflictingTransitions: of two transitions that
// would leave the same node, the one deeper in the chart wins, else the first.
func (m *macrostep) withoutConflicts(picked []*chart.Transition) []*chart.Transition {
	kept := make([]claim, 0, len(picked))
next:
	for _, t := range picked {
		one := m.claimOf(t)
		m.look(len(kept))
		isBeaten := func(other claim) bool { return m.conflict(one, other) }
		for _, other := range kept {
			if isBeaten(other) && !other.Source.Contains(t.Source) {
				continue next
			}
		}
		kept = append(slices.DeleteFunc(kept, isBeaten), one)
	}
	picked = picked[:0]
	for _, c := range kept {
		picked = append(picked, c.Transition)
	}
	return picked
}

// claim is a transition and the places in document order that it needs for itself; none when it has no targets.
type claim struct {
	*chart.Transition
	from, to int
}

// conflict reports whether the transitions cannot be taken together: both would
// leave a common node, or one would leave the source in which the other stays. SCXML
// does not have the second case: there, a transition to its own atomic source leaves
// it. Here it stays, and its exit set is empty (statemachine/DEFINITION.md,
// "Conflicts").
func (m *macrostep) conflict(a, b claim) bool {
	from, to := max(a.from, b.from), min(a.to, b.to)
	return from <= to && m.active.AnyIn(from, to)
}

// claimOf returns what is below the domain of the transition, and its source when it stays active.
func (m *macrostep) claimOf(t *chart.Transition) claim {
	if len(t.Targets) == 0 {
		return claim{t, 0, -1}
	}
	d := m.domain(t)
	if d == t.Source {
		return claim{t, d.Index, d.Last}
	}
	return claim{t, d.Index + 1, d.Last}
}

// domain is getTransitionDomain: the node whose active descendants the
// transition leaves. It never reaches beyond the state machine, so that one
// machine cannot stop another (statemachine/DEFINITION.md, "Domains").
func (m *macrostep) domain(t *chart.Transition) *chart.Node {
	targets := m.effectiveTargets(t.Targets)
	if !t.Reenter && !slices.ContainsFunc(targets, func(n *chart.Node) bool {
		return n != t.Source && !t.Source.Contains(n)
	}) {
		return t.Source
	}
	for p := t.Source.Parent; p != nil && p != t.Source.Machine; p = p.Parent {
		if (p.Kind == Compound || m.d.Semantics == chart.XstateSemantics) && !slices.ContainsFunc(targets, func(n *chart.Node) bool { return !p.Contains(n) }) {
			return p
		}
	}
	return t.Source.Machine
}

// effectiveTargets replaces history nodes by what they stand for now.
func (m *macrostep) effectiveTargets(targets []*chart.Node) []*chart.Node {
	if !slices.ContainsFunc(targets, func(n *chart.Node) bool { return n.Kind.IsHistory() }) {
		return targets
	}
	return m.appendEffective(nil, targets)
}

func (m *macrostep) appendEffective(out, targets []*chart.Node) []*chart.Node {
	for _, n := range targets {
		switch {
		case !n.Kind.IsHistory():
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		case m.in.State.Remembered(n) != nil:
			for _, i := range m.in.State.Remembered(n) {
				if !slices.Contains(out, m.d.Nodes[i]) {
					out = append(out, m.d.Nodes[i])
				}
			}
		default:
			out = m.appendEffective(out, n.Defaults())
		}
	}
	return out
}
