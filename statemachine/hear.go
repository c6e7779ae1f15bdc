package statemachine

import (
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
	r, err := d.step(next, &Event{Name: h.Event, Data: h.Data, Caller: chart.SystemCaller, Now: now, signal: from}, trigger{name: h.Event})
	return d.kept(r, err, in, record.Input{Kind: record.ByKin, Part: h.Child, From: &h.From, Text: h.SendID})
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
	var from signal.Signal
	if in.State.Ended {
		return nil, from, ErrEnded
	}
	next, whom, ok := in.Hear(h.Child)
	if !ok {
		return nil, from, ErrNoChild
	}
	if !whom.Heard(h.From) || d.Semantics != chart.SCXMLSemantics && IsReserved(h.Event) || d.ServiceEvents[h.Event] {
		return nil, from, nil
	}
	from = signal.Signal{SendID: h.SendID, Origin: "#_" + whom.Child, InvokeID: whom.Child}
	if h.Child == nil {
		from.Origin = signal.SessionPrefix + whom.Parent
	}
	return &next, from, nil
}
