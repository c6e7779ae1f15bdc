package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// Bounds of what waits in one instance (statemachine/DEFINITION.md, "Bounds of one event").
const (
	maxTimers     = 1000
	maxTimerBytes = 1 << 20 // of their data
)

var (
	errTooManyTimers error = executionError{reason: fmt.Sprintf("more than %d timers", maxTimers)}
	errTimersLarge   error = executionError{reason: fmt.Sprintf("timers with more than %d MiB of data", maxTimerBytes>>20)}
)

// PartID tells a timer or child from every other one that its instance ever has: the history entry that began it, and
// its place among those that began with that entry, counted from 0.
type PartID struct {
	Sequence uint64
	Number   uint32
}

// Timer is an event that comes to an instance by itself: that of an after of a node, or one that was sent with a
// delay (statemachine/DEFINITION.md, "Timers").
type Timer struct {
	ID PartID
	// Event is its name, and Due when it comes.
	Event EventName
	Due   time.Time
	// At is the node whose after it is; the zero value for an event that was sent.
	At Position
	// Failed: it came, and an action failed (Definition.Fail). It does not come by itself again.
	Failed bool
	// Effect is what it does, as far as that is sure.
	Effect Effect
}

// timer is a Timer as the machine keeps it.
type timer struct {
	id     PartID
	due    time.Time
	after  *chart.After // nil: sent
	event  EventName
	send   string // the name under which it can be cancelled; ""
	to     string // where an event goes that leaves the instance, with the rules of SCXML; "": it stays
	data   data.Value
	failed bool
	// told is what has become of a child, for an event that has failed; nil for all others.
	told *chart.ChildTransition
}

func (t *timer) name() EventName {
	switch {
	case t.after != nil:
		return t.after.Event
	case t.told != nil:
		return t.told.Event()
	}
	return t.event
}

// Timers returns what waits in the instance, in no order.
func (in *Instance) Timers() []Timer {
	if len(in.timers) == 0 {
		return nil
	}
	out := make([]Timer, len(in.timers))
	for i := range in.timers {
		t := &in.timers[i]
		out[i] = Timer{ID: t.id, Event: t.name(), Due: t.due, Failed: t.failed}
		if t.after != nil {
			out[i].At, out[i].Effect = Position{Machine: MachineID(t.after.Node.Machine.ID), Node: t.after.Node.ID}, t.after.Effect()
		}
	}
	return out
}

// TimerChanges compares with the instance before: a timer that has failed or may come again is in both.
func (in *Instance) TimerChanges(before *Instance) (ended, begun []Timer) {
	if len(in.timers) == len(before.timers) && (len(in.timers) == 0 || &in.timers[0] == &before.timers[0]) {
		return nil, nil
	}
	old, now := before.Timers(), in.Timers()
	for _, t := range old {
		if !slices.Contains(now, t) {
			ended = append(ended, t)
		}
	}
	for _, t := range now {
		if !slices.Contains(old, t) {
			begun = append(begun, t)
		}
	}
	return ended, begun
}

// Postpone has the timers come no earlier than at that a step has begun, before which the instance was as before says. It reports whether
// one of them would have.
func (in *Instance) Postpone(before *Instance, at time.Time) (postponed bool) {
	at = at.Truncate(time.Millisecond)
	isEarly := func(t timer) bool { return t.id.Sequence > before.Sequence && !t.failed && t.due.Before(at) }
	if !slices.ContainsFunc(in.timers, isEarly) {
		return false
	}
	in.timers = slices.Clone(in.timers)
	for i := range in.timers {
		if isEarly(in.timers[i]) {
			in.timers[i].due = at
		}
	}
	return true
}

// begin starts a timer. The instance's own list is never changed in place.
func (m *macrostep) begin(t timer) {
	if len(m.in.timers) >= maxTimers {
		m.fail(errTooManyTimers)
		return
	}
	bytes := len(t.data)
	m.look(len(m.in.timers))
	for i := range m.in.timers {
		bytes += len(m.in.timers[i].data)
	}
	if bytes > maxTimerBytes {
		m.fail(errTimersLarge)
		return
	}
	t.id, t.due = m.nextPart(), t.due.Truncate(time.Millisecond)
	m.in.timers = append(own(m.in.timers, &m.ownsTimers), t)
}

// nextPart is the id of a timer or child that begins now.
func (m *macrostep) nextPart() PartID {
	m.parts++
	return PartID{m.in.Sequence + 1, m.parts - 1}
}

// end removes the timers that match.
func (m *macrostep) end(matches func(*timer) bool) {
	m.look(len(m.in.timers))
	at := func(t timer) bool { return matches(&t) }
	if slices.ContainsFunc(m.in.timers, at) {
		m.look(looksPerUnit * len(m.in.timers)) // they move up
		m.in.timers = slices.DeleteFunc(own(m.in.timers, &m.ownsTimers), at)
	}
}

// own returns a list of the instance that the macrostep may change in place: a copy, the first time.
func own[T any](list []T, owns *bool) []T {
	if !*owns {
		list, *owns = slices.Clone(list), true
	}
	return list
}

