package statemachine

import (
	"slices"

	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/record"
	"troupe/statemachine/internal/signal"
)

func (m *macrostep) endInstance(leaving bool) {
	if leaving {
		m.leaveAll()
	}
	m.in.State.Ended, m.in.State.Timers, m.in.State.Jobs = true, nil, nil
	m.cancelChildren(func(*record.ChildState) bool { return true })
}

// runToCompletion takes eventless transitions and internal events until there are no more
// (statemachine/DEFINITION.md, "Run to completion").
func (m *macrostep) runToCompletion() {
	for m.failure == nil && !m.isSpent() {
		if m.stopped || m.d.StopsAt(m.Active) {
			m.stop()
			return
		}
		if picked, _ := m.selectTransitions(trigger{}); len(picked) > 0 {
			m.microstep(picked)
			continue
		}
		if !m.queue.IsEmpty() {
			m.takeInternal()
			continue
		}
		if len(m.toInvoke) == 0 {
			return
		}
		m.beginChildren()
	}
}

// takeInternal takes the first event of the internal queue. An error.execution that
// no transition takes fails the macrostep (statemachine/DEFINITION.md, "Errors").
func (m *macrostep) takeInternal() {
	e := m.queue.Take()
	m.setEvent(expr.Event{Name: string(e.Name), Data: e.Data})
	if m.d.Semantics == chart.SCXMLSemantics {
		m.setSignal(e.Name, &e.Signal, e.Data)
	}
	picked, _ := m.selectTransitions(trigger{name: e.Name, done: e.Done})
	if len(picked) > 0 {
		m.microstep(picked)
		return
	}
	if e.Name == errorExecution && m.d.Semantics != chart.SCXMLSemantics {
		m.failUntaken(e)
	}
}

func (m *macrostep) failUntaken(e signal.Raised) {
	if e.Fault != nil {
		m.fail(fault.Execution{Reason: e.Fault.Error(), Fault: e.Fault})
		return
	}
	text := "" // an action has raised it
	if v, ok := e.Data.Lookup("message"); ok {
		text = v.Text()
	}
	m.fail(fault.Execution{Reason: text})
}

// microstep leaves nodes, runs the transitions' actions and enters nodes (SCXML appendix D, microstep).
func (m *macrostep) microstep(picked []*chart.Transition) {
	if m.microsteps++; m.microsteps > fault.MaxMicrosteps {
		m.fail(fault.ErrTooManyMicrosteps)
		m.placeBound(picked[0].Line)
		return
	}
	m.leave, m.enter = m.leave.EmptyFor(len(m.d.Nodes)), m.enter.EmptyFor(len(m.d.Nodes))
	leave, enter := m.leave, m.enter
	m.ByDefault = m.ByDefault[:0]
	// The domains are those before the exit. SCXML computes them again for the entry, when history nodes remember something else, and can
	// then leave a gap between what was left and what is entered.
	domains := append(m.domains[:0], make([]*chart.Node, len(picked))...)
	m.domains = domains
	for i, t := range picked {
		if len(t.Targets) == 0 {
			continue
		}
		domains[i] = m.Domain(t)
		for j := m.Active.Next(domains[i].Index + 1); j >= 0 && j <= domains[i].Last; j = m.Active.Next(j + 1) {
			leave.Add(j)
		}
	}
	m.exit(leave)
	for _, t := range picked {
		m.d.coverage.Take(t)
		m.runBlock(t.Actions)
	}
	for i, t := range picked {
		if domains[i] != nil {
			m.PlanEntry(enter, t.Targets, domains[i])
		}
	}
	m.enterAll(enter)
}

// exit leaves the nodes in reverse document order, after the history nodes beside them have recorded what is active
// (statemachine/DEFINITION.md, "Exit and entry order").
func (m *macrostep) exit(leave chart.NodeSet) {
	for i := leave.Next(1); i >= 0; i = leave.Next(i + 1) {
		for _, h := range m.d.Nodes[i].Histories {
			m.Remember(h)
		}
	}
	for i := leave.Previous(len(m.d.Nodes) - 1); i > 0; i = leave.Previous(i - 1) {
		m.Look(fault.LooksPerNode)
		m.runBlock(m.d.Nodes[i].Exit)
		m.endAfter(m.d.Nodes[i])
		if m.d.Nodes[i].Task != nil {
			m.endTask(m.d.Nodes[i])
		}
		m.endChildren(m.d.Nodes[i])
		m.Active.Remove(i)
	}
}

func (m *macrostep) enterAll(enter chart.NodeSet) {
	for i := enter.Next(1); i >= 0; i = enter.Next(i + 1) {
		if m.Active.Has(i) {
			continue
		}
		n := m.d.Nodes[i]
		m.Look(fault.LooksPerNode)
		m.Active.Add(i)
		m.d.coverage.Enter(n)
		m.runBlock(n.Entry)
		if n.Opens {
			m.open(n)
		}
		m.beginAt(n)
		if n.Kind == Final {
			m.finish(n)
		}
	}
}

// finish raises done.state for the parent of a final node, and for the parallel node above it when that is its last region
// (statemachine/DEFINITION.md, "Final nodes and done events").
func (m *macrostep) finish(n *chart.Node) {
	p := n.Parent
	if p.Machine == p && m.d.Semantics == chart.SCXMLSemantics {
		m.stopped = true
		return
	}
	output, err := m.outputOf(n)
	if err != nil {
		m.raiseError(err)
	}
	if p.Machine == p && m.in.State.Parent != nil {
		m.outputs = append(m.outputs, machineOutput{n, output})
	}
	m.enqueue(signal.Raised{Name: p.Done, Data: output, Done: p})
	for g := p.Parent; g != nil && g.Parent != nil && g.Kind == Parallel && chart.IsDone(g, m.Active); g = g.Parent {
		m.enqueue(signal.Raised{Name: g.Done, Done: g})
		if m.d.Semantics != chart.XstateSemantics {
			return // W3C SCXML, Appendix D, enterStates: a parallel node around this one hears nothing
		}
	}
}

// stop ends the macrostep when a final node at the top was entered, or with the rules of XState when all machines have
// come to one: what waits is dropped, and all exits run. The
// configuration stays, so that everybody sees where the instance has ended (W3C SCXML, Appendix D, exitInterpreter).
func (m *macrostep) stop() {
	m.queue.Drop()
	m.toInvoke = nil
	m.leaveAll()
}

// leaveAll runs the exits of all active nodes. Nobody takes their errors, which only the rules of SCXML forgive.
func (m *macrostep) leaveAll() {
	for i := m.Active.Previous(len(m.d.Nodes) - 1); i > 0; i = m.Active.Previous(i - 1) {
		m.runBlock(m.d.Nodes[i].Exit)
	}
	for _, e := range m.queue.Waiting() {
		if e.Name == errorExecution && m.d.Semantics != chart.SCXMLSemantics {
			m.failUntaken(e)
		}
	}
	m.queue.Drop()
}

// open runs the actions of the default entry of a node, and of the history nodes in it.
func (m *macrostep) open(n *chart.Node) {
	for _, of := range append([]*chart.Node{n}, n.Histories...) {
		if i := slices.Index(m.ByDefault, of); i >= 0 {
			m.ByDefault = slices.Delete(m.ByDefault, i, i+1)
			m.runBlock(of.Opening)
		}
	}
}
