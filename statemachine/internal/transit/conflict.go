package transit

import (
	"slices"

	"troupe/statemachine/internal/chart"
)

// Innermost leaves out the transitions of nodes that have another one of the list inside: in XState, a region that takes an event keeps it
// from what is around the parallel node (statemachine/DEFINITION.md, "Rules of XState").
func Innermost(picked []*chart.Transition) []*chart.Transition {
	all := slices.Clone(picked)
	return slices.DeleteFunc(picked, func(outer *chart.Transition) bool {
		return slices.ContainsFunc(all, func(inner *chart.Transition) bool { return outer.Source.Contains(inner.Source) })
	})
}

// WithoutConflicts is removeConflictingTransitions: of two transitions that would leave the same node, the one deeper in the chart wins,
// else the first.
func (w *Walk) WithoutConflicts(picked []*chart.Transition) []*chart.Transition {
	kept := make([]claim, 0, len(picked))
next:
	for _, t := range picked {
		one := w.claimOf(t)
		w.Look(len(kept))
		isBeaten := func(other claim) bool { return w.conflict(one, other) }
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

// conflict reports whether the transitions cannot be taken together: both would leave a common node, or one would leave the source in which
// the other stays. SCXML does not have the second case: there, a transition to its own atomic source leaves it. Here it stays, and its exit
// set is empty (statemachine/DEFINITION.md, "Conflicts").
func (w *Walk) conflict(a, b claim) bool {
	from, to := max(a.from, b.from), min(a.to, b.to)
	return from <= to && w.Active.AnyIn(from, to)
}

// claimOf returns what is below the domain of the transition, and its source when it stays active.
func (w *Walk) claimOf(t *chart.Transition) claim {
	if len(t.Targets) == 0 {
		return claim{t, 0, -1}
	}
	d := w.Domain(t)
	if d == t.Source {
		return claim{t, d.Index, d.Last}
	}
	return claim{t, d.Index + 1, d.Last}
}