// beginAfter starts the timers of a node that was entered, behind its entry actions.
func (m *macrostep) beginAfter(n *chart.Node) {
	for _, a := range n.After {
		m.beginTimer(a)
	}
}

func (m *macrostep) beginTimer(a *chart.After) {
	if m.failure != nil {
		return
	}
	due, err := m.due(a.Delay)
	if err != nil {
		m.raiseError(fmt.Errorf("after: %w", err))
		return
	}
	m.begin(timer{due: due, after: a})
}

// endAfter ends the timers of a node that is left.
func (m *macrostep) endAfter(n *chart.Node) {
	if len(n.After) > 0 {
		m.end(func(t *timer) bool { return t.after != nil && t.after.Node == n })
	}
}

func (m *macrostep) runSend(a *chart.Send) error {
	var v data.Value
	if a.Data != nil {
		var err error
		if v, err = a.Data.Eval(&m.scope); err != nil {
			return err
		}
	}
	due, err := m.due(a.Delay)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	m.begin(timer{due: due, event: a.Event, send: a.ID, data: v})
	return nil
}

func (m *macrostep) runCancel(a *chart.Cancel) error {
	v, err := a.ID.Eval(&m.scope)
	if err != nil {
		return err
	}
	if v.Kind() != data.String || v.TextIs("") {
		return errors.New("cancel: the id is not a text")
	}
	m.end(func(t *timer) bool { return t.send != "" && v.TextIs(t.send) })
	return nil
}

// ErrNoTimer: the instance has no such timer any more.
var ErrNoTimer = errors.New("there is no such timer")

// Fire takes the event of a timer, as Step takes one from a caller, and ends the timer. It is for the caller to
// wait until it is due. Outcome Ignored means here that the event left no entry; the timer is gone all the same.
// It returns ErrNoTimer, or ErrInvalidData, ErrTooLarge or ErrExecution, which mean that nothing happened.
func (d *Definition) Fire(in *Instance, id PartID, now time.Time) (Result, error) {
	i := slices.IndexFunc(in.timers, func(t timer) bool { return t.id == id })
	if i < 0 {
		return Result{}, ErrNoTimer
	}
	t := in.timers[i]
	without := *in
	without.timers = slices.Delete(slices.Clone(in.timers), i, i+1)
	if t.to != "" {
		return d.fireOut(&without, &t, now)
	}
	return d.step(&without, &Event{Name: t.name(), Data: t.data, Caller: chart.SystemCaller, Now: now, signal: t.signal(in)}, trigger{
		name: t.name(), after: t.after, told: t.told, exact: d.ServiceEvents[t.event] && d.Semantics != chart.SCXMLSemantics, // an outcome that has failed is taken as Receive takes it
	})
}

// Receive takes an event that the service itself sends, such as what became of a delivery. Otherwise it is Fire.
func (d *Definition) Receive(in *Instance, name EventName, brought data.Value, now time.Time) (Result, error) {
	return d.step(in, &Event{Name: name, Data: brought, Caller: chart.SystemCaller, Now: now}, trigger{name: name, exact: d.Semantics != chart.SCXMLSemantics})
}

// FailEvent returns the instance with an event that Receive could not take, as a timer that has failed.
func (d *Definition) FailEvent(in *Instance, name EventName, brought data.Value, now time.Time) Instance {
	return in.withIncident(timer{due: now, event: name, data: brought})
}

// withIncident returns the instance with an event that has failed. Its id names the time and no history entry: it left none, and one that
// is dropped must not be the id of the next.
func (in *Instance) withIncident(t timer) Instance {
	next := *in
	t.id, t.due, t.failed = PartID{uint64(t.due.UnixNano()), 0}, t.due.Truncate(time.Millisecond), true //nolint:gosec // behind 1970
	for slices.ContainsFunc(in.timers, func(other timer) bool { return other.id == t.id }) {
		t.id.Number++
	}
	next.timers = append(slices.Clip(in.timers), t)
	return next
}

// Fail returns the instance with a timer that does not come by itself any more, because its event failed.
func (d *Definition) Fail(in *Instance, id PartID) (Instance, error) {
	return d.withTimers(in, id, func(ts []timer, i int) []timer {
		ts[i].failed = true
		return ts
	})
}

// Drop returns the instance without a timer.
func (d *Definition) Drop(in *Instance, id PartID) (Instance, error) {
	return d.withTimers(in, id, func(ts []timer, i int) []timer { return slices.Delete(ts, i, i+1) })
}

func (*Definition) withTimers(in *Instance, id PartID, edit func(ts []timer, i int) []timer) (Instance, error) {
	next := *in
	i := slices.IndexFunc(in.timers, func(t timer) bool { return t.id == id })
	if i < 0 {
		return next, ErrNoTimer
	}
	next.timers = edit(slices.Clone(in.timers), i)
	return next, nil
}

// byItself reports whether the event came from nobody.
func (m *macrostep) byItself() bool { return m.caller == chart.SystemCaller }
