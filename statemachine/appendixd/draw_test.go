package appendixd

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// Case is a chart with what happens to its instances, one list of operations each.
type Case struct {
	Chart *Chart
	Runs  [][]Operation
}

// Operation is an event from a caller, or a pause in which timers come.
type Operation struct {
	Event string // "": a pause
	Data  *int
	Pause int // milliseconds
}

// Sizes of a case.
const (
	runsMost        = 3
	operationsLeast = 25
	operationsMost  = 90
	depthMost       = 3
	statesMost      = 12 // of a machine, roughly
)

// names are the events of a chart. ring and bell come from no pattern's prefix.
var names = []string{"go", "halt", "tick", "tick.fast", "tick.fast.now", "ring"}

// variables are those of a chart. n is what event.data sets. The c are counters that only grow, so that what they guard
// comes to an end.
var variables = []string{"v0", "v1", "v2", "n", "c0", "c1", "c2"}

func drawCase(t *rapid.T) Case {
	c := Case{Chart: (&drawing{t: t}).chart()}
	events := sendable(c.Chart)
	for range rapid.IntRange(1, runsMost).Draw(t, "runs") {
		c.Runs = append(c.Runs, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Operation { return operation(t, events) }), operationsLeast, operationsMost).Draw(t, "operations"))
	}
	return c
}

func operation(t *rapid.T, events []string) Operation {
	if len(events) == 0 || rapid.IntRange(0, 3).Draw(t, "pause") == 0 {
		return Operation{Pause: rapid.SampledFrom([]int{0, 500, 1000, 3000, 10_000}).Draw(t, "milliseconds")}
	}
	o := Operation{Event: rapid.SampledFrom(events).Draw(t, "event")}
	if rapid.Bool().Draw(t, "data") {
		n := rapid.IntRange(0, 4).Draw(t, "n")
		o.Data = &n
	}
	return o
}

type drawing struct {
	t       *rapid.T
	regions int // of all machines: they share one space of names
	machine *machine
	traces  int
}

type machine struct {
	root    *State
	count   int
	states  []*State // without the root: what can be a target
	sources []*State // what can have transitions
}

func (d *drawing) below(n int) int         { return rapid.IntRange(0, n-1).Draw(d.t, "below") }
func (d *drawing) percent(chance int) bool { return d.below(100) >= 100-chance }

func pick[T any](d *drawing, from ...T) T { return from[d.below(len(from))] }

// chart draws all machines: first their states, then what leads from one to another.
func (d *drawing) chart() *Chart {
	c := &Chart{Root: &State{Kind: Parallel}, Variables: variables}
	var machines []*machine
	for k := range 1 + d.below(2) {
		d.machine = &machine{}
		kind := Compound
		if d.percent(20) {
			kind = Parallel
		}
		d.machine.root = d.state(fmt.Sprintf("m%d", k), kind, c.Root, 0)
		c.Root.Children = append(c.Root.Children, d.machine.root)
		machines = append(machines, d.machine)
	}
	c.Number()
	for _, m := range machines {
		d.machine = m
		d.entries()
	}
	for _, m := range machines {
		d.machine = m
		for _, s := range append([]*State{m.root}, m.states...) {
			d.content(c, s)
		}
	}
	for _, m := range machines {
		d.machine = m
		d.finishTogether()
	}
	c.Unmatched = pick(d, "", "", "record", "reject", "ignore")
	for _, s := range c.States() {
		s.Transitions = grouped(s.Transitions)
	}
	d.declarations(c)
	return c
}

// state draws a state with everything below it, but without initial states and transitions.
func (d *drawing) state(id string, kind Kind, parent *State, depth int) *State {
	s := &State{ID: id, Kind: kind, Parent: parent}
	switch kind {
	case Compound:
		for k := range 2 + d.below(2) {
			child := d.kind(depth)
			if k == 0 && child == Final && d.percent(95) {
				child = Atomic // otherwise many states are done at once, again and again
			}
			d.child(s, child, depth)
		}
		if parent.Kind == Parallel && parent.Parent != nil && d.percent(70) {
			d.child(s, Final, depth) // so that all regions can be done
		}
	case Parallel:
		for range 2 + d.below(2) {
			region := pick(d, Compound, Compound, Compound, Compound, Compound, Atomic)
			if depth+1 < depthMost && d.percent(10) {
				region = Parallel
			}
			if depth+1 >= depthMost+1 {
				region = Atomic
			}
			d.child(s, region, depth)
		}
	default:
		return s
	}
	if d.percent(40) {
		d.child(s, pick(d, ShallowHistory, DeepHistory), depth)
	}
	return s
}

