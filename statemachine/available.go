package statemachine

import (
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
)

// GuardResult is what is known of a guard before the event arrives.
type GuardResult uint8

const (
	// GuardFalse: the guard does not let the event through now.
	GuardFalse GuardResult = iota
	// GuardUnknown: the guard looks at the event.
	GuardUnknown
	// GuardTrue: the guard lets the event through, or there is none.
	GuardTrue
)

// String returns the word of the interface.
func (g GuardResult) String() string { return [...]string{"false", "unknown", "true"}[g] }

// Available is one event that a caller has the right to send now.
type Available struct {
	Name EventName
	// Guard is the best result among Transitions.
	Guard GuardResult
	// Transitions are those that the event may take, in the order in which they are tried. Behind one whose guard is true no other of its
	// machine is tried. None: the event is applied where the instance stands (unmatched: apply).
	Transitions []AvailableTransition
	// Schema is the JSON Schema of the event's data as the definition has it; absent when it has none.
	Schema data.Value
}

// AvailableTransition is one way that an event may go.
type AvailableTransition struct {
	From Position // the node that has the transition, in its machine
	// Targets are the nodes that it leads to; none means that it stays.
	Targets []NodeID
	Guard   GuardResult
}

// Available lists the events for which the instance has a transition now that the caller may take, in document order
// (statemachine/DEFINITION.md, "Available events"). Step would select from these. allow counts as far as it can be decided without the
// event, and a pattern stands for every name of the definition that it matches. Events with unmatched: apply come last, by name. It does
// not ask whether the caller may send to the instance at all; MaySend does.
func (v View) Available(c *Caller, now time.Time) []Available {
	d, in := v.Of, v.Instance
	if in.State.Ended {
		return nil
	}
	m := d.newMacrostep(in, in.State.At.Active, c, in.NextTime(now))
	defer m.release()
	if v.Budget != nil {
		m.budget = *v.Budget
		defer func() { *v.Budget = m.budget }() // NB: before the macrostep is released
	}
	m.setEvent(expr.Event{Data: chart.EmptyObject})
	o := &offers{at: map[EventName]int{}, ways: map[*chart.Transition]way{}}
	done := d.IsDoneWith(m.Active)
	for i := m.Active.Next(1); i >= 0 && !done; i = m.Active.Next(i + 1) {
		if leaf := d.Nodes[i]; leaf.IsLeaf() {
			m.availableFrom(leaf, o)
		}
	}
	m.availableAnywhere(o)
	out := m.withAllow(o.out)
	for i := range out {
		for _, t := range out[i].Transitions {
			out[i].Guard = max(out[i].Guard, t.Guard)
		}
		if rule := d.Events[out[i].Name]; rule != nil && rule.Schema != nil {
			out[i].Schema = rule.Schema.Text()
		}
	}
	return out
}

type offers struct {
	out []Available
	at  map[EventName]int // the place in out
	// ways has what is known of each transition, which the leaves below its node share.
	ways map[*chart.Transition]way
}

type way struct {
	names []EventName // none: nothing that the caller can send
	guard GuardResult
}

// availableFrom adds what one active leaf and its ancestors take. It ends early when the budget is spent.
func (m *macrostep) availableFrom(leaf *chart.Node, o *offers) {
	settled := map[EventName]bool{} // a transition of this leaf takes them for certain
	for n := leaf; n.Parent != nil; n = n.Parent {
		for _, tr := range n.On {
			w, ok := o.ways[tr]
			if !ok {
				w = m.wayOf(tr)
				o.ways[tr] = w
			}
			if m.budget.Charge(2 + 2*uint64(len(w.names))); m.budget.Exhausted() {
				return
			}
			for _, name := range w.names {
				if settled[name] {
					continue
				}
				if w.guard == GuardTrue {
					settled[name] = true
				}
				m.offer(o, name, tr, w.guard)
			}
		}
	}
}

func (m *macrostep) wayOf(tr *chart.Transition) way {
	if tr.OnDone != nil || tr.After != nil || tr.Child != nil || m.isHeld(tr) {
		return way{}
	}
	guard := m.foresee(tr)
	switch m.foreseen(tr.Allow) {
	case Denied:
		return way{}
	case ByInstance:
		guard = min(guard, GuardUnknown)
	}
	return way{m.d.NamesOf(append([]chart.EventPattern{tr.Event}, tr.More...)...), guard}
}

// availableAnywhere adds the events that are applied although nothing takes them. It ends early when the budget is spent.
func (m *macrostep) availableAnywhere(o *offers) {
	if !m.d.Applies {
		return
	}
	for _, name := range m.d.CallableNames {
		if _, ok := o.at[name]; ok || m.d.UnmatchedRule(name) != chart.UnmatchedApply {
			continue
		}
		right := m.rightTo(&trigger{name: name, external: true}, m.foreseen)
		if m.budget.Exhausted() {
			return
		}
		switch right {
		case Granted:
			o.out = append(o.out, Available{Name: name, Guard: GuardTrue})
		case ByInstance:
			o.out = append(o.out, Available{Name: name, Guard: GuardUnknown})
		}
	}
}

// withAllow leaves out the events whose own allow refuses the caller, in every state. Where it looks at the event, no guard is certain.
func (m *macrostep) withAllow(out []Available) []Available {
	kept := out[:0]
	for _, a := range out {
		if declared := m.d.Events[a.Name]; declared != nil {
			switch m.foreseen(declared.Allow) {
			case Denied:
				continue
			case ByInstance:
				a.Guard = min(a.Guard, GuardUnknown)
				for i := range a.Transitions {
					a.Transitions[i].Guard = min(a.Transitions[i].Guard, GuardUnknown)
				}
			}
		}
		kept = append(kept, a)
	}
	return kept
}

// foresee is guard without the event.
func (m *macrostep) foresee(tr *chart.Transition) GuardResult {
	switch {
	case tr.Guard == nil:
		return GuardTrue
	case tr.Guard.Reads("event") || tr.Guard.Reads(chart.SignalVariable):
		return GuardUnknown
	}
	if ok, err := tr.Guard.Bool(&m.scope); err != nil || !ok {
		return GuardFalse
	}
	return GuardTrue
}

// offer adds one transition to its event. An ancestor of two leaves is met twice, and listed once.
func (m *macrostep) offer(o *offers, name EventName, tr *chart.Transition, guard GuardResult) {
	t := AvailableTransition{From: Position{Machine: MachineID(tr.Source.Machine.ID), Node: tr.Source.ID}, Guard: guard}
	for _, target := range tr.Targets {
		t.Targets = append(t.Targets, target.ID)
	}
	i, ok := o.at[name]
	if !ok {
		o.at[name] = len(o.out)
		o.out = append(o.out, Available{Name: name, Transitions: []AvailableTransition{t}})
		return
	}
	m.Look(len(o.out[i].Transitions))
	if !slices.ContainsFunc(o.out[i].Transitions, func(u AvailableTransition) bool {
		return u.From == t.From && u.Guard == t.Guard && slices.Equal(u.Targets, t.Targets)
	}) {
		o.out[i].Transitions = append(o.out[i].Transitions, t)
	}
}

// TaskEvents lists those of the available events that a transition of the task's own node takes.
func TaskEvents(t *Task, available []Available) (out []Available) {
	for _, a := range available {
		if slices.ContainsFunc(a.Transitions, func(tr AvailableTransition) bool { return tr.From == t.At }) {
			out = append(out, a)
		}
	}
	return out
}
