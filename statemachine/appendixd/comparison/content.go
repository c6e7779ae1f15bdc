package comparison

import (
	"fmt"
	"strings"

	"troupe/statemachine/appendixd"
)

// content draws what a state does and where it leads.
func (d *drawing) content(c *appendixd.Chart, s *appendixd.State) {
	if isHistory(s) {
		return
	}
	s.OnEntry, s.OnExit = d.traced("+"+s.ID, 25), d.traced("-"+s.ID, 20)
	if s.Kind == appendixd.Final {
		if d.percent(30) {
			s.Output = pick[appendixd.Expression](d, appendixd.Number{Value: 2}, appendixd.Sum{Variable: "v0"}, appendixd.Sum{Variable: "v1", Value: 1}, appendixd.Sum{Variable: "n"}, appendixd.Sum{Variable: "v2", Value: 3}, appendixd.Missing{})
		}
		return
	}
	for range d.below(4) {
		t := &appendixd.Transition{Source: s, Event: d.pattern()}
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
			t.Cond = appendixd.EventIs{Event: pick(d, names...)}
		}
		s.Transitions = append(s.Transitions, t)
	}
	if s != d.machine.root && s.Kind != appendixd.Atomic && d.percent(50) {
		t := &appendixd.Transition{Source: s, Done: true}
		d.fill(t, 20)
		d.bound(t, 90)
		if d.percent(50) {
			s.Transitions = append([]*appendixd.Transition{t}, s.Transitions...)
		} else {
			s.Transitions = append(s.Transitions, t)
		}
	}
	if s == d.machine.root && d.percent(60) {
		s.Transitions = append(s.Transitions, &appendixd.Transition{Source: s, Event: "error.execution", Content: []appendixd.Action{d.transitionLog()}})
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
		if p.Kind != appendixd.Parallel || !d.percent(60) {
			continue
		}
		event := pick(d, names...)
		for _, region := range p.Children {
			for _, s := range region.Children {
				if first := region.Children[0]; s.Kind == appendixd.Final && first.Kind != appendixd.Final {
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
		return "done.state." + pick(d, append([]*appendixd.State{d.machine.root}, d.machine.sources...)...).ID
	}
	return pick(d, names...)
}

// fill draws everything of a transition but what it matches.
func (d *drawing) fill(t *appendixd.Transition, guarded int) {
	if d.percent(guarded) {
		t.Cond = d.condition(true)
	}
	t.Target = d.targets()
	t.Reenter = len(t.Target) > 0 && d.percent(25)
	t.Content = append([]appendixd.Action{d.transitionLog()}, d.some(35)...)
}

func (d *drawing) transitionLog() appendixd.Action {
	d.traces++
	return appendixd.Log{Text: fmt.Sprintf("t%d", d.traces), Event: true}
}

func (d *drawing) targets() []*appendixd.State {
	if d.percent(15) {
		return nil
	}
	if d.percent(15) {
		if several := d.orthogonal(append(d.machine.states, d.machine.root)); several != nil {
			return several
		}
	}
	var histories []*appendixd.State
	for _, s := range d.machine.states {
		if isHistory(s) {
			histories = append(histories, s)
		}
	}
	if len(histories) > 0 && d.percent(25) {
		return []*appendixd.State{pick(d, histories...)}
	}
	return []*appendixd.State{pick(d, d.machine.states...)}
}

// bound mostly lets a transition that leads to itself again be taken only a few times: it counts.
func (d *drawing) bound(t *appendixd.Transition, chance int) {
	if t.Target == nil || !d.percent(chance) {
		return
	}
	below, count := d.counter()
	t.Cond = below
	t.Content = append([]appendixd.Action{count}, t.Content...)
}

// counter draws a guard and the action that makes it false in the end.
func (d *drawing) counter() (appendixd.Condition, appendixd.Action) {
	c := pick(d, "c0", "c1", "c2")
	return appendixd.Less{Variable: c, Value: 2 + d.below(8)}, appendixd.Assign{Variable: c, Value: appendixd.Sum{Variable: c, Value: 1}}
}

// always draws a transition without an event. Most of them end by themselves, because they count.
func (d *drawing) always(s *appendixd.State) *appendixd.Transition {
	below, count := d.counter()
	t := &appendixd.Transition{Source: s, Target: d.targets(), Cond: below}
	d.traces++
	t.Content = []appendixd.Action{appendixd.Log{Text: fmt.Sprintf("t%d", d.traces)}, count}
	if d.percent(20) {
		t.Cond = appendixd.Both{A: t.Cond, B: d.condition(false)}
	}
	if d.percent(2) {
		t.Cond, t.Content = d.condition(false), t.Content[:1]
	}
	t.Content = append(t.Content, d.some(20)...)
	return t
}

func (d *drawing) after(s *appendixd.State, number int) {
	a := &appendixd.After{State: s, Delay: d.delay(number)}
	name := a.Delay.Text
	if a.Delay.Value != nil {
		name = "computed"
		for _, other := range s.After {
			if other.Delay.Value != nil {
				name = "computed2"
			}
		}
	}
	a.Event = "after." + name + "." + s.ID
	s.After = append(s.After, a)
	t := &appendixd.Transition{Source: s, After: a}
	d.fill(t, 20)
	s.Transitions = append(s.Transitions, t)
}

// constants are delays as they stand in a file. Those of one state differ in their text.
var constants = []appendixd.Delay{
	{Text: "PT1S", Milliseconds: 1000}, {Text: "2s", Milliseconds: 2000}, {Text: "1000", Milliseconds: 1000}, {Text: "PT0S"},
}

var longest = appendixd.Delay{Text: "PT4S", Milliseconds: 4000}

// delay draws a delay; those with other numbers have other texts.
func (d *drawing) delay(number int) appendixd.Delay {
	switch d.below(12) {
	case 0:
		v := pick(d, "v0", "v1", "v2")
		return appendixd.Delay{Text: "${svcPublic." + v + " + " + fmt.Sprint(1000+number) + "}", Value: appendixd.Sum{Variable: v, Value: 1000 + number}}
	case 1:
		if d.percent(75) {
			break
		}
		return appendixd.Delay{Text: "${svcPublic.missing" + fmt.Sprint(number) + "}", Value: appendixd.Missing{}}
	}
	return constants[2*number+d.below(2)]
}

func (d *drawing) condition(event bool) appendixd.Condition {
	switch d.below(14) {
	case 0:
		if event {
			return appendixd.EventIs{Event: pick(d, names...)}
		}
	case 1:
		return appendixd.Both{A: d.condition(event), B: d.condition(event)}
	case 2:
		if d.percent(25) {
			return appendixd.Unknown{}
		}
	case 3, 4, 5, 6:
		s := pick(d, append(d.machine.states, d.machine.root)...)
		if isHistory(s) {
			break
		}
		in := appendixd.In{State: s.ID, Not: d.percent(40)}
		if d.percent(50) && s != d.machine.root {
			in.Machine = d.machine.root.ID
		}
		return in
	}
	return appendixd.Less{Variable: pick(d, "v0", "v1", "v2", "n"), Value: 1 + d.below(4)}
}

func (d *drawing) expression() appendixd.Expression {
	switch d.below(12) {
	case 0, 1, 2:
		return appendixd.Number{Value: d.below(3)}
	case 3:
		if d.percent(50) {
			return appendixd.Brought{}
		}
	case 4:
		if d.percent(15) {
			return appendixd.Missing{}
		}
	}
	return appendixd.Sum{Variable: pick(d, "v0", "v1", "v2", "n"), Value: d.below(3)}
}

// traced are actions that begin with a line of the log.
func (d *drawing) traced(text string, more int) []appendixd.Action {
	return append([]appendixd.Action{appendixd.Log{Text: text}}, d.some(more)...)
}

// some draws a few actions, mostly none, and a line of the log that tells whether they came to their end.
func (d *drawing) some(chance int) []appendixd.Action {
	if !d.percent(chance) {
		return nil
	}
	var out []appendixd.Action
	for range 1 + d.below(3) {
		out = append(out, d.action(2))
	}
	d.traces++
	return append(out, appendixd.Log{Text: fmt.Sprintf("end%d", d.traces), Value: appendixd.Sum{Variable: pick(d, variables...)}})
}

func (d *drawing) data() appendixd.Expression {
	if d.percent(60) {
		return nil
	}
	return d.expression()
}

func (d *drawing) action(depth int) appendixd.Action {
	switch n := d.below(20); {
	case n < 4:
		return d.raise()
	case n < 8:
		a := appendixd.Send{Event: pick(d, names...), Data: d.data(), Delay: d.delay(0)}
		if d.percent(50) {
			a.ID = pick(d, "a", "b")
		}
		return a
	case n < 10:
		return appendixd.Cancel{ID: pick(d, "a", "b")}
	case n < 13 && depth > 0:
		return d.branches(depth - 1)
	}
	return appendixd.Assign{Variable: pick(d, "v0", "v1", "v2"), Value: d.expression()}
}

// raise raises an event, and mostly only a few times: otherwise many charts would never come to rest.
func (d *drawing) raise() appendixd.Action {
	a := appendixd.Raise{Event: pick(d, names...), Data: d.data()}
	if d.percent(2) {
		return a
	}
	below, count := d.counter()
	return appendixd.If{Branches: []appendixd.Branch{{Cond: below, Then: []appendixd.Action{count, a}}}}
}

func (d *drawing) branches(depth int) appendixd.Action {
	var a appendixd.If
	for range 1 + d.below(2) {
		a.Branches = append(a.Branches, appendixd.Branch{Cond: d.condition(true), Then: []appendixd.Action{d.action(depth)}})
	}
	if d.percent(50) {
		a.Branches = append(a.Branches, appendixd.Branch{Then: []appendixd.Action{d.action(depth)}})
	}
	return a
}
