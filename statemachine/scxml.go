package statemachine

import (
	"errors"
	"slices"
	"strconv"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// What a macrostep does differently with the rules of SCXML (statemachine/DEFINITION.md, "Rules of SCXML").

// processor is the type of events that SCXML sessions send each other (W3C SCXML, section C.1).
const processor = "http://www.w3.org/TR/scxml/#SCXMLEventProcessor"

// signalKind is _event.type.
type signalKind uint8

const (
	platformSignal signalKind = iota
	internalSignal
	externalSignal
)

var signalKinds = [...]string{"platform", "internal", "external"}

// signal is what SCXML knows of an event besides its name and data. Origin is where an answer goes to.
type signal struct {
	kind                     signalKind
	sendID, origin, invokeID string
}

// setSignal sets the variable _event. What is not known is null.
func (m *macrostep) setSignal(name EventName, s *signal, brought data.Value) {
	m.budget.ChargeBytes(len(brought))
	v := data.AppendString(data.Value(`{"name":`), string(name))
	v = data.AppendString(append(v, `,"type":`...), signalKinds[s.kind])
	origin := ""
	if s.origin != "" {
		origin = processor
	}
	for _, member := range []struct{ key, text string }{
		{"sendid", s.sendID}, {"origin", s.origin}, {"origintype", origin}, {"invokeid", s.invokeID},
	} {
		v = append(data.AppendString(append(v, ','), member.key), ':')
		if member.text == "" {
			v = append(v, "null"...)
			continue
		}
		v = data.AppendString(v, member.text)
	}
	v = append(v, `,"data":`...)
	if len(brought) == 0 {
		brought = data.Value("null")
	}
	m.scope.Locals = map[string]data.Value{chart.SignalVariable: append(append(v, brought...), '}')}
}

// noSignal are the variables before the first event.
var noSignal = map[string]data.Value{chart.SignalVariable: data.Value("null")}

// sessionPrefix is that of the name by which instances reach each other (W3C SCXML, section C.1).
const sessionPrefix = "#_scxml_"

// arrive is what comes before the selection for an event from outside: finalize and autoforward (W3C SCXML, Appendix D,
// mainEventLoop). It reports whether that did something.
func (m *macrostep) arrive(e *Event) (touched bool) {
	s := e.signal
	if s.kind = externalSignal; e.Name == errorCommunication {
		s.kind = platformSignal // what the service finds out, and nobody has sent
	}
	m.setSignal(e.Name, &s, e.Data)
	for i := range m.in.State.Children {
		c := &m.in.State.Children[i]
		if c.Invoke.SCXMLInvoke == nil {
			continue
		}
		if c.Name == s.invokeID && s.invokeID != "" && c.Invoke.Finalize != nil {
			m.runBlock(c.Invoke.Finalize)
			touched = true
		}
		if c.Status == ChildRuns && c.Invoke.Autoforward && e.Name != chart.ParentCancelled && s.kind == externalSignal {
			m.forward(&Forward{Child: endOf(c), Event: e.Name, Data: e.Data, SendID: s.sendID})
			touched = true
		}
	}
	return touched
}

// stop ends the macrostep when a final node at the top was entered, or with the rules of XState when all machines have
// come to one: what waits is dropped, and all exits run. The
// configuration stays, so that everybody sees where the instance has ended (W3C SCXML, Appendix D, exitInterpreter).
func (m *macrostep) stop() {
	m.dropQueue()
	m.toInvoke = nil
	m.leaveAll()
}

// leaveAll runs the exits of all active nodes. Nobody takes their errors, which only the rules of SCXML forgive.
func (m *macrostep) leaveAll() {
	for i := m.active.Previous(len(m.d.Nodes) - 1); i > 0; i = m.active.Previous(i - 1) {
		m.runBlock(m.d.Nodes[i].Exit)
	}
	for _, e := range m.queue[m.head:] {
		if e.name == errorExecution && m.d.Semantics != chart.SCXMLSemantics {
			m.failUntaken(e)
		}
	}
	m.dropQueue()
}

func (m *macrostep) dropQueue() {
	clear(m.queue)
	m.queue, m.head, m.waiting = m.queue[:0], 0, 0
}

// open runs the actions of the default entry of a node, and of the history nodes in it.
func (m *macrostep) open(n *chart.Node) {
	for _, of := range append([]*chart.Node{n}, n.Histories...) {
		if i := slices.Index(m.byDefault, of); i >= 0 {
			m.byDefault = slices.Delete(m.byDefault, i, i+1)
			m.runBlock(of.Opening)
		}
	}
}

var errPayload = errors.New("params can be added to an object only")

// of evaluates the data in the macrostep; absent when there is none.
func (m *macrostep) payload(p chart.Payload) (data.Value, error) {
	var v data.Value
	if p.Value != nil {
		var err error
		if v, err = p.Value.Eval(&m.scope); err != nil {
			return nil, err
		}
	}
	if p.Params == nil {
		return v, nil
	}
	if len(v) > 0 && v.Kind() != data.Object {
		return nil, errPayload
	}
	for _, param := range p.Params {
		member, err := param.Value.Eval(&m.scope)
		if err != nil {
			m.raiseError(err)
			continue
		}
		if len(v) == 0 {
			v = chart.EmptyObject
		}
		if v, err = data.Set(v, data.Path{param.Name}, member); err != nil {
			return nil, err
		}
	}
	if len(v) > chart.MaxTemplateBytes {
		return nil, chart.ErrTemplateTooLarge
	}
	return v, nil
}

// outputOf is the data of a final node.
func (m *macrostep) outputOf(n *chart.Node) (data.Value, error) {
	switch {
	case n.Params != nil:
		return m.payload(chart.Payload{Value: n.Output, Params: n.Params})
	case n.Output != nil:
		return n.Output.Eval(&m.scope)
	}
	return nil, nil
}

func (m *macrostep) setPlace(p *chart.Place, v data.Value) error {
	if p.Bad != nil {
		return p.Bad
	}
	return m.setPath(p.Root, p.Path, v)
}

func (m *macrostep) runSetPlaces(a *chart.SetPlaces) error {
	for i := range a.Places {
		v, err := a.Values[i].Eval(&m.scope)
		if err == nil {
			err = m.setPlace(&a.Places[i], v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errNoList = errors.New("foreach: not a list")

func (m *macrostep) runForEachPlace(a *chart.ForEachPlace) error {
	list, err := a.List.Eval(&m.scope)
	switch {
	case err != nil:
		return err
	case list.Kind() != data.Array:
		return errNoList
	case a.Item.Bad != nil:
		return a.Item.Bad
	case a.Index != nil && a.Index.Bad != nil:
		return a.Index.Bad
	}
	for i, v := range list.Elements() {
		if m.budget.Charge(1); m.isSpent() { // the body may be empty
			return m.failure
		}
		if err := m.setPlace(&a.Item, v); err != nil {
			return err
		}
		if a.Index != nil {
			if err := m.setPlace(a.Index, data.Value(strconv.Itoa(i))); err != nil {
				return err
			}
		}
		if err := m.runAll(a.Body); err != nil {
			return err
		}
	}
	return nil
}
