package appendixd

import (
	"fmt"
	"strings"
)

func (d *drawing) content(c *Chart, s *State) {
	if isHistoryState(s) {
		return
	}
	s.OnEntry, s.OnExit = d.traced("+"+s.ID, 25), d.traced("-"+s.ID, 20)
	if s.Kind == Final {
		if d.percent(30) {
			s.Output = pick(d, number(2), sum("v0", 0), sum("v1", 1), sum("n", 0), sum("v2", 3), missing())
		}
		return
	}
	for range d.below(4) {
		t := &Transition{Source: s, Event: d.pattern()}
		d.fill(t, 45)
		if t.Event == "error.execution" || t.Event == "*" {
			t.Content = t.Content[:1] // what fails there would raise the next error, without end
			if d.percent(40) {
				t.Target, t.Reenter = nil, false
			}
			d.bound(t, 95)
		}
		if strings.HasPrefix(t.Event, "done.") {
			d.bound(t, 90)
		}
		if t.Event == "*" && d.percent(70) {
			t.Cond = eventIs(pick(d, names...))
		}
		s.Transitions = append(s.Transitions, t)
	}
	if s != d.machine.root && s.Kind != Atomic && d.percent(50) {
		t := &Transition{Source: s, Done: true}
		d.fill(t, 20)
		d.bound(t, 90)
		if d.percent(50) {
			s.Transitions = append([]*Transition{t}, s.Transitions...)
		} else {
			s.Transitions = append(s.Transitions, t)
		}
	}
	if s == d.machine.root && d.percent(60) {
		s.Transitions = append(s.Transitions, &Transition{Source: s, Event: "error.execution", Content: []Action{d.transitionLog()}})
	}
	if d.percent(15) {
		s.Transitions = append(s.Transitions, d.always(s))
	}
	for k := range d.below(6) - 3 {
		d.after(s, k)
	}
}

// finishTogether often lets one event lead all regions of a parallel state to their final states.
func (d *drawing) finishTogether() {
	for _, p := range d.machine.states {
		if p.Kind != Parallel || !d.percent(60) {
			continue
		}
		event := pick(d, names...)
		for _, region := range p.Children {
			for _, s := range region.Children {
				if first := region.Children[0]; s.Kind == Final && first.Kind != Final {
					d.lead(first, event, s)
					break
				}
			}
		}
	}
}

// pattern draws a key of "on". Done events have the names of any state.
func (d *drawing) pattern() string {
	switch n := d.below(20); {
	case n < 2:
		return "tick.*"
	case n < 3:
		return "tick.fast.*"
	case n < 4:
		return "*"
	case n < 6:
		return "error.execution"
	case n < 7:
		return "done.state." + pick(d, append([]*State{d.machine.root}, d.machine.sources...)...).ID
	}
	return pick(d, names...)
}

// fill draws everything of a transition but what it matches.
func (d *drawing) fill(t *Transition, guarded int) {
	if d.percent(guarded) {
		t.Cond = d.condition(true)
	}
	t.Target = d.targets()
	t.Reenter = len(t.Target) > 0 && d.percent(25)
	t.Content = append([]Action{d.transitionLog()}, d.some(35)...)
}

func (d *drawing) transitionLog() Action {
	d.traces++
	return logEvent(fmt.Sprintf("t%d", d.traces))
}

func (d *drawing) targets() []*State {
	if d.percent(15) {
		return nil
	}
	if d.percent(15) {
		if several := d.orthogonal(append(d.machine.states, d.machine.root)); several != nil {
			return several
		}
	}
	var histories []*State
	for _, s := range d.machine.states {
		if isHistoryState(s) {
			histories = append(histories, s)
		}
	}
	if len(histories) > 0 && d.percent(25) {
		return []*State{pick(d, histories...)}
	}
	return []*State{pick(d, d.machine.states...)}
}

// bound mostly lets a transition that leads to itself again be taken only a few times: it counts.
func (d *drawing) bound(t *Transition, chance int) {
	if t.Target == nil || !d.percent(chance) {
		return
	}
	below, count := d.counter()
	t.Cond = below
	t.Content = append([]Action{count}, t.Content...)
}

func (d *drawing) counter() (*Condition, Action) {
	c := pick(d, "c0", "c1", "c2")
	return less(c, 2+d.below(8)), assign(c, sum(c, 1))
}

