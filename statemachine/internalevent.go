package statemachine

import (
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/record"
	"troupe/statemachine/internal/signal"
)

// Callback takes what happened to a child or a job, as Receive takes an event. It returns ErrNoChild when nobody waits for it, and for a
// job that has failed for good, ErrExecution when nothing takes that.
func (d *Definition) Callback(in *Instance, id ElementID, failed bool, eventData data.Value, now time.Time) (Result, error) {
	e := &Event{Data: eventData, Caller: chart.SystemCaller, Now: now}
	if d.Semantics == chart.SCXMLSemantics && in.State.JobAt(id) < 0 {
		e.Data = callbackData(failed, eventData)
	}
	return d.callback(in, id, failed, e)
}

// callback is Callback with the event but its name.
func (d *Definition) callback(in *Instance, id ElementID, failed bool, e *Event) (r Result, err error) {
	if at := in.State.JobAt(id); at >= 0 {
		r, err = d.settleJob(in, at, failed, e)
	} else {
		next, child, ok := in.WithoutChild(id, failed)
		of := trigger{child: child}
		switch {
		case !ok:
			return Result{}, ErrNoChild
		case d.Semantics == chart.SCXMLSemantics:
			e.Name, of.child = callbackName(in, id, failed), nil
			e.signal.InvokeID = in.State.ChildName(id)
		default:
			e.Name = child.Event()
		}
		of.name = e.Name
		r, err = d.step(&next, e, of)
	}
	return d.kept(r, err, in, record.Input{Kind: record.ByCallback, Part: &id, Failed: failed})
}

// FailCallback returns the instance with what Callback could not take, as a timer that has failed. A job that has failed is kept with it.
func (d *Definition) FailCallback(in *Instance, id ElementID, failed bool, eventData data.Value, now time.Time) (Instance, error) {
	if at := in.State.JobAt(id); at >= 0 {
		return in.WithJobIncident(at, failed, eventData, now), nil
	}
	next, child, ok := in.WithoutChild(id, failed)
	if !ok {
		return next, ErrNoChild
	}
	if d.Semantics == chart.SCXMLSemantics {
		return next.WithIncident(record.TimerState{Due: now, Event: callbackName(in, id, failed), Data: callbackData(failed, eventData)}), nil
	}
	return next.WithIncident(record.TimerState{Due: now, Child: child, Data: eventData}), nil
}

// Cancel takes parent.cancelled, which the instance may handle, and ends it: it takes nothing more, has no timers, and its
// own children are cancelled. Where an action of that fails, it ends all the same. One that is done stays as it is. It returns
// ErrEnded when it has ended already. by is who has stopped the whole tree, and stands in the history of each of its instances; "": nobody.
func (d *Definition) Cancel(in *Instance, by string, now time.Time) (Result, error) {
	if in.State.Ended {
		return Result{}, ErrEnded
	}
	if d.IsDone(in) {
		return Result{Outcome: Ignored, Instance: *in}, nil
	}
	e := &Event{Name: chart.ParentCancelled, Caller: chart.SystemCaller, Now: now}
	of := trigger{name: chart.ParentCancelled, ending: true, exact: true}
	if d.Semantics == chart.SCXMLSemantics { // it knows no such event, and runs its exits
		of.nothing, of.leaving = true, true
	}
	result, err := d.step(in, e, of)
	if err != nil {
		result, err = d.step(in, e, trigger{ending: true, nothing: true})
	}
	if err == nil && by != "" { // NB: for rules and expressions the event is the system's
		result.Entry.User = by
		for k := range result.Deliveries {
			if end := result.Deliveries[k].End; end != nil {
				end.By = by
			}
		}
	}
	return d.kept(result, err, in, record.Input{Kind: record.ByCancel})
}

func signalOf(t *record.TimerState, in *Instance) signal.Signal {
	if t.After != nil || t.Child != nil {
		return signal.Signal{}
	}
	return signal.Signal{SendID: t.Send, Origin: signal.SessionPrefix + in.ID}
}

