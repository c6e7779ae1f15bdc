package statemachine

import (
	"errors"
	"fmt"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/record"
	"troupe/statemachine/internal/signal"
)

// Outcome says what an event did.
type Outcome uint8

const (
	// Moved means that the instance took a step: its creation, a transition, a migration, or without one what the rules of SCXML do,
	// an error that is raised, or a delayed message that leaves.
	Moved Outcome = iota + 1
	// Recorded means that nothing took the event; there is an entry without a move.
	Recorded
	// Applied is Recorded with the event's data applied.
	Applied
	// Ignored means that nothing took the event, and nothing changed.
	Ignored
)

// Result is what Create and Step return: the new instance, its history entry, its log lines, and what it sends out.
type Result struct {
	Outcome  Outcome
	Instance Instance
	// Entry is the new history entry; unset when Ignored.
	Entry Entry
	// Logs are the texts of log actions, in order. A text of more than 2 KiB is cut there and ends with "…".
	Logs []string
	// Deliveries are what the event sends out, in order.
	Deliveries []Delivery
	// Decided are the tasks that the caller has completed: a transition of their own node took the event and left it.
	Decided []Task
	// Cost is that of the step, in units of expressions.
	Cost uint64
}

// Event is one event from outside.
type Event struct {
	Name   EventName
	ID     string     // event.id, or ""
	Data   data.Value // an object, or absent
	Caller *Caller
	Now    time.Time
	signal signal.Signal // what else the rules of SCXML know of it
}

// Step sends one event to an instance and runs to completion (statemachine/DEFINITION.md, "Run to completion"; W3C SCXML, Appendix D). It
// is a pure function of its arguments; in is not changed. It returns ErrUnknownEvent, ErrEnded, ErrInvalidData, ErrForbidden, ErrClaimed,
// ErrRejected, ErrTooLarge or ErrExecution; each means that nothing happened.
func (d *Definition) Step(in *Instance, e Event) (r Result, err error) {
	if !d.Declares(e.Name) {
		if d.ServiceEvents[e.Name] {
			return Result{}, fmt.Errorf("%w for callers: only the service sends %s", ErrUnknownEvent, data.Quote(string(e.Name)))
		}
		return Result{}, fmt.Errorf("%w: %s", ErrUnknownEvent, data.Quote(string(e.Name)))
	}
	err = d.stepInto(&r, in, &e, trigger{name: e.Name, external: true})
	return r, err
}

func (d *Definition) step(in *Instance, e *Event, t trigger) (r Result, err error) {
	err = d.stepInto(&r, in, e, t)
	return r, err
}

// stepInto is step, and sets r unless there is an error. NB: a Result is large, and each function that returns one copies it.
func (d *Definition) stepInto(r *Result, in *Instance, e *Event, t trigger) error {
	if in.State.Ended {
		return ErrEnded
	}
	given := e.Data
	if given.Kind() == data.Absent {
		given = chart.EmptyObject
	}
	declared := d.Events[e.Name]
	if declared != nil {
		if err := declared.Schema.Check(given); err != nil {
			return err
		}
	}
	var parts chart.Documents
	if d.Semantics != chart.SCXMLSemantics {
		var err error
		if parts, err = chart.DocumentsOf(declared, given); err != nil {
			return err
		}
	}
	m := d.newMacrostep(in, in.State.At.Active, e.Caller, in.NextTime(e.Now))
	defer m.release()
	m.in.Redirect = "" // it belongs to the entry before
	m.setEvent(expr.Event{Name: string(e.Name), ID: e.ID, Data: given})
	if declared == nil || !declared.Unkept {
		m.eventData = e.Data
	}
	if t.external {
		m.sent, m.sentID = true, e.ID
	}
	start := in.State.At.End
	touched := false
	if d.Semantics == chart.SCXMLSemantics {
		touched = m.arrive(e)
	}

	if t.external && !declared.MayTake(e.Caller, &m.scope) {
		return ErrForbidden
	}
	var picked []*chart.Transition
	var refused refusal
	if !t.nothing {
		picked, refused = m.selectTransitions(t)
	}
	if m.isSpent() {
		return m.failure
	}
	if len(picked) == 0 && t.external {
		if err := m.mayTry(&t, refused); err != nil {
			return err
		}
	}
	if len(picked) == 0 && m.queue.IsEmpty() && !touched {
		return m.handleUnmatched(r, in, e, &t, &parts)
	}
	if len(picked) > 0 {
		if err := m.applyData(picked, declared, e.Data, &parts); err != nil {
			return err
		}
		if t.external {
			m.deciding = picked
		}
		m.microstep(picked)
		m.deciding = nil
	}
	m.runToCompletion()
	if t.ending {
		m.endInstance(t.leaving)
	}
	return m.resultInto(r, Moved, start, e.Name, in)
}

