package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

// processors are the names of the only way to send events.
var processors = []string{"", "scxml", "http://www.w3.org/TR/scxml/", "http://www.w3.org/TR/scxml", processor}

// dispatchError is an error of an event that was sent. It names the send.
type dispatchError struct {
	event  EventName
	sendID string
	cause  error
}

func (e *dispatchError) Error() string { return "send: " + e.cause.Error() }

func (e *dispatchError) Unwrap() error { return e.cause }

// errUnreachable: there is nobody at the target; error.communication then.
var errUnreachable = errors.New("nobody is there")

func (m *macrostep) runDispatch(a *chart.Dispatch) error {
	id := a.ID
	if a.IDTo != nil {
		part := m.nextPart()
		id = fmt.Sprintf("send.%d.%d", part.Sequence, part.Number)
		if err := m.setPlace(a.IDTo, data.AppendString(nil, id)); err != nil {
			return err
		}
	}
	if err := m.sendAs(a, id); err != nil {
		if m.failure != nil {
			return err
		}
		event := errorExecution
		if errors.Is(err, errUnreachable) {
			event = errorCommunication
		}
		return &dispatchError{event, id, err}
	}
	return nil
}

func (m *macrostep) sendAs(a *chart.Dispatch, id string) error {
	var texts [3]string
	for i, t := range []*chart.Template{a.Event, a.To, a.Kind} {
		if t == nil {
			continue
		}
		v, err := t.Eval(&m.scope)
		if err != nil {
			return err
		}
		if v.Kind() != data.String {
			return fmt.Errorf("%s is no text", data.Shorten(string(v)))
		}
		texts[i] = v.Text()
	}
	name, ok := ParseEventName(texts[0])
	if !ok {
		return fmt.Errorf("%q is not an event name", data.Shorten(texts[0]))
	}
	if !slices.Contains(processors, texts[2]) {
		return fmt.Errorf("type %q is not supported", data.Shorten(texts[2]))
	}
	due, err := m.due(a.Delay)
	if err != nil {
		return err
	}
	v, err := m.payload(a.Payload)
	if err != nil {
		return err
	}
	return m.dispatch(&record.TimerState{Due: due, Event: name, Send: id, Data: v, To: texts[1]})
}

// dispatch sends an event to where t.To says, now or when it is due.
func (m *macrostep) dispatch(t *record.TimerState) error {
	if t.To == sessionPrefix+m.in.ID {
		t.To = ""
	}
	switch {
	case t.To == "":
		m.begin(*t)
		return m.failure
	case t.To == "#_internal":
		m.enqueue(internalEvent{name: t.Event, data: t.Data, signal: signal{kind: internalSignal, sendID: t.Send}})
		return m.failure
	}
	f, err := m.aim(t)
	switch {
	case err != nil:
		return err
	case t.Due.After(m.scope.Now):
		m.begin(*t)
	default:
		m.forward(f)
	}
	return m.failure
}

// aim finds the parent or the child that an event is for.
func (m *macrostep) aim(t *record.TimerState) (*Forward, error) {
	f := &Forward{Event: t.Event, Data: t.Data, SendID: t.Send}
	name, ok := strings.CutPrefix(t.To, "#_")
	switch {
	case !ok:
		return nil, fmt.Errorf("target %q is not supported", data.Shorten(t.To))
	case name == "parent", m.in.State.Parent != nil && t.To == sessionPrefix+m.in.State.Parent.Instance:
		if m.in.State.Parent == nil {
			return nil, errUnreachable
		}
		f.Parent = m.in.State.Parent
		return f, nil
	}
	for i := range m.in.State.Children {
		if c := &m.in.State.Children[i]; c.Status == ChildRuns && c.Name == name {
			f.Child = endOf(c)
			return f, nil
		}
	}
	return nil, errUnreachable
}

// Forward is an event for the parent, or for a child.
type Forward struct {
	Parent *Parent   // nil: to the child
	Child  *ChildEnd // nil: to the parent
	Event  EventName
	Data   data.Value
	SendID string
}

func (m *macrostep) forward(f *Forward) { m.putDelivery(Out{Forward: f}, len(f.Data)) }

