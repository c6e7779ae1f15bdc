package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
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
	return m.dispatch(&timer{due: due, event: name, send: id, data: v, to: texts[1]})
}

// dispatch sends an event to where t.to says, now or when it is due.
func (m *macrostep) dispatch(t *timer) error {
	if t.to == sessionPrefix+m.in.ID {
		t.to = ""
	}
	switch {
	case t.to == "":
		m.begin(*t)
		return m.failure
	case t.to == "#_internal":
		m.enqueue(internalEvent{name: t.event, data: t.data, signal: signal{kind: internalSignal, sendID: t.send}})
		return m.failure
	}
	f, err := m.aim(t)
	switch {
	case err != nil:
		return err
	case t.due.After(m.scope.Now):
		m.begin(*t)
	default:
		m.forward(f)
	}
	return m.failure
}

// aim finds the parent or the child that an event is for.
func (m *macrostep) aim(t *timer) (*Forward, error) {
	f := &Forward{Event: t.event, Data: t.data, SendID: t.send}
	name, ok := strings.CutPrefix(t.to, "#_")
	switch {
	case !ok:
		return nil, fmt.Errorf("target %q is not supported", data.Shorten(t.to))
	case name == "parent", m.in.parent != nil && t.to == sessionPrefix+m.in.parent.Instance:
		if m.in.parent == nil {
			return nil, errUnreachable
		}
		f.Parent = m.in.parent
		return f, nil
	}
	for i := range m.in.children {
		if c := &m.in.children[i]; c.status == ChildRuns && c.name == name {
			f.Child = c.end()
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
func (t *timer) signal(in *Instance) signal {
	if t.after != nil || t.told != nil {
		return signal{}
	}
	return signal{sendID: t.send, origin: sessionPrefix + in.ID}
}

// fireOut makes the step of an event that leaves the instance with a delay.
func (d *Definition) fireOut(in *Instance, t *timer, now time.Time) (Result, error) {
	m := d.newMacrostep(in, in.at.Active, chart.SystemCaller, in.timeOf(now))
	defer m.release()
	if in.ended {
		return Result{}, ErrEnded
	}
	m.in.Redirect = ""
	f, err := m.aim(t)
	if err != nil {
		m.raiseError(&dispatchError{errorCommunication, t.send, err})
		m.runToCompletion()
	} else {
		m.forward(f)
	}
	return m.result(Moved, in.at.End, t.event, in)
}

// Heard is an event that a Forward has brought. From and Number say which it was, so that one that comes twice is taken once:
// the history entry of the sender that sent it, and its place there.
type Heard struct {
	// Child is how the instance calls the child that has sent the event; nil: its parent has.
	Child  *PartID
	Event  EventName
	Data   data.Value
	SendID string
	From   PartID
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
	var last *PartID
	switch {
	case in.ended:
		return nil, from, ErrEnded
	case h.Child != nil:
		i := slices.IndexFunc(in.children, func(c child) bool { return c.id == *h.Child && c.status == ChildRuns })
		if i < 0 {
			return nil, from, ErrNoChild
		}
		next.children = slices.Clone(in.children)
		c := &next.children[i]
		last = &c.heard
		from = signal{sendID: h.SendID, origin: "#_" + c.name, invokeID: c.name}
	case in.parent == nil:
		return nil, from, ErrNoChild
	default:
		parent := *in.parent
		next.parent, last = &parent, &parent.heard
		from = signal{sendID: h.SendID, origin: sessionPrefix + parent.Instance}
	}
	if h.From.compare(*last) <= 0 || d.Semantics != chart.SCXMLSemantics && IsReserved(h.Event) || d.ServiceEvents[h.Event] {
		return nil, from, nil
	}
	*last = h.From
	return &next, from, nil
}

func (id PartID) compare(other PartID) int {
	switch {
	case id == other:
		return 0
	case id.Sequence < other.Sequence || id.Sequence == other.Sequence && id.Number < other.Number:
		return -1
	}
	return 1
}

// invoked is what a child has beyond its invoke: a name by which events reach it, and its workflow where that is computed.
type invoked struct {
	name, workflow string // "": none, and that of the invoke
	heard          PartID // the last event that came from it
}

func (c *child) workflowID() string {
	if c.workflow != "" {
		return c.workflow
	}
	return c.invoke.Workflow
}

func (c *child) end() *ChildEnd { return &ChildEnd{ID: c.id, Begun: c.begun, Workflow: c.workflowID()} }

// invocation evaluates an invoke. start has an ID.
func (m *macrostep) invocation(inv *chart.Invoke, start *ChildStart) (of invoked, err error) {
	if of.name = inv.ID; of.name == "" {
		of.name = fmt.Sprintf("%s.%d.%d", inv.Node.ID, start.ID.Sequence, start.ID.Number)
	}
	if inv.IDTo != nil {
		if err := m.setPlace(inv.IDTo, data.AppendString(nil, of.name)); err != nil {
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
		of.workflow = v.Text()
		start.Workflow = of.workflow
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
func (in *Instance) toldName(id PartID, failed bool) EventName {
	if failed {
		return errorCommunication
	}
	return EventName("done.invoke." + in.childName(id))
}

func (in *Instance) childName(id PartID) string {
	for i := range in.children {
		if in.children[i].id == id {
			return in.children[i].name
		}
	}
	return ""
}

// toldEvent is that event. Its data is what the child has put out.
func (in *Instance) toldEvent(id PartID, failed bool, brought data.Value, now time.Time) *Event {
	e := &Event{Name: in.toldName(id, failed), Data: brought, Caller: chart.SystemCaller, Now: now}
	e.signal.invokeID = in.childName(id)
	if output, ok := brought.Lookup("output"); ok && !failed {
		e.Data = output
		if output.Kind() == data.Null {
			e.Data = nil
		}
	}
	return e
}