// mayTry asks whether the caller may send an event that no transition takes now. If a transition refused, its reason is the answer.
// Else ErrForbidden for a caller without a right to the event anywhere in the chart, whatever unmatched says.
func (m *macrostep) mayTry(t *trigger, refused refusal) error {
	switch refused {
	case byClaim:
		return ErrClaimed
	case byRights:
		return ErrForbidden
	}
	right := m.rightTo(t, m.rightNow)
	if m.isSpent() {
		return m.failure
	}
	if right == Denied {
		return ErrForbidden
	}
	return nil
}

func (m *macrostep) handleUnmatched(r *Result, in *Instance, e *Event, t *trigger, parts *chart.Documents) error {
	start := in.State.At.End
	if t.ending {
		m.endInstance(t.leaving)
		return m.resultInto(r, Recorded, start, e.Name, in)
	}
	switch word := m.d.UnmatchedRule(e.Name); word {
	case chart.UnmatchedReject, chart.UnmatchedIgnore:
		if t.external && word == chart.UnmatchedReject {
			return ErrRejected
		}
		*r = Result{Outcome: Ignored, Instance: *in}
		return nil
	case chart.UnmatchedApply:
		if err := m.applyData(nil, m.d.Events[e.Name], e.Data, parts); err != nil {
			return err
		}
		return m.resultInto(r, Applied, start, e.Name, in)
	}
	err := m.resultInto(r, Recorded, start, e.Name, in)
	r.Entry.Attempt = err == nil
	return err
}

func (m *macrostep) result(o Outcome, start []NodeID, event EventName, before *Instance) (r Result, err error) {
	err = m.resultInto(&r, o, start, event, before)
	return r, err
}

// resultInto is result, and sets r unless there is an error.
func (m *macrostep) resultInto(r *Result, o Outcome, start []NodeID, event EventName, before *Instance) error {
	if m.isSpent() || m.failure != nil {
		return m.failure
	}
	if o == Moved {
		if err := m.d.checkChanged(before, &m.in); err != nil {
			return err
		}
	}
	m.in.State.At = m.d.ConfigurationOf(m.Active)
	if hasElements(&m.in) && m.d.IsDone(&m.in) {
		m.in.State.Timers, m.in.State.Jobs = nil, nil // what would come has nobody to take it
		m.cancelChildren(func(*record.ChildState) bool { return true })
		m.noticeParent(before)
		if m.failure != nil {
			return m.failure
		}
	}
	if len(m.in.State.Tasks) > 0 && m.d.IsOver(&m.in) {
		m.in.State.Tasks = nil
	}
	m.in.State.Aside = false
	m.in.Sequence++
	m.in.UpdatedAt = m.scope.Now
	r.Outcome, r.Instance, r.Logs, r.Deliveries, r.Decided, r.Cost = o, m.in, m.logs, m.out, m.decided, fault.MaxCost-m.budget.Left()
	r.Entry = Entry{User: m.caller.ID, Start: start, Event: event, End: m.in.State.At.End, At: m.scope.Now, Data: m.eventData}
	if m.sent && (m.d.ReadsUser || m.d.ReadsEventID || m.shut != nil || before.State.Aside) {
		r.Entry.Input = m.d.inputOf(m.caller, m.sentID, m.shut, before)
	}
	return nil
}

func hasElements(in *Instance) bool {
	return len(in.State.Timers) > 0 || len(in.State.Jobs) > 0 || len(in.State.Children) > 0 || in.State.Parent != nil
}

// checkChanged is CheckData for data that actions wrote. Data that does not fit is then the definition's fault and not the caller's.
func (d *Definition) checkChanged(before, after *Instance) error {
	if d.PublicSchema == nil && d.PrivateSchema == nil {
		return nil
	}
	if string(before.Public) == string(after.Public) && string(before.Private) == string(after.Private) {
		return nil
	}
	err := d.CheckData(after.Public, after.Private)
	if errors.Is(err, ErrInvalidData) {
		return fault.Execution{Reason: data.Shorten(err.Error())}
	}
	return err
}

// arrive is what comes before the selection for an event from outside: finalize and autoforward (W3C SCXML, Appendix D,
// mainEventLoop). It reports whether that did something.
func (m *macrostep) arrive(e *Event) (touched bool) {
	s := e.signal
	if s.Kind = signal.External; e.Name == errorCommunication {
		s.Kind = signal.Platform // what the service finds out, and nobody has sent
	}
	m.setSignal(e.Name, &s, e.Data)
	for i := range m.in.State.Children {
		c := &m.in.State.Children[i]
		if c.Invoke.SCXMLInvoke == nil {
			continue
		}
		if c.Name == s.InvokeID && s.InvokeID != "" && c.Invoke.Finalize != nil {
			m.runBlock(c.Invoke.Finalize)
			touched = true
		}
		if c.Status == ChildRuns && c.Invoke.Autoforward && e.Name != chart.ParentCancelled && s.Kind == signal.External {
			m.forward(&Forward{Child: c.Cancellation(), Event: e.Name, Data: e.Data, SendID: s.SendID})
			touched = true
		}
	}
	return touched
}
