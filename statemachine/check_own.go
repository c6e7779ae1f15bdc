package statemachine

import (
	"slices"
	"time"

	"troupe/statemachine/document"
)

// shortDelay is below what keeps a circle of own steps from being too fast.
const shortDelay = time.Second / 2

// ownStepsLooks bounds the search for circles: every transition of a large chart may enter all of it.
const ownStepsLooks = 2_000_000

func (d delay) isShort() bool { return d.value == nil && d.constant < shortDelay }

// warnOfOwnSteps finds circles of steps that an instance causes itself, by sends and timers without a pause, and that nothing guards: it
// is slowed down when it comes there (statemachine/DEFINITION.md, "Own steps").
func (b *builder) warnOfOwnSteps(w *document.Collector) {
	if b.d.semantics != nativeSemantics {
		return
	}
	state := map[*transition]uint8{} // 0 new, 1 on the path, 2 done
	left := ownStepsLooks
	var visit func(t *transition) bool
	visit = func(t *transition) bool {
		if state[t] != 0 {
			return state[t] == 1
		}
		if left < 0 {
			return false
		}
		state[t] = 1
		defer func() { state[t] = 2 }()
		caused, looked := t.caused()
		left -= looked
		for _, next := range caused {
			if visit(next) {
				w.Add(at(t.line), "a circle of steps that the instance causes itself starts here, and nothing guards it").
					Suggestion = "give one of them a guard or a delay: after 100 in a minute each waits longer"
				return false
			}
		}
		return false
	}
	for _, n := range b.d.nodes {
		for _, t := range n.transitionsOf() {
			if t.guard == nil {
				visit(t)
			}
		}
	}
}

// caused returns the transitions without a guard that are taken by themselves soon after t, as far as that can be seen, and how much it has
// looked at.
func (tr *transition) caused() (out []*transition, looked int) {
	reached := tr.enabledNext()
	actions := slices.Clone(tr.actions)
	for _, n := range reached {
		if len(tr.targets) == 0 {
			break // nothing is entered
		}
		actions = append(actions, n.entry...)
		for _, t := range n.transitionsOf() {
			if t.guard == nil && (t.after != nil && t.after.delay.isShort() || slices.Contains(n.always, t)) {
				out = append(out, t)
			}
		}
	}
	sent := map[EventName]bool{}
	for _, a := range actions {
		if s, ok := a.(send); ok && s.delay.isShort() {
			sent[s.event] = true
		}
	}
	seen := map[*node]bool{}
	for _, n := range reached {
		for ; n != nil && !seen[n] && len(sent) > 0; n = n.parent {
			seen[n] = true
			for _, t := range n.on {
				if t.guard == nil && t.after == nil && sent[t.event.name] && t.event == (eventPattern{name: t.event.name}) {
					out = append(out, t)
				}
			}
		}
	}
	return out, len(reached) + len(actions) + len(out)
}