// always draws a transition without an event. Most of them end by themselves, because they count.
func (d *drawing) always(s *State) *Transition {
	below, count := d.counter()
	t := &Transition{Source: s, Target: d.targets(), Cond: below}
	d.traces++
	t.Content = []Action{log(fmt.Sprintf("t%d", d.traces), nil), count}
	if d.percent(20) {
		t.Cond = and(t.Cond, d.condition(false))
	}
	if d.percent(2) {
		t.Cond, t.Content = d.condition(false), t.Content[:1]
	}
	t.Content = append(t.Content, d.some(20)...)
	return t
}

func (d *drawing) after(s *State, number int) {
	a := &After{State: s, Delay: d.delay(number)}
	name := a.Delay.text
	if a.Delay.value != nil {
		name = "computed"
		for _, other := range s.After {
			if other.Delay.value != nil {
				name = "computed2"
			}
		}
	}
	a.Event = "after." + name + "." + s.ID
	s.After = append(s.After, a)
	t := &Transition{Source: s, After: a}
	d.fill(t, 20)
	s.Transitions = append(s.Transitions, t)
}

// constants are delays as they stand in a file. Those of one state differ in their text.
var constants = []Delay{
	{text: "PT1S", milliseconds: 1000}, {text: "2s", milliseconds: 2000}, {text: "1000", milliseconds: 1000}, {text: "PT0S"},
}

// delay draws a delay; those with other numbers have other texts.
func (d *drawing) delay(number int) Delay {
	switch d.below(12) {
	case 0:
		v := pick(d, "v0", "v1", "v2")
		value := sum(v, 1000+number)
		return Delay{text: strings.Trim(value.text, "'"), value: value}
	case 1:
		if d.percent(75) {
			break
		}
		return Delay{text: "${svcPublic.missing" + fmt.Sprint(number) + "}", value: missing()}
	}
	return constants[2*number+d.below(2)]
}

func (d *drawing) condition(event bool) *Condition {
	switch d.below(14) {
	case 0:
		if event {
			return eventIs(pick(d, names...))
		}
	case 1:
		a := d.condition(event)
		return and(a, d.condition(event))
	case 2:
		if d.percent(25) {
			return unknown()
		}
	case 3, 4, 5, 6:
		s := pick(d, append(d.machine.states, d.machine.root)...)
		if isHistoryState(s) {
			break
		}
		not, machine := d.percent(40), ""
		if d.percent(50) && s != d.machine.root {
			machine = d.machine.root.ID
		}
		return in(machine, s.ID, not)
	}
	return less(pick(d, "v0", "v1", "v2", "n"), 1+d.below(4))
}

func (d *drawing) expression() *Expression {
	switch d.below(12) {
	case 0, 1, 2:
		return number(d.below(3))
	case 3:
		if d.percent(50) {
			return eventData()
		}
	case 4:
		if d.percent(15) {
			return missing()
		}
	}
	return sum(pick(d, "v0", "v1", "v2", "n"), d.below(3))
}

func (d *drawing) traced(text string, more int) []Action {
	return append([]Action{log(text, nil)}, d.some(more)...)
}

// some draws a few actions, mostly none, and a line of the log that tells whether they came to their end.
func (d *drawing) some(chance int) []Action {
	if !d.percent(chance) {
		return nil
	}
	var out []Action
	for range 1 + d.below(3) {
		out = append(out, d.action(2))
	}
	d.traces++
	return append(out, log(fmt.Sprintf("end%d", d.traces), sum(pick(d, variables...), 0)))
}

func (d *drawing) data() *Expression {
	if d.percent(60) {
		return nil
	}
	return d.expression()
}

func (d *drawing) action(depth int) Action {
	switch n := d.below(20); {
	case n < 4:
		return d.raise()
	case n < 8:
		event, data, delay, id := pick(d, names...), d.data(), d.delay(0), ""
		if d.percent(50) {
			id = pick(d, "a", "b")
		}
		return send(event, data, delay, id)
	case n < 10:
		return cancel(pick(d, "a", "b"))
	case n < 13 && depth > 0:
		return d.branches(depth - 1)
	}
	variable := pick(d, "v0", "v1", "v2")
	return assign(variable, d.expression())
}

// raise raises an event, and mostly only a few times: otherwise many charts would never come to rest.
func (d *drawing) raise() Action {
	event := pick(d, names...)
	a := raise(event, d.data())
	if d.percent(2) {
		return a
	}
	below, count := d.counter()
	return choice([]Branch{{Cond: below, Then: []Action{count, a}}})
}

func (d *drawing) branches(depth int) Action {
	var all []Branch
	for range 1 + d.below(2) {
		all = append(all, Branch{Cond: d.condition(true), Then: []Action{d.action(depth)}})
	}
	if d.percent(50) {
		all = append(all, Branch{Then: []Action{d.action(depth)}})
	}
	return choice(all)
}
