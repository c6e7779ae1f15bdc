package comparison

import (
	"fmt"

	"pgregory.net/rapid"

	"troupe/statemachine/appendixd"
)

// Case is a chart with what happens to its instances, one list of operations each.
type Case struct {
	Chart *appendixd.Chart
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

// Cases draws cases.
func Cases() *rapid.Generator[Case] {
	return rapid.Custom(func(t *rapid.T) Case {
		d := &drawing{t: t}
		c := Case{Chart: d.chart()}
		events := sendable(c.Chart)
		for range rapid.IntRange(1, runsMost).Draw(t, "runs") {
			c.Runs = append(c.Runs, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Operation { return operation(t, events) }), operationsLeast, operationsMost).Draw(t, "operations"))
		}
		return c
	})
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

// drawing draws one chart.
type drawing struct {
	t       *rapid.T
	regions int // of all machines: they share one space of names
	machine *machine
	traces  int
}

// machine is the state machine that is being drawn.
type machine struct {
	root    *appendixd.State
	count   int
	states  []*appendixd.State // without the root: what can be a target
	sources []*appendixd.State // what can have transitions
}

func (d *drawing) below(n int) int         { return rapid.IntRange(0, n-1).Draw(d.t, "below") }
func (d *drawing) percent(chance int) bool { return d.below(100) >= 100-chance }

func pick[T any](d *drawing, from ...T) T { return from[d.below(len(from))] }

// chart draws all machines: first their states, then what leads from one to another.
func (d *drawing) chart() *appendixd.Chart {
	c := &appendixd.Chart{Root: &appendixd.State{Kind: appendixd.Parallel}, Variables: variables}
	var machines []*machine
	for k := range 1 + d.below(2) {
		d.machine = &machine{}
		kind := appendixd.Compound
		if d.percent(20) {
			kind = appendixd.Parallel
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
		for _, s := range append([]*appendixd.State{m.root}, m.states...) {
			d.content(c, s)
		}
	}
	for _, m := range machines {
		d.machine = m
		d.finishTogether()
	}
	c.Unmatched = pick(d, appendixd.Unset, appendixd.Unset, appendixd.Record, appendixd.Reject, appendixd.Ignore)
	d.mend(c, machines)
	d.declarations(c)
	return c
}

// state draws a state with everything below it, but without initial states and transitions.
func (d *drawing) state(id string, kind appendixd.Kind, parent *appendixd.State, depth int) *appendixd.State {
	s := &appendixd.State{ID: id, Kind: kind, Parent: parent}
	switch kind {
	case appendixd.Compound:
		for k := range 2 + d.below(2) {
			child := d.kind(depth)
			if k == 0 && child == appendixd.Final && d.percent(95) {
				child = appendixd.Atomic // otherwise many states are done at once, again and again
			}
			d.child(s, child, depth)
		}
		if parent.Kind == appendixd.Parallel && parent.Parent != nil && d.percent(70) {
			d.child(s, appendixd.Final, depth) // so that all regions can be done
		}
	case appendixd.Parallel:
		for range 2 + d.below(2) {
			region := pick(d, appendixd.Compound, appendixd.Compound, appendixd.Compound, appendixd.Compound, appendixd.Compound, appendixd.Atomic)
			if depth+1 < depthMost && d.percent(10) {
				region = appendixd.Parallel
			}
			if depth+1 >= depthMost+1 {
				region = appendixd.Atomic
			}
			d.child(s, region, depth)
		}
	default:
		return s
	}
	if d.percent(40) {
		d.child(s, pick(d, appendixd.ShallowHistory, appendixd.DeepHistory), depth)
	}
	return s
}

// kind draws what a child of a compound state is.
func (d *drawing) kind(depth int) appendixd.Kind {
	if depth >= depthMost || d.machine.count > statesMost {
		return pick(d, appendixd.Atomic, appendixd.Atomic, appendixd.Final)
	}
	return pick(d, appendixd.Atomic, appendixd.Atomic, appendixd.Final, appendixd.Final, appendixd.Compound, appendixd.Compound, appendixd.Parallel)
}

func (d *drawing) child(parent *appendixd.State, kind appendixd.Kind, depth int) {
	m := d.machine
	m.count++
	id := fmt.Sprintf("s%d", m.count)
	history := kind == appendixd.ShallowHistory || kind == appendixd.DeepHistory
	if parent.Kind == appendixd.Parallel && !history {
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
	if !history && kind != appendixd.Final {
		m.sources = append(m.sources, s)
	}
}

// entries draws initial states and the defaults of history states.
func (d *drawing) entries() {
	for _, s := range append([]*appendixd.State{d.machine.root}, d.machine.states...) {
		for _, h := range s.Histories {
			if d.percent(60) {
				h.Default = []*appendixd.State{pick(d, below(s, false)...)}
			}
		}
		if s.Kind != appendixd.Compound || !d.percent(40) {
			continue
		}
		if several := d.orthogonal(below(s, false)); several != nil && d.percent(50) {
			s.Initial = several
			continue
		}
		to := pick(d, below(s, true)...)
		if isHistory(to) && to.Parent == s && to.Default == nil {
			to = s.Children[0]
		}
		s.Initial = []*appendixd.State{to}
	}
}

func isHistory(s *appendixd.State) bool {
	return s.Kind == appendixd.ShallowHistory || s.Kind == appendixd.DeepHistory
}

// below are all states inside s.
func below(s *appendixd.State, histories bool) []*appendixd.State {
	var all []*appendixd.State
	for _, c := range s.Children {
		all = append(append(all, c), below(c, histories)...)
	}
	if histories {
		all = append(all, s.Histories...)
	}
	return all
}

// orthogonal draws states in different regions of one parallel state among these; nil when there is none.
func (d *drawing) orthogonal(among []*appendixd.State) []*appendixd.State {
	var parallels []*appendixd.State
	for _, s := range among {
		if s.Kind == appendixd.Parallel {
			parallels = append(parallels, s)
		}
	}
	if len(parallels) == 0 {
		return nil
	}
	var out []*appendixd.State
	for k, region := range pick(d, parallels...).Children {
		if k < 2 || d.percent(50) {
			out = append(out, pick(d, append(below(region, true), region)...))
		}
	}
	return out
}
