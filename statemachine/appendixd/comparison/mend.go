package comparison

import (
	"slices"
	"strings"

	"troupe/statemachine/appendixd"
)

// This file makes a chart as statemachine/DEFINITION.md, "Faults of the chart", wants it: most random charts would have
// a state that nothing leads to, or a transition that can never be taken.

func (d *drawing) mend(c *appendixd.Chart, machines []*machine) {
	for _, m := range machines {
		d.machine = m
		d.reach()
		d.leave()
	}
	sendCancelled(c)
	d.takeRaised(c, machines)
	for _, s := range c.States() {
		d.unshadow(s)
	}
}

// reach leads to every state of the machine.
func (d *drawing) reach() {
	m := d.machine
	for {
		seen := map[*appendixd.State]bool{}
		visit(m.root, seen)
		lost := slices.IndexFunc(m.states, func(s *appendixd.State) bool { return !seen[s] })
		if lost < 0 {
			return
		}
		var from []*appendixd.State
		for _, s := range m.sources {
			if seen[s] {
				from = append(from, s)
			}
		}
		source := m.root
		if len(from) > 0 {
			source = pick(d, from...)
		}
		d.lead(source, pick(d, names...), m.states[lost])
	}
}

// visit finds what can become active when s can.
func visit(s *appendixd.State, seen map[*appendixd.State]bool) {
	if s.Parent == nil || seen[s] {
		return
	}
	seen[s] = true
	visit(s.Parent, seen)
	next := append([]*appendixd.State{}, s.Initial...)
	next = append(next, s.Default...)
	if s.Kind == appendixd.Parallel {
		next = append(next, s.Children...)
	}
	if s.Kind == appendixd.Compound && s.Initial == nil {
		next = append(next, s.Children[0])
	}
	for _, t := range s.Transitions {
		next = append(next, t.Target...)
	}
	for _, to := range next {
		visit(to, seen)
	}
}

// lead adds a transition by an event, in front of the others.
func (d *drawing) lead(from *appendixd.State, event string, to ...*appendixd.State) {
	t := &appendixd.Transition{Source: from, Event: event, Target: to, Content: []appendixd.Action{d.transitionLog()}}
	from.Transitions = append([]*appendixd.Transition{t}, from.Transitions...)
}

// leave gives a transition to every atomic state that has none on itself and around it.
func (d *drawing) leave() {
	for _, s := range d.machine.states {
		if s.Kind != appendixd.Atomic {
			continue
		}
		stuck := true
		for p := s; p.Parent != nil; p = p.Parent {
			stuck = stuck && len(p.Transitions) == 0
		}
		if stuck {
			d.lead(s, pick(d, names...), pick(d, d.machine.states...))
		}
	}
}

// actionsOf are all actions of a chart, those in branches too.
func actionsOf(c *appendixd.Chart) []appendixd.Action {
	var all []appendixd.Action
	var add func(list []appendixd.Action)
	add = func(list []appendixd.Action) {
		for _, a := range list {
			all = append(all, a)
			if choice, is := a.(appendixd.If); is {
				for _, b := range choice.Branches {
					add(b.Then)
				}
			}
		}
	}
	for _, s := range c.States() {
		add(s.OnEntry)
		add(s.OnExit)
		for _, t := range s.Transitions {
			add(t.Content)
		}
	}
	return all
}

// sendCancelled has something sent under each id that is cancelled.
func sendCancelled(c *appendixd.Chart) {
	var sent, cancelled []string
	for _, a := range actionsOf(c) {
		switch a := a.(type) {
		case appendixd.Send:
			sent = append(sent, a.ID)
		case appendixd.Cancel:
			cancelled = append(cancelled, a.ID)
		}
	}
	for _, id := range cancelled {
		if !slices.Contains(sent, id) {
			m := c.Root.Children[0]
			m.OnEntry = append(m.OnEntry, appendixd.Send{Event: "ring", Delay: longest, ID: id})
			sent = append(sent, id)
		}
	}
}