func (d *drawing) kind(depth int) Kind {
	if depth >= depthMost || d.machine.count > statesMost {
		return pick(d, Atomic, Atomic, Final)
	}
	return pick(d, Atomic, Atomic, Final, Final, Compound, Compound, Parallel)
}

func (d *drawing) child(parent *State, kind Kind, depth int) {
	m := d.machine
	m.count++
	id := fmt.Sprintf("s%d", m.count)
	history := kind == ShallowHistory || kind == DeepHistory
	if parent.Kind == Parallel && !history {
		d.regions++
		id = fmt.Sprintf("r%d", d.regions)
	}
	s := d.state(id, kind, parent, depth+1)
	if history {
		parent.Histories = append(parent.Histories, s)
	} else {
		parent.Children = append(parent.Children, s)
	}
	m.states = append(m.states, s)
	if !history && kind != Final {
		m.sources = append(m.sources, s)
	}
}

func (d *drawing) entries() {
	for _, s := range append([]*State{d.machine.root}, d.machine.states...) {
		for _, h := range s.Histories {
			if d.percent(60) {
				h.Default = []*State{pick(d, below(s, false)...)}
			}
		}
		if s.Kind != Compound || !d.percent(40) {
			continue
		}
		if several := d.orthogonal(below(s, false)); several != nil && d.percent(50) {
			s.Initial = several
			continue
		}
		to := pick(d, below(s, true)...)
		if isHistoryState(to) && to.Parent == s && to.Default == nil {
			to = s.Children[0]
		}
		s.Initial = []*State{to}
	}
}

func below(s *State, histories bool) []*State {
	var all []*State
	for _, c := range s.Children {
		all = append(append(all, c), below(c, histories)...)
	}
	if histories {
		all = append(all, s.Histories...)
	}
	return all
}

// orthogonal draws states in different regions of one parallel state among these; nil when there is none.
func (d *drawing) orthogonal(among []*State) []*State {
	var parallels []*State
	for _, s := range among {
		if s.Kind == Parallel {
			parallels = append(parallels, s)
		}
	}
	if len(parallels) == 0 {
		return nil
	}
	var out []*State
	for k, region := range pick(d, parallels...).Children {
		if k < 2 || d.percent(50) {
			out = append(out, pick(d, append(below(region, true), region)...))
		}
	}
	return out
}

func (d *drawing) lead(from *State, event string, to ...*State) {
	t := &Transition{Source: from, Event: event, Target: to, Content: []Action{d.transitionLog()}}
	from.Transitions = append([]*Transition{t}, from.Transitions...)
}

func sendable(c *Chart) []string {
	var out []string
	for _, name := range names {
		if slices.ContainsFunc(c.States(), func(s *State) bool {
			return slices.ContainsFunc(s.Transitions, func(t *Transition) bool { return t.Event != "" && covers(t.Event, name) })
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

// grouped puts the transitions in an order that a file can have: those of one key of "on" stand together, and "onDone"
// before or behind all of "on".
func grouped(transitions []*Transition) []*Transition {
	var on, done, others []*Transition
	doneFirst := false
	for k, t := range transitions {
		switch {
		case t.Done:
			doneFirst = doneFirst || len(on) == 0
			done = append(done, t)
		case t.Event == "":
			others = append(others, t)
		case !slices.ContainsFunc(transitions[:k], func(earlier *Transition) bool { return earlier.Event == t.Event }):
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

func (d *drawing) declarations(c *Chart) {
	for _, name := range sendable(c) {
		if !slices.ContainsFunc(c.States(), func(s *State) bool {
			return slices.ContainsFunc(s.Transitions, func(t *Transition) bool { return t.Event == name })
		}) || !d.percent(40) {
			continue // a name that only a pattern takes would look like a slip
		}
		c.Events = append(c.Events, Declaration{
			Event:     name,
			Unmatched: pick(d, "", "record", "reject", "ignore"),
			Apply:     pick(d, "", "merge", "none"),
		})
	}
}
