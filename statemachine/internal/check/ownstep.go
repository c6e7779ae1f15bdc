package check

import (
	"slices"
	"time"

	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// shortDelay is below what keeps a circle of own steps from being too fast.
const shortDelay = time.Second / 2

// ownStepsLooks bounds the search for circles: every transition of a large chart may enter all of it.
const ownStepsLooks = 2_000_000

func isShort(d chart.Delay) bool { return d.Value == nil && d.Constant < shortDelay }

// warnOfOwnSteps finds circles of steps that an instance causes itself, by sends and timers without a pause, and that nothing guards: it
// is slowed down when it comes there (statemachine/DEFINITION.md, "Own steps").
func (c *Checker) warnOfOwnSteps(w *document.Collector) {
	if c.Definition.Semantics != chart.NativeSemantics {
		return
	}
	state := map[*chart.Transition]uint8{} // 0 new, 1 on the path, 2 done
	left := ownStepsLooks
	free := unguarded{}
	var visit func(t *chart.Transition) bool
	visit = func(t *chart.Transition) bool {
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
				w.Add(at(t.Line), "a circle of steps that the instance causes itself starts here, and nothing guards it").
					Suggestion = "give one of them a guard or a delay: after 100 in a minute each waits longer"
				return false
			}
		}
		return false
	}
	for _, n := range c.Definition.Nodes {
		for t := range n.TransitionsOf() {
			if t.Guard == nil {
				visit(t)
			}
		}
	}
}

// unguarded are, for each node that was looked at, its transitions without a guard.
type unguarded map[*chart.Node]*freeSteps

type freeSteps struct {
	byThemselves []*chart.Transition                     // eventless ones, and short timers
	on           map[chart.EventName][]*chart.Transition // by the one event that takes them
}

func (u unguarded) of(n *chart.Node) *freeSteps {
	if s, ok := u[n]; ok {
		return s
	}
	s := &freeSteps{on: map[chart.EventName][]*chart.Transition{}}
	for _, t := range n.On {
		switch {
		case t.Guard != nil:
		case t.After != nil:
			if isShort(t.After.Delay) {
				s.byThemselves = append(s.byThemselves, t)
			}
		case t.Event == chart.EventPattern{Name: t.Event.Name}:
			s.on[t.Event.Name] = append(s.on[t.Event.Name], t)
		}
	}
	for _, t := range n.Always {
		if t.Guard == nil {
			s.byThemselves = append(s.byThemselves, t)
		}
	}
	u[n] = s
	return s
}

// causedBy returns the transitions without a guard that are taken on their own soon after t, as far as that can be seen, and how much it has
// looked at.
func (u unguarded) causedBy(t *chart.Transition) (out []*chart.Transition, looked int) {
	reached := enabledNext(t)
	actions := slices.Clone(t.Actions)
	for _, n := range reached {
		if len(t.Targets) == 0 {
			break // nothing is entered
		}
		actions = append(actions, n.Entry...)
		out = append(out, u.of(n).byThemselves...)
	}
	var sent []chart.EventName
	isSent := map[chart.EventName]bool{}
	for _, a := range actions {
		if s, ok := a.(*chart.Send); ok && isShort(s.Delay) && !isSent[s.Event] {
			isSent[s.Event] = true
			sent = append(sent, s.Event)
		}
	}
	seen := map[*chart.Node]bool{}
	for _, n := range reached {
		for ; n != nil && !seen[n] && len(sent) > 0; n = n.Parent {
			seen[n] = true
			looked += len(sent)
			for _, name := range sent {
				out = append(out, u.of(n).on[name]...)
			}
		}
	}
	return out, looked + len(reached) + len(actions) + len(out)
}