// takeRaised has a transition take each event that is raised or sent.
func (d *drawing) takeRaised(c *appendixd.Chart, machines []*machine) {
	raised := map[string]bool{}
	for _, a := range actionsOf(c) {
		switch a := a.(type) {
		case appendixd.Raise:
			raised[a.Event] = true
		case appendixd.Send:
			raised[a.Event] = true
		}
	}
	for _, name := range names {
		if !raised[name] || slices.Contains(sendable(c), name) {
			continue
		}
		d.machine = pick(d, machines...)
		d.lead(pick(d, append(d.machine.sources, d.machine.root)...), name, pick(d, d.machine.states...))
	}
}

// sendable are the events that some transition takes.
func sendable(c *appendixd.Chart) []string {
	var out []string
	for _, name := range names {
		if slices.ContainsFunc(c.States(), func(s *appendixd.State) bool {
			return slices.ContainsFunc(s.Transitions, func(t *appendixd.Transition) bool { return t.Event != "" && covers(t.Event, name) })
		}) {
			out = append(out, name)
		}
	}
	return out
}

// covers reports whether a pattern matches every event that another pattern, or name, matches.
func covers(pattern, other string) bool {
	prefix, below := strings.CutSuffix(pattern, ".*")
	other = strings.TrimSuffix(other, ".*")
	return pattern == "*" || pattern == other || below && (other == prefix || strings.HasPrefix(other, prefix+"."))
}

// unshadow gives a guard to each transition behind which another one could never be taken.
func (d *drawing) unshadow(s *appendixd.State) {
	s.Transitions = grouped(s.Transitions)
	for k, t := range s.Transitions {
		if t.Cond != nil {
			continue
		}
		for _, later := range s.Transitions[k+1:] {
			if shadows(s, t, later) {
				t.Cond = appendixd.Less{Variable: pick(d, "v0", "v1", "v2", "n"), Value: 1 + d.below(3)}
				break
			}
		}
	}
}

func shadows(s *appendixd.State, t, later *appendixd.Transition) bool {
	switch {
	case t.Done && later.Done:
		return true
	case t.Done, t.After != nil, later.After != nil, t.Event == "":
		return false
	case later.Done:
		return covers(t.Event, "done.state."+s.ID)
	}
	return later.Event != "" && covers(t.Event, later.Event) && (later.Event != "*" || t.Event == "*")
}

// grouped puts the transitions in an order that a file can have: those of one key of "on" stand together, and "onDone"
// before or behind all of "on".
func grouped(transitions []*appendixd.Transition) []*appendixd.Transition {
	var on, done, others []*appendixd.Transition
	doneFirst := false
	for k, t := range transitions {
		switch {
		case t.Done:
			doneFirst = doneFirst || len(on) == 0
			done = append(done, t)
		case t.Event == "":
			others = append(others, t)
		case !slices.ContainsFunc(transitions[:k], func(earlier *appendixd.Transition) bool { return earlier.Event == t.Event }):
			for _, other := range transitions[k:] {
				if other.Event == t.Event {
					on = append(on, other)
				}
			}
		}
	}
	if doneFirst {
		return slices.Concat(done, on, others)
	}
	return slices.Concat(on, done, others)
}

// declarations draws what the chart says of some events.
func (d *drawing) declarations(c *appendixd.Chart) {
	for _, name := range sendable(c) {
		if !slices.ContainsFunc(c.States(), func(s *appendixd.State) bool {
			return slices.ContainsFunc(s.Transitions, func(t *appendixd.Transition) bool { return t.Event == name })
		}) || !d.percent(40) {
			continue // a name that only a pattern takes would look like a slip
		}
		c.Events = append(c.Events, appendixd.Declaration{
			Event:     name,
			Unmatched: pick(d, appendixd.Unset, appendixd.Record, appendixd.Reject, appendixd.Ignore),
			Apply:     pick(d, appendixd.ApplyUnset, appendixd.ApplyMerge, appendixd.ApplyNone),
		})
	}
}
