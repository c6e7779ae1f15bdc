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
	free := unguarded{}
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
		caused, looked := free.causedBy(t)
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
		for t := range n.transitionsOf() {
			if t.guard == nil {
				visit(t)
			}
		}
	}
}

// unguarded are, for each node that was looked at, its transitions without a guard.
type unguarded map[*node]*freeSteps

type freeSteps struct {
	byThemselves []*transition               // eventless ones, and short timers
	on           map[EventName][]*transition // by the one event that takes them
}

func (u unguarded) of(n *node) *freeSteps {
	if s, ok := u[n]; ok {
		return s
	}
	s := &freeSteps{on: map[EventName][]*transition{}}
	for _, t := range n.on {
		switch {
		case t.guard != nil:
		case t.after != nil:
			if t.after.delay.isShort() {
				s.byThemselves = append(s.byThemselves, t)
			}
		case t.event == eventPattern{name: t.event.name}:
			s.on[t.event.name] = append(s.on[t.event.name], t)
		}
	}
	for _, t := range n.always {
		if t.guard == nil {
			s.byThemselves = append(s.byThemselves, t)
		}
	}
	u[n] = s
	return s
}

// causedBy returns the transitions without a guard that are taken by themselves soon after t, as far as that can be seen, and how much it has
// looked at.
func (u unguarded) causedBy(t *transition) (out []*transition, looked int) {
	reached := t.enabledNext()
	actions := slices.Clone(t.actions)
	for _, n := range reached {
		if len(t.targets) == 0 {
			break // nothing is entered
		}
		actions = append(actions, n.entry...)
		out = append(out, u.of(n).byThemselves...)
	}
	var sent []EventName
	isSent := map[EventName]bool{}
	for _, a := range actions {
		if s, ok := a.(send); ok && s.delay.isShort() && !isSent[s.event] {
			isSent[s.event] = true
			sent = append(sent, s.event)
		}
	}
	seen := map[*node]bool{}
	for _, n := range reached {
		for ; n != nil && !seen[n] && len(sent) > 0; n = n.parent {
			seen[n] = true
			looked += len(sent)
			for _, name := range sent {
				out = append(out, u.of(n).on[name]...)
			}
		}
	}
	return out, looked + len(reached) + len(actions) + len(out)
}
