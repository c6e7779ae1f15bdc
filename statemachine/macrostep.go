package statemachine

import (
	"errors"
	"sync"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/signal"
	"troupe/statemachine/internal/transit"
)

func exprParent(in *Instance) *expr.Parent {
	if in.State.Parent == nil {
		return nil
	}
	return &expr.Parent{WorkflowID: in.State.Parent.Workflow, InstanceID: in.State.Parent.Instance}
}

// placeBound notes where the step has passed a bound.
func (m *macrostep) placeBound(line int) {
	m.failure = fault.PlaceBound(m.failure, &m.d.Places, line)
}

// place notes the origin of an error, while the scope is that of its origin. at is the action; nil: it was none.
func (m *macrostep) place(err error, at *chart.Action) error {
	return fault.Place(err, &m.d.Places, at, &m.scope, func() bool {
		m.faults++
		return m.faults <= fault.FaultsRead
	})
}

// macrostep is one macrostep while it is being made. in is a copy of the instance that only the macrostep changes.
type macrostep struct {
	d  *Definition
	in Instance // all but State.At, which is where the instance was
	transit.Walk
	caller *Caller
	scope  expr.Scope
	event  expr.Event // what scope.Event points to
	// leave, enter, domains and picked are the buffers of a microstep.
	leave, enter chart.NodeSet
	seen         chart.NodeSet // where the selection has looked
	domains      []*chart.Node
	picked       []*chart.Transition
	queue        signal.Queue
	logs         []string
	eventData    data.Value // what the event brought that the history keeps
	// deciding are the transitions that take what a caller has sent, during their microstep; decided are the tasks that they end.
	deciding []*chart.Transition
	sent     bool // a caller has sent the event, which has this id
	sentID   string
	shut     []*chart.Transition // that would have taken it from somebody else
	decided  []Task

	microsteps, actions int
	faults              int    // of expressions
	parts               uint32 // timers and children that have begun
	ownsTimers          bool   // they are this macrostep's to change; of the instance before is a copy
	ownsTasks           bool   // likewise
	out                 []Delivery
	outBytes            int
	toInvoke            []*chart.Invoke // of nodes that were entered, not begun yet
	outputs             []machineOutput // of final nodes that were entered, for the parent
	stopped             bool            // a final node at the top was entered, with the rules of SCXML
	budget              expr.Budget
	// failure ends the macrostep: nothing of it is kept.
	failure error
}

type machineOutput struct {
	of    *chart.Node
	value data.Value
}

// macrosteps are used again: a macrostep is a large value, and most of what it needs are buffers.
var macrosteps = sync.Pool{New: func() any {
	m := &macrostep{}
	m.scope.In = func(name string) bool { return m.d.IsIn(m.Active, name) }
	m.scope.Instance.States = func() data.Value { return m.d.NewConfiguration(m.Active).States }
	return m
}}

// newMacrostep begins a macrostep of an instance with these active nodes. release ends it.
func (d *Definition) newMacrostep(in *Instance, active chart.NodeSet, caller *Caller, now time.Time) *macrostep {
	m := macrosteps.Get().(*macrostep)
	m.d, m.in, m.caller, m.budget = d, *in, caller, expr.NewBudget(fault.MaxCost)
	m.Chart, m.State, m.Budget = &d.Definition, &m.in.State, &m.budget
	m.Active = append(m.Active[:0], active...)
	m.scope.Public, m.scope.Private, m.scope.User, m.scope.Now, m.scope.Budget = in.Public, in.Private, caller.User(), now, &m.budget
	m.scope.Instance = d.exprInstance(in, m.scope.Instance.States)
	m.scope.Parent = exprParent(in)
	if d.Semantics == chart.SCXMLSemantics {
		m.scope.Locals = signal.None
	}
	return m
}

// release gives the buffers of a macrostep back. What it made must have been copied out.
func (m *macrostep) release() {
	in, states := m.scope.In, m.scope.Instance.States
	active, leave, enter, seen, outputs := m.Active[:0], m.leave[:0], m.enter[:0], m.seen[:0], m.outputs[:0]
	domains, picked, queue := emptied(m.domains), emptied(m.picked), m.queue.Emptied()
	*m = macrostep{} // NB: cleared in place; a value with these fields would be made elsewhere and copied
	m.Active, m.leave, m.enter, m.seen, m.outputs, m.domains, m.picked, m.queue = active, leave, enter, seen, outputs, domains, picked, queue
	m.scope.In, m.scope.Instance.States = in, states
	macrosteps.Put(m)
}

func emptied[T any](s []T) []T {
	const kept = 64
	if cap(s) > kept {
		return nil
	}
	clear(s[:cap(s)])
	return s[:0]
}

func (d *Definition) exprInstance(in *Instance, states func() data.Value) expr.Instance {
	return expr.Instance{
		ID:         in.ID,
		WorkflowID: string(d.ID),
		Version:    int(d.Version),
		CreatedAt:  in.CreatedAt,
		States:     states,
	}
}

func (m *macrostep) setEvent(e expr.Event) {
	m.event = e
	m.scope.Event = &m.event
}

func (m *macrostep) enqueue(e signal.Raised) {
	if err := m.queue.Put(e); err != nil {
		m.fail(err)
	}
}

func (m *macrostep) isSpent() bool {
	if m.budget.Exhausted() {
		m.fail(fault.ErrTooCostly)
		return true
	}
	return false
}

func (m *macrostep) raiseError(cause error) {
	if m.isSpent() {
		return
	}
	name, s := errorExecution, signal.Signal{}
	cause = m.place(cause, nil)
	if of := (*fault.Dispatch)(nil); errors.As(cause, &of) {
		name, s = of.Event, signal.Signal{SendID: of.SendID}
	}
	reason := append(data.Value(`{"message":`), data.AppendString(nil, data.Shorten(cause.Error()))...)
	at := (*fault.Placed)(nil)
	errors.As(cause, &at)
	m.enqueue(signal.Raised{Name: name, Data: append(reason, '}'), Fault: at.Fault, Signal: s})
}

const (
	errorExecution     EventName = "error.execution"
	errorCommunication EventName = "error.communication"
)

func (m *macrostep) fail(err error) {
	if m.failure == nil {
		m.failure = err
	}
}

func (m *macrostep) setDocument(r chart.Document, v data.Value) error {
	m.budget.ChargeBytes(len(v))
	if r == chart.Private {
		m.in.Private, m.scope.Private = v, v
	} else {
		m.in.Public, m.scope.Public = v, v
	}
	if len(m.in.Public)+len(m.in.Private) > MaxDataBytes {
		m.fail(ErrTooLarge)
		return ErrTooLarge
	}
	return nil
}

func (m *macrostep) setSignal(name EventName, s *signal.Signal, eventData data.Value) {
	m.budget.ChargeBytes(len(eventData))
	m.scope.Locals = s.Variables(name, eventData)
}

func (m *macrostep) isInternal() bool { return m.caller == chart.SystemCaller }
