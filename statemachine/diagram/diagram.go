package diagram

import (
	"fmt"
	"slices"

	"troupe/statemachine"
)

// Picture is what is drawn. Its methods may be called by any number of goroutines.
type Picture struct {
	Chart *statemachine.Chart
	// Instance is marked; nil: none is.
	Instance *Instance
	// Languages are those of the reader, the preferred one first: labels are in the first that they are written in.
	Languages []string
	// Counts are how many instances stand at nodes, by the index of the node; nil: they are not shown.
	Counts map[int]Count
}

// translated is the chart with its texts in the reader's language alone.
func (p *Picture) translated() *statemachine.Chart {
	c := *p.Chart
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Label = statemachine.Plain(n.Label.For(p.Languages...))
		n.Transitions = slices.Clone(n.Transitions)
		for k := range n.Transitions {
			n.Transitions[k].Label = statemachine.Plain(n.Transitions[k].Label.For(p.Languages...))
		}
	}
	return &c
}

// Instance is an instance of the chart's workflow and version.
type Instance struct {
	ID string
	// At is where it stands.
	At []statemachine.Position

	steps []Step
	seen  map[string]bool
}

// Step is an entry of the history.
type Step struct {
	// Event is empty for the creation.
	Event      statemachine.EventName
	Start, End []statemachine.Position
}

// Steps is how many entries were added that say something new. Each costs a search through the chart when the picture is drawn.
func (in *Instance) Steps() int { return len(in.steps) }

// Add adds an entry of the instance's history, in any order. What is like one before says nothing new and takes no
// room, so a history of any length may be added.
func (in *Instance) Add(s Step) {
	key := fmt.Sprintf("%q %q %q", s.Event, s.Start, s.End)
	if in.seen[key] {
		return
	}
	if in.seen == nil {
		in.seen = map[string]bool{}
	}
	in.seen[key] = true
	in.steps = append(in.steps, s)
}
