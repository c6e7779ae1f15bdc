package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
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

// begin starts a timer. The instance's own list is never changed in place.
func (m *macrostep) begin(t record.TimerState) {
	if len(m.in.State.Timers) >= maxTimers {
		m.fail(errTooManyTimers)
		return
	}
	bytes := len(t.Data)
	m.look(len(m.in.State.Timers))
	for i := range m.in.State.Timers {
		bytes += len(m.in.State.Timers[i].Data)
	}
	if bytes > maxTimerBytes {
		m.fail(errTimersLarge)
		return
	}
	t.ID, t.Due = m.nextPart(), t.Due.Truncate(time.Millisecond)
	m.in.State.Timers = append(own(m.in.State.Timers, &m.ownsTimers), t)
}

// nextPart is the id of a timer or child that begins now.
func (m *macrostep) nextPart() ElementID {
	m.parts++
	return ElementID{Sequence: m.in.Sequence + 1, Number: m.parts - 1}
}

// end removes the timers that match.
func (m *macrostep) end(matches func(*record.TimerState) bool) {
	m.look(len(m.in.State.Timers))
	at := func(t record.TimerState) bool { return matches(&t) }
	if slices.ContainsFunc(m.in.State.Timers, at) {
		m.look(looksPerUnit * len(m.in.State.Timers)) // they move up
		m.in.State.Timers = slices.DeleteFunc(own(m.in.State.Timers, &m.ownsTimers), at)
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
	m.begin(record.TimerState{Due: due, After: a})
}

// endAfter ends the timers of a node that is left.
func (m *macrostep) endAfter(n *chart.Node) {
	if len(n.After) > 0 {
		m.end(func(t *record.TimerState) bool { return t.After != nil && t.After.Node == n })
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
	m.begin(record.TimerState{Due: due, Event: a.Event, Send: a.ID, Data: v})
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
	m.end(func(t *record.TimerState) bool { return t.Send != "" && v.TextIs(t.Send) })
	return nil
}

// ErrNoTimer: the instance has no such timer any more.
var ErrNoTimer = errors.New("there is no such timer")

// Fire takes the event of a record.TimerState, as Step takes one from a caller, and ends the timer. It is for the caller to
// wait until it is due. Outcome Ignored means here that the event left no entry; the timer is gone all the same.
// It returns ErrNoTimer, or ErrInvalidData, ErrTooLarge or ErrExecution, which mean that nothing happened.
func (d *Definition) Fire(in *Instance, id ElementID, now time.Time) (Result, error) {
	i := slices.IndexFunc(in.State.Timers, func(t record.TimerState) bool { return t.ID == id })
	if i < 0 {
		return Result{}, ErrNoTimer
	}
	t := in.State.Timers[i]
	without := *in
	without.State.Timers = slices.Delete(slices.Clone(in.State.Timers), i, i+1)
	if t.To != "" {
		return d.fireOut(&without, &t, now)
	}
	return d.step(&without, &Event{Name: t.Name(), Data: t.Data, Caller: chart.SystemCaller, Now: now, signal: signalOf(&t, in)}, trigger{
		name: t.Name(), after: t.After, told: t.Child, exact: d.ServiceEvents[t.Event] && d.Semantics != chart.SCXMLSemantics, // an outcome that has failed is taken as Receive takes it
	})
}

// Receive takes an event that the service itself sends, such as what became of a delivery. Otherwise it is Fire.
func (d *Definition) Receive(in *Instance, name EventName, brought data.Value, now time.Time) (Result, error) {
	return d.step(in, &Event{Name: name, Data: brought, Caller: chart.SystemCaller, Now: now}, trigger{name: name, exact: d.Semantics != chart.SCXMLSemantics})
}

// FailEvent returns the instance with an event that Receive could not take, as a timer that has failed.
func (d *Definition) FailEvent(in *Instance, name EventName, brought data.Value, now time.Time) Instance {
	return in.WithIncident(record.TimerState{Due: now, Event: name, Data: brought})
}

// Fail returns the instance with a timer that does not come by itself any more, because its event failed.
func (d *Definition) Fail(in *Instance, id ElementID) (Instance, error) {
	return d.withTimers(in, id, func(ts []record.TimerState, i int) []record.TimerState {
		ts[i].Failed = true
		return ts
	})
}

// Drop returns the instance without a timer.
func (d *Definition) Drop(in *Instance, id ElementID) (Instance, error) {
	return d.withTimers(in, id, func(ts []record.TimerState, i int) []record.TimerState { return slices.Delete(ts, i, i+1) })
}

func (*Definition) withTimers(in *Instance, id ElementID, edit func(ts []record.TimerState, i int) []record.TimerState) (Instance, error) {
	next := *in
	i := slices.IndexFunc(in.State.Timers, func(t record.TimerState) bool { return t.ID == id })
	if i < 0 {
		return next, ErrNoTimer
	}
	next.State.Timers = edit(slices.Clone(in.State.Timers), i)
	return next, nil
}

// byItself reports whether the event came from nobody.
func (m *macrostep) byItself() bool { return m.caller == chart.SystemCaller }
