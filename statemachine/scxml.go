package statemachine

import (
	"errors"
	"slices"
	"strconv"

	"troupe/statemachine/data"
)

// What a move does differently with the rules of SCXML (statemachine/DEFINITION.md, "Rules of SCXML").

// signalVariable is the variable of expressions that has the event as W3C SCXML, section 5.10.1, describes it.
const signalVariable = "_event"

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
func (m *move) setSignal(name EventName, s *signal, brought data.Value) {
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
	m.scope.Locals = map[string]data.Value{signalVariable: append(append(v, brought...), '}')}
}

// noSignal are the variables before the first event.
var noSignal = map[string]data.Value{signalVariable: data.Value("null")}

// sessionPrefix is that of the name by which instances reach each other (W3C SCXML, section C.1).
const sessionPrefix = "#_scxml_"

// arrive is what comes before the selection for an event from outside: finalize and autoforward (W3C SCXML, Appendix D,
// mainEventLoop). It reports whether that did something.
func (m *move) arrive(e *Event) (touched bool) {
	s := e.signal
	if s.kind = externalSignal; e.Name == errorCommunication {
		s.kind = platformSignal // what the service finds out, and nobody has sent
	}
	m.setSignal(e.Name, &s, e.Data)
	for i := range m.in.children {
		c := &m.in.children[i]
		if c.invoke.scxmlInvoke == nil {
			continue
		}
		if c.name == s.invokeID && s.invokeID != "" && c.invoke.finalize != nil {
			m.runBlock(c.invoke.finalize)
			touched = true
		}
		if c.status == ChildRuns && c.invoke.autoforward && e.Name != parentCancelled && s.kind == externalSignal {
			m.forward(&Forward{Child: c.end(), Event: e.Name, Data: e.Data, SendID: s.sendID})
			touched = true
		}
	}
	return touched
}

// stop ends the macrostep when a final node at the top was entered, or with the rules of XState when all machines have
// come to one: what waits is dropped, and all exits run. The
// configuration stays, so that everybody sees where the instance has ended (W3C SCXML, Appendix D, exitInterpreter).
func (m *move) stop() {
	m.dropQueue()
	m.toInvoke = nil
	m.leaveAll()
}

// leaveAll runs the exits of all active nodes. Nobody takes their errors, which only the rules of SCXML forgive.
func (m *move) leaveAll() {
	for i := m.active.previous(len(m.d.nodes) - 1); i > 0; i = m.active.previous(i - 1) {
		m.runBlock(m.d.nodes[i].exit)
	}
	for _, e := range m.queue[m.head:] {
		if e.name == errorExecution && m.d.semantics != scxmlSemantics {
			m.failUntaken(e)
		}
	}
	m.dropQueue()
}

func (m *move) dropQueue() {
	clear(m.queue)
	m.queue, m.head, m.waiting = m.queue[:0], 0, 0
}

// open runs the actions of the default entry of a node, and of the history nodes in it.
func (m *move) open(n *node) {
	for _, of := range append([]*node{n}, n.histories...) {
		if i := slices.Index(m.byDefault, of); i >= 0 {
			m.byDefault = slices.Delete(m.byDefault, i, i+1)
			m.runBlock(of.opening)
		}
	}
}

// parameter is one member of data; the member is missing when its expression fails (W3C SCXML, section 5.7).
type parameter struct {
	name  string
	value *template
}

// payload is data for others: a value, with more members when it is an object.
type payload struct {
	value  *template // nil: none
	params []parameter
}

var errPayload = errors.New("params can be added to an object only")

// of evaluates the data in the move; absent when there is none.
func (p payload) of(m *move) (data.Value, error) {
	var v data.Value
	if p.value != nil {
		var err error
		if v, err = p.value.eval(&m.scope); err != nil {
			return nil, err
		}
	}
	if p.params == nil {
		return v, nil
	}
	if len(v) > 0 && v.Kind() != data.Object {
		return nil, errPayload
	}
	for _, param := range p.params {
		member, err := param.value.eval(&m.scope)
		if err != nil {
			m.raiseError(err)
			continue
		}
		if len(v) == 0 {
			v = emptyObject
		}
		if v, err = data.Set(v, data.Path{param.name}, member); err != nil {
			return nil, err
		}
	}
	if len(v) > maxTemplateBytes {
		return nil, errTemplateTooLarge
	}
	return v, nil
}

// outputOf is the data of a final node.
func (m *move) outputOf(n *node) (data.Value, error) {
	switch {
	case n.params != nil:
		return payload{n.output, n.params}.of(m)
	case n.output != nil:
		return n.output.eval(&m.scope)
	}
	return nil, nil
}

// place is a path that an action sets. SCXML tells only when the action runs that nothing can be set there.
type place struct {
	root root
	path data.Path
	bad  error // why nothing can be set there; nil: it can
}

func (p *place) set(m *move, v data.Value) error {
	if p.bad != nil {
		return p.bad
	}
	return m.setPath(p.root, p.path, v)
}

// setPlaces is assign where some place may be a bad one.
type setPlaces struct {
	places []place
	values []*template
}

func (a setPlaces) run(m *move) error {
	for i := range a.places {
		v, err := a.values[i].eval(&m.scope)
		if err == nil {
			err = a.places[i].set(m, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// block is a block of its own: an error in it does not end the one around it (W3C SCXML, section 4.9).
type block struct{ actions []action }

func (a block) run(m *move) error {
	m.runBlock(a.actions)
	return nil
}

// forEachPlace is forEach with variables that stay: places of the data (W3C SCXML, section 4.6).
type forEachPlace struct {
	list  *template
	item  place
	index *place // nil: not wanted
	body  []action
}

var errNoList = errors.New("foreach: not a list")

func (a forEachPlace) run(m *move) error {
	list, err := a.list.eval(&m.scope)
	switch {
	case err != nil:
		return err
	case list.Kind() != data.Array:
		return errNoList
	case a.item.bad != nil:
		return a.item.bad
	case a.index != nil && a.index.bad != nil:
		return a.index.bad
	}
	for i, v := range list.Elements() {
		if m.budget.Charge(1); m.isSpent() { // the body may be empty
			return m.failure
		}
		if err := a.item.set(m, v); err != nil {
			return err
		}
		if a.index != nil {
			if err := a.index.set(m, data.Value(strconv.Itoa(i))); err != nil {
				return err
			}
		}
		if err := m.runAll(a.body); err != nil {
			return err
		}
	}
	return nil
}
