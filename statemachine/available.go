package statemachine

import (
	"maps"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// GuardResult is what is known of a guard before the event comes.
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
	// Transitions are those that the event may take, in the order in which they
	// are tried. Behind one whose guard is true no other of its machine is tried.
	// None: the event is applied where the instance stands (unmatched: apply).
	Transitions []AvailableTransition
	// Schema is the JSON Schema of the event's data as the definition has it;
	// absent when it has none.
	Schema data.Value
}

// AvailableTransition is one way that an event may go.
type AvailableTransition struct {
	From Position // the node that has the transition, in its machine
	// Targets are the nodes that it leads to; none means that it stays.
	Targets []NodeID
	Guard   GuardResult
}

// Available lists the events for which the instance has a transition now that
// the caller may take, in document order (statemachine/DEFINITION.md,
// "Available events"). Step would select from these. allow counts as far as it can be
// decided without the event, and a pattern stands for every name of the definition
// that it matches. Events with unmatched: apply come last, by name. It does not ask
// whether the caller may send to the instance at all; MaySend does.
func (d *Definition) Available(in *Instance, c *Caller, now time.Time) []Available {
	if in.ended {
		return nil
	}
	m := d.newMove(in, in.at.active, c, in.timeOf(now))
	defer m.release()
	m.setEvent(expr.Event{Data: emptyObject})
	var out []Available
	done := d.isDoneWith(m.active)
	for i := m.active.next(1); i >= 0 && !done; i = m.active.next(i + 1) {
		if leaf := d.nodes[i]; leaf.isLeaf() {
			out = m.availableFrom(leaf, out)
		}
	}
	out = m.withAllow(m.availableAnywhere(out))
	for i := range out {
		for _, t := range out[i].Transitions {
			out[i].Guard = max(out[i].Guard, t.Guard)
		}
		if rule := d.events[out[i].Name]; rule != nil && rule.schema != nil {
			out[i].Schema = rule.schema.Text()
		}
	}
	return out
}

// availableFrom adds what one active leaf and its ancestors take.
func (m *move) availableFrom(leaf *node, out []Available) []Available {
	var settled []EventName // a transition of this leaf takes them for certain
	for n := leaf; n.parent != nil; n = n.parent {
		for _, tr := range n.on {
			if tr.onDone != nil || tr.after != nil || tr.told != nil {
				continue
			}
			if m.isHeld(tr) {
				continue
			}
			guard := m.foresee(tr)
			switch m.foreseen(tr.allow) {
			case Denied:
				continue
			case ByInstance:
				guard = min(guard, GuardUnknown)
			}
			for _, name := range m.d.namesOf(append([]eventPattern{tr.event}, tr.more...)...) {
				if slices.Contains(settled, name) {
					continue
				}
				if guard == GuardTrue {
					settled = append(settled, name)
				}
				out = offer(out, name, tr, guard)
			}
		}
	}
	return out
}

// availableAnywhere adds the events that are applied although nothing takes them.
func (m *move) availableAnywhere(out []Available) []Available {
	if !m.d.applies {
		return out
	}
	for _, name := range m.d.EventNames() {
		if m.d.unmatchedRule(name) != unmatchedApply || slices.ContainsFunc(out, func(a Available) bool { return a.Name == name }) {
			continue
		}
		switch m.rightTo(&trigger{name: name, external: true}, m.foreseen) {
		case Granted:
			out = append(out, Available{Name: name, Guard: GuardTrue})
		case ByInstance:
			out = append(out, Available{Name: name, Guard: GuardUnknown})
		}
	}
	return out
}

// withAllow leaves out the events whose own allow refuses the caller, in every
// state. Where it looks at the event, no guard is certain.
func (m *move) withAllow(out []Available) []Available {
	kept := out[:0]
	for _, a := range out {
		if declared := m.d.events[a.Name]; declared != nil {
			switch m.foreseen(declared.allow) {
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
func (m *move) foresee(tr *transition) GuardResult {
	switch {
	case tr.guard == nil:
		return GuardTrue
	case tr.guard.Reads("event") || tr.guard.Reads(signalVariable):
		return GuardUnknown
	}
	if ok, err := tr.guard.Bool(&m.scope); err != nil || !ok {
		return GuardFalse
	}
	return GuardTrue
}

// readsEvent reports whether the condition of a rule has to wait for the event.
func (r *rule) readsEvent() bool { return r.when != nil && r.when.Reads("event") }

// namesOf lists the names that callers can send for a pattern.
func (d *Definition) namesOf(patterns ...eventPattern) (names []EventName) {
	for _, p := range patterns {
		for _, name := range d.namesOfOne(p) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (d *Definition) namesOfOne(p eventPattern) []EventName {
	if !p.any && !p.prefix {
		if IsReserved(p.name) || d.owned[p.name] {
			return nil
		}
		return []EventName{p.name}
	}
	var names []EventName
	for _, name := range slices.Sorted(maps.Keys(d.declared.exact)) {
		if p.matches(name) && !IsReserved(name) && !d.owned[name] {
			names = append(names, name)
		}
	}
	return names
}

// EventNames lists the names that callers can send and that the definition spells
// out, in alphabetical order. Declares may know more: those that only a pattern
// like "payment.*" matches.
func (d *Definition) EventNames() []EventName { return d.namesOf(eventPattern{any: true}) }

// offer adds one transition to its event. An ancestor of two leaves is met
// twice, and listed once.
func offer(out []Available, name EventName, tr *transition, guard GuardResult) []Available {
	t := AvailableTransition{From: Position{MachineID(tr.source.machine.id), tr.source.id}, Guard: guard}
	for _, target := range tr.targets {
		t.Targets = append(t.Targets, target.id)
	}
	i := slices.IndexFunc(out, func(a Available) bool { return a.Name == name })
	if i < 0 {
		return append(out, Available{Name: name, Transitions: []AvailableTransition{t}})
	}
	if !slices.ContainsFunc(out[i].Transitions, func(u AvailableTransition) bool {
		return u.From == t.From && u.Guard == t.Guard && slices.Equal(u.Targets, t.Targets)
	}) {
		out[i].Transitions = append(out[i].Transitions, t)
	}
	return out
}