func (d *Definition) fireOut(in *Instance, t *record.TimerState, now time.Time) (Result, error) {
	m := d.newMacrostep(in, in.State.At.Active, chart.SystemCaller, in.NextTime(now))
	defer m.release()
	if in.State.Ended {
		return Result{}, ErrEnded
	}
	m.in.Redirect = ""
	f, err := m.aim(t)
	if err != nil {
		m.raiseError(&fault.Dispatch{Event: errorCommunication, SendID: t.Send, Cause: err})
		m.runToCompletion()
	} else {
		m.forward(f)
	}
	return m.result(Moved, in.State.At.End, t.Event, in)
}

func callbackName(in *Instance, id ElementID, failed bool) EventName {
	if failed {
		return errorCommunication
	}
	return EventName("done.invoke." + in.State.ChildName(id))
}

// callbackData is that of the event with the rules of SCXML.
func callbackData(failed bool, eventData data.Value) data.Value {
	output, ok := eventData.Lookup("output")
	switch {
	case !ok || failed:
		return eventData
	case output.Kind() == data.Null:
		return nil
	}
	return output
}

// Fire takes the event of a record.TimerState, as Step takes one from a caller, and ends the timer. It is for the caller to
// wait until it is due. Outcome Ignored means here that the event left no entry; the timer is gone all the same.
// It returns ErrNoTimer, or ErrInvalidData, ErrTooLarge or ErrExecution, which mean that nothing happened.
func (d *Definition) Fire(in *Instance, id ElementID, now time.Time) (Result, error) {
	without, t, ok := in.WithoutTimer(id)
	if !ok {
		return Result{}, ErrNoTimer
	}
	r, err := d.fire(in, &without, &t, now)
	return d.kept(r, err, in, record.Input{Kind: record.ByTimer, Part: &id})
}

func (d *Definition) fire(in, without *Instance, t *record.TimerState, now time.Time) (Result, error) {
	if t.To != "" {
		return d.fireOut(without, t, now)
	}
	return d.step(without, &Event{Name: t.Name(), Data: t.Data, Caller: chart.SystemCaller, Now: now, signal: signalOf(t, in)}, trigger{
		name: t.Name(), after: t.After, child: t.Child, exact: d.ServiceEvents[t.Event] && d.Semantics != chart.SCXMLSemantics, // an outcome that has failed is taken as Receive takes it
	})
}

// Receive takes an event that the service itself sends, such as what happened to a delivery. Otherwise it is Fire.
func (d *Definition) Receive(in *Instance, name EventName, eventData data.Value, now time.Time) (Result, error) {
	return d.receive(in, &Event{Name: name, Data: eventData, Caller: chart.SystemCaller, Now: now})
}

func (d *Definition) receive(in *Instance, e *Event) (Result, error) {
	r, err := d.step(in, e, trigger{name: e.Name, exact: d.Semantics != chart.SCXMLSemantics})
	return d.kept(r, err, in, record.Input{Kind: record.ByService})
}

// FailEvent returns the instance with an event that Receive could not take, as a timer that has failed.
func (d *Definition) FailEvent(in *Instance, name EventName, eventData data.Value, now time.Time) Instance {
	return in.WithIncident(record.TimerState{Due: now, Event: name, Data: eventData})
}

// Fail returns the instance with a timer that does not come on its own any more, because its event failed.
func (d *Definition) Fail(in *Instance, id ElementID) (Instance, error) {
	next, ok := in.WithFailedTimer(id)
	if !ok {
		return next, ErrNoTimer
	}
	return next, nil
}

// Drop returns the instance without a timer. Without its incident, a job that has failed is over.
func (d *Definition) Drop(in *Instance, id ElementID) (Instance, error) {
	if job, ok := in.FailedJob(id); ok {
		next, _ := in.WithoutJob(in.State.JobAt(job), true)
		return next, nil
	}
	next, _, ok := in.WithoutTimer(id)
	if !ok {
		return next, ErrNoTimer
	}
	return next, nil
}
