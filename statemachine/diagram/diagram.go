package diagram

import (
	"fmt"

	"troupe/statemachine"
)

// Picture is what is drawn. Its methods may be called by any number of goroutines.
type Picture struct {
	Chart *statemachine.Chart
	// Instance is marked; nil: none is.
	Instance *Instance
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
