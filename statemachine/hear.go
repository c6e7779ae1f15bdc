package statemachine

import (
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
	"troupe/statemachine/internal/signal"
)

// Heard is an event that a Forward has brought. From says which it was, so that one that comes twice is taken once: the history
// entry of the sender that sent it, and its place there.
type Heard struct {
	// Child is how the instance calls the child that has sent the event; nil: its parent has.
	Child  *ElementID
	Event  EventName
	Data   data.Value
	SendID string
	From   ElementID
}

// Hear takes an event of a child or of the parent, as Receive takes one. It returns ErrNoChild when the instance does not wait for
// that child any more. An event that it has heard before is Ignored, and so is one whose name only the machine itself can raise.
func (d *Definition) Hear(in *Instance, h Heard, now time.Time) (Result, error) {
	next, from, err := d.withHeard(in, h)
	if err != nil {
		return Result{}, err
	}
	if next == nil {
		return Result{Outcome: Ignored, Instance: *in}, nil
	}
	return d.step(next, &Event{Name: h.Event, Data: h.Data, Caller: chart.SystemCaller, Now: now, signal: from}, trigger{name: h.Event})
}

// FailHear returns the instance with what Hear could not take, as a timer that has failed.
func (d *Definition) FailHear(in *Instance, h Heard, now time.Time) (Instance, error) {
	next, _, err := d.withHeard(in, h)
	if err != nil || next == nil {
		return *in, err
	}
	return d.FailEvent(next, h.Event, h.Data, now), nil
}

// withHeard returns the instance as one that has heard the event, and from whom; nil when it takes none such.
func (d *Definition) withHeard(in *Instance, h Heard) (*Instance, signal.Signal, error) {
	next := *in
	var from signal.Signal
	var last *ElementID
	switch {
	case in.State.Ended:
		return nil, from, ErrEnded
	case h.Child != nil:
		i := slices.IndexFunc(in.State.Children, func(c record.ChildState) bool { return c.ID == *h.Child && c.Status == ChildRuns })
		if i < 0 {
			return nil, from, ErrNoChild
		}
		next.State.Children = slices.Clone(in.State.Children)
		c := &next.State.Children[i]
		last = &c.Heard
		from = signal.Signal{SendID: h.SendID, Origin: "#_" + c.Name, InvokeID: c.Name}
	case in.State.Parent == nil:
		return nil, from, ErrNoChild
	default:
		parent := *in.State.Parent
		next.State.Parent, last = &parent, &parent.Heard
		from = signal.Signal{SendID: h.SendID, Origin: signal.SessionPrefix + parent.Instance}
	}
	if h.From.Compare(*last) <= 0 || d.Semantics != chart.SCXMLSemantics && IsReserved(h.Event) || d.ServiceEvents[h.Event] {
		return nil, from, nil
	}
	*last = h.From
	return &next, from, nil
}
