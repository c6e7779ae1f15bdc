package appendixd

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// Case is a definition with what happens to its instances, one list of operations each.
type Case struct {
	Definition string
	Mistake    string // see Chart
	Runs       [][]Operation
}

// Operation is an event from a caller, or a pause in which timers come.
type Operation struct {
	Event string // "": a pause
	Data  *int
	Pause int // milliseconds
}

// Sizes of a case.
const (
	runsMost        = 4
	operationsLeast = 25
	operationsMost  = 90
	depthMost       = 3
	statesMost      = 12 // of a machine, roughly
)

// names are the events of a chart.
var names = grammar["event"]

// variables are those of a chart. n is what event.data sets. The c are counters that only grow, so that what they guard
// comes to an end.
var variables = []string{"v0", "v1", "v2", "n", "c0", "c1", "c2"}

func drawCase(t *rapid.T) Case {
	d := &drawing{t: t}
	c := Case{Definition: d.definition()}
	events := d.sendable()
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

// drawing draws the states of all machines first, and then writes them with what leads from one to another.
type drawing struct {
	t        *rapid.T
	rights   bool // transitions say who may take them
	b        strings.Builder
	regions  int // of all machines: they share one space of names
	machine  *machine
	self     *State // that is written
	traces   int
	counter  string
	patterns []string // the keys of all "on"
}

type machine struct {
	root    *State
	count   int
	states  []*State          // without the root: what can be a target
	sources []*State          // what can have transitions
	led     map[*State]string // what leads a region to its end
}

func (d *drawing) below(n int) int         { return rapid.IntRange(0, n-1).Draw(d.t, "below") }
func (d *drawing) percent(chance int) bool { return d.below(100) >= 100-chance }

func pick[T any](d *drawing, from ...T) T { return from[d.below(len(from))] }

func (d *drawing) definition() string {
	root := &State{Kind: Parallel}
	var machines []*machine
	for k := range 1 + d.below(2) {
		d.machine = &machine{led: map[*State]string{}}
		d.machine.root = d.state(fmt.Sprintf("m%d", k), pick(d, Compound, Compound, Compound, Compound, Parallel), root, 0)
		machines = append(machines, d.machine)
	}
	for _, d.machine = range machines {
		d.defaults()
		d.finishTogether()
		d.write(d.machine.root, 1)
	}
	return d.head() + "stateMachines:\n" + d.b.String()
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
		if parent.Kind == Parallel && parent.Parent != nil && d.percent(80) {
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

func (d *drawing) defaults() {
	for _, s := range d.machine.states {
		if isHistoryState(s) && d.percent(60) {
			s.Default = []*State{pick(d, below(s.Parent, false)...)}
		}
	}
}

// finishTogether often lets one event lead all regions of a parallel state to their final states.
func (d *drawing) finishTogether() {
	for _, p := range d.machine.states {
		if p.Kind != Parallel || !d.percent(75) {
			continue
		}
		event := pick(d, names...)
		for _, region := range p.Children {
			for _, s := range region.Children {
				if first := region.Children[0]; s.Kind == Final && first.Kind != Final {
					d.machine.led[first] = event + " {target: [" + s.ID + "], actions: [" + d.text("log") + "]}"
					break
				}
			}
		}
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

// sendable are the events that something takes.
func (d *drawing) sendable() []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.ContainsFunc(d.patterns, func(pattern string) bool { return matches(pattern, name) })
	})
}