// signal is what is known of an event that the instance has sent to itself.
func signalOf(t *record.TimerState, in *Instance) signal {
	if t.After != nil || t.Child != nil {
		return signal{}
	}
	return signal{sendID: t.Send, origin: sessionPrefix + in.ID}
}

// fireOut makes the step of an event that leaves the instance with a delay.
func (d *Definition) fireOut(in *Instance, t *record.TimerState, now time.Time) (Result, error) {
	m := d.newMacrostep(in, in.State.At.Active, chart.SystemCaller, in.NextTime(now))
	defer m.release()
	if in.State.Ended {
		return Result{}, ErrEnded
	}
	m.in.Redirect = ""
	f, err := m.aim(t)
	if err != nil {
		m.raiseError(&dispatchError{errorCommunication, t.Send, err})
		m.runToCompletion()
	} else {
		m.forward(f)
	}
	return m.result(Moved, in.State.At.End, t.Event, in)
}

// Heard is an event that a Forward has brought. From and Number say which it was, so that one that comes twice is taken once:
// the history entry of the sender that sent it, and its place there.
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
func (d *Definition) withHeard(in *Instance, h Heard) (*Instance, signal, error) {
	next := *in
	var from signal
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
		from = signal{sendID: h.SendID, origin: "#_" + c.Name, invokeID: c.Name}
	case in.State.Parent == nil:
		return nil, from, ErrNoChild
	default:
		parent := *in.State.Parent
		next.State.Parent, last = &parent, &parent.Heard
		from = signal{sendID: h.SendID, origin: sessionPrefix + parent.Instance}
	}
	if h.From.Compare(*last) <= 0 || d.Semantics != chart.SCXMLSemantics && IsReserved(h.Event) || d.ServiceEvents[h.Event] {
		return nil, from, nil
	}
	*last = h.From
	return &next, from, nil
}

func endOf(c *record.ChildState) *ChildEnd {
	return &ChildEnd{ID: c.ID, Begun: c.Begun, Workflow: c.WorkflowID()}
}

// invocation evaluates an invoke. start has an ID.
func (m *macrostep) invocation(inv *chart.Invoke, start *ChildStart) (of record.Invoked, err error) {
	if of.Name = inv.ID; of.Name == "" {
		of.Name = fmt.Sprintf("%s.%d.%d", inv.Node.ID, start.ID.Sequence, start.ID.Number)
	}
	if inv.IDTo != nil {
		if err := m.setPlace(inv.IDTo, data.AppendString(nil, of.Name)); err != nil {
			return of, err
		}
	}
	if inv.Kind != nil {
		kind, err := inv.Kind.Eval(&m.scope)
		if err != nil {
			return of, err
		}
		if kind.Kind() != data.String || !slices.Contains(processors[1:4], kind.Text()) {
			return of, fmt.Errorf("invoke: type %s is not supported", data.Shorten(string(kind)))
		}
	}
	if inv.SCXMLInvoke.Workflow != nil {
		v, err := inv.SCXMLInvoke.Workflow.Eval(&m.scope)
		if err != nil {
			return of, err
		}
		if v.Kind() != data.String || !IsIdentifier(v.Text()) {
			return of, fmt.Errorf("invoke: %s cannot be the id of a workflow", data.Shorten(string(v)))
		}
		of.Workflow = v.Text()
		start.Workflow = of.Workflow
	}
	if start.Public, err = m.payload(inv.Payload); err == nil && len(start.Public) > 0 && start.Public.Kind() != data.Object {
		err = errChildData
	}
	if err == nil {
		start.Private, err = m.childData(inv.Private)
	}
	return of, err
}

// toldName is the event of what has become of a child.
func toldName(in *Instance, id ElementID, failed bool) EventName {
	if failed {
		return errorCommunication
	}
	return EventName("done.invoke." + in.State.ChildName(id))
}

// toldEvent is that event. Its data is what the child has put out.
func toldEvent(in *Instance, id ElementID, failed bool, brought data.Value, now time.Time) *Event {
	e := &Event{Name: toldName(in, id, failed), Data: brought, Caller: chart.SystemCaller, Now: now}
	e.signal.invokeID = in.State.ChildName(id)
	if output, ok := brought.Lookup("output"); ok && !failed {
		e.Data = output
		if output.Kind() == data.Null {
			e.Data = nil
		}
	}
	return e
}
