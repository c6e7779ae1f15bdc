package record

import (
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// Timer is an event that comes to an instance on its own: that of an after of a node, or one that was sent with a delay
// (statemachine/DEFINITION.md, "Timers").
type Timer struct {
	ID ElementID
	// Event is its name, and Due when it comes.
	Event chart.EventName
	Due   time.Time
	// At is the node whose after it is; the zero value for an event that was sent.
	At chart.Position
	// Failed: it came, and an action failed (Definition.Fail). It does not come on its own again.
	Failed bool
	// Effect is what it does, as far as that is sure.
	Effect chart.Effect
}

// TimerState is a Timer as the machine keeps it.
type TimerState struct {
	ID     ElementID
	Due    time.Time
	After  *chart.After // nil: sent
	Event  chart.EventName
	Send   string // the name under which it can be cancelled; ""
	To     string // where an event goes that leaves the instance, with the rules of SCXML; "": it stays
	Data   data.Value
	Failed bool
	// Child is what happened to a child, for an event that has failed; nil for all others.
	Child *chart.ChildTransition
}

// Name is that of its event.
func (t *TimerState) Name() chart.EventName {
	switch {
	case t.After != nil:
		return t.After.Event
	case t.Child != nil:
		return t.Child.Event()
	}
	return t.Event
}

// Timers returns what waits in the instance, in no order.
func (in *Instance) Timers() []Timer {
	if len(in.State.Timers) == 0 {
		return nil
	}
	out := make([]Timer, len(in.State.Timers))
	for i := range in.State.Timers {
		t := &in.State.Timers[i]
		out[i] = Timer{ID: t.ID, Event: t.Name(), Due: t.Due, Failed: t.Failed}
		if t.After != nil {
			out[i].At, out[i].Effect = chart.Position{Machine: chart.MachineID(t.After.Node.Machine.ID), Node: t.After.Node.ID}, t.After.Effect()
		}
	}
	return out
}

// TimerChanges compares with the instance before: a timer that has failed or may come again is in both.
func (in *Instance) TimerChanges(before *Instance) (ended, begun []Timer) {
	if isSame(in.State.Timers, before.State.Timers) {
		return nil, nil
	}
	return changes(before.Timers(), in.Timers())
}

// Postpone has the timers that a step has begun come at `at` where they would come earlier; before is the instance before the step. It
// reports whether it moved one.
func (in *Instance) Postpone(before *Instance, at time.Time) (postponed bool) {
	at = at.Truncate(time.Millisecond)
	isEarly := func(t TimerState) bool { return t.ID.Sequence > before.Sequence && !t.Failed && t.Due.Before(at) }
	if !slices.ContainsFunc(in.State.Timers, isEarly) {
		return false
	}
	in.State.Timers = slices.Clone(in.State.Timers)
	for i := range in.State.Timers {
		if isEarly(in.State.Timers[i]) {
			in.State.Timers[i].Due = at
		}
	}
	return true
}

// TimerAt is the place of a timer; -1: there is no such timer any more.
func (s *State) TimerAt(id ElementID) int {
	return slices.IndexFunc(s.Timers, func(t TimerState) bool { return t.ID == id })
}

// WithIncident returns the instance with an event that has failed. Its id names the time and no history entry: it left none, and one that
// is dropped must not be the id of the next.
func (in *Instance) WithIncident(t TimerState) Instance {
	next := *in
	t.ID, t.Due, t.Failed = ElementID{uint64(t.Due.UnixNano()), 0}, t.Due.Truncate(time.Millisecond), true //nolint:gosec // after 1970
	for in.State.TimerAt(t.ID) >= 0 {
		t.ID.Number++
	}
	next.State.Timers = append(slices.Clip(in.State.Timers), t)
	return next
}
