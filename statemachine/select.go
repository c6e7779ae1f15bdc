package statemachine

import (
	"slices"

	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/transit"
)

type trigger struct {
	name EventName // "" selects the eventless ones
	// done is the node whose completion raised the event; nil for all others.
	done *chart.Node
	// after is the timer that ended; nil for all others. Its event is not a name that a pattern matches.
	after *chart.After
	// child is what happened to a child; nil for all others. Its event is not a name that a pattern matches.
	child *chart.ChildTransition
	// exact: only a transition that names the event takes it, and no pattern.
	exact bool
	// ending: the instance takes nothing behind this. nothing: no transition takes it. leaving: it runs its exits at the end.
	ending, nothing, leaving bool
	// external: a caller sent it, so that allow is asked.
	external bool
	// shut are transitions that do not take it, as rights or a claim said once.
	shut []*chart.Transition
}

// refusal says why a transition that would take an event does not.
type refusal uint8

const (
	notRefused refusal = iota
	byRights           // the caller may not
	byClaim            // the caller may, but the task is assigned to someone else of its node
)

// selectTransitions picks, for each active leaf in document order, the first enabled transition on the way up, and removes the conflicts
// (W3C SCXML, Appendix D, selectTransitions). refused reports that a transition would have been enabled if the caller were someone else.
// When all machines are done, no transition is taken any more, also none of the machines themselves (statemachine/DEFINITION.md, "Final
// nodes and done events").
//
// allow takes part like a guard: a transition that the caller may not take is ignored, so that one event can mean different things to
// different callers (statemachine/DEFINITION.md, "Selection"). The result is good until the next call.
func (m *macrostep) selectTransitions(t trigger) (picked []*chart.Transition, refused refusal) {
	if m.d.IsDoneWith(m.Active) {
		return nil, notRefused
	}
	picked = m.picked[:0]
	m.seen = m.seen.EmptyFor(len(m.d.Nodes)) // what lies above a node is the same for all leaves below it: ask once
	for i := m.Active.Next(1); i >= 0; i = m.Active.Next(i + 1) {
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
			m.Look(len(list))
			for _, tr := range list {
				if t.name != "" && !t.takenBy(tr) {
					continue
				}
				enabled, why := m.isEnabled(tr, &t)
				if enabled {
					picked = append(picked, tr)
					break climb
				}
				if refused = max(refused, why); why != notRefused {
					m.shut = append(m.shut, tr)
				}
			}
		}
	}
	m.picked = picked
	if len(picked) > 1 && m.d.Semantics == chart.XstateSemantics && t.name != "" {
		m.Look(len(picked) * len(picked))
		picked = transit.Innermost(picked)
	}
	if len(picked) > 1 {
		picked = m.WithoutConflicts(picked)
	}
	return picked, refused
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
	case tr.Child != nil, t.child != nil:
		return tr.Child != nil && t.child != nil && *tr.Child == *t.child
	}
	if t.exact {
		return tr.Event == chart.EventPattern{Name: t.name}
	}
	return tr.Event.Matches(t.name) || tr.More != nil && slices.ContainsFunc(tr.More, func(p chart.EventPattern) bool { return p.Matches(t.name) })
}

// isEnabled evaluates the guard and, for an event from outside, allow and then the claim. why: only that disables the transition.
func (m *macrostep) isEnabled(tr *chart.Transition, t *trigger) (enabled bool, why refusal) {
	switch {
	case tr.Guard != nil && !m.guard(tr.Guard):
		return false, notRefused
	case t.external && tr.Allow != nil && !tr.Allow.Admits(m.caller, &m.scope):
		return false, byRights
	case t.external && len(m.in.State.Tasks) > 0 && m.isHeld(tr):
		return false, byClaim
	case t.shut != nil && slices.Contains(t.shut, tr):
		return false, byRights
	}
	return true, notRefused
}

// rightTo is the best right that the caller has to an event by the transitions that take it, wherever they stand; Granted when
// none does. of evaluates one rule. It looks at the whole chart, so it is for an event that nothing takes now.
func (m *macrostep) rightTo(t *trigger, of func(*chart.Rule) Right) Right {
	best, taken := Denied, false
	for _, n := range m.d.Nodes {
		m.Look(1 + len(n.On))
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
	m.d.coverage.Decide(p, ok)
	return ok
}

// isHeld reports whether a transition is kept from the caller because the task is assigned to someone else of its node
// (statemachine/DEFINITION.md, "Claims").
func (m *macrostep) isHeld(t *chart.Transition) bool {
	if t.Source.Task == nil || t.Allow == nil || m.caller.OverridesClaims {
		return false
	}
	for i := range m.in.State.Tasks {
		if of := &m.in.State.Tasks[i]; of.Node == t.Source {
			return of.Assignee != "" && of.Assignee != m.caller.ID
		}
	}
	return false
}
