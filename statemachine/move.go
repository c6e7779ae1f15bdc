package statemachine

import (
	"errors"
	"slices"
	"sync"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

const maxMicrosteps = 1000

const maxActions = 10_000 // actions run by one event, loops included

// maxWaiting and maxWaitingBytes bound the internal queue: more events could not
// all be taken, and raising one copies its data.
const maxWaiting = maxMicrosteps

const maxWaitingBytes = 4 << 20

const maxLogBytes = 2 << 10 // a longer log line is cut

// maxCost bounds the cost of all expressions of one event together, with copies and
// looks at the chart: ten times that of a single expression, about half a second.
const maxCost = 10_000_000

// macrostep is one macrostep while it is being made. in is a copy of the instance
// that only the macrostep changes.
type macrostep struct {
	d      *Definition
	in     Instance // all but at, which is where the instance was
	active chart.NodeSet
	caller *Caller
	scope  expr.Scope
	event  expr.Event // what scope.Event points to
	// leave, enter, domains and picked are the room of a microstep.
	leave, enter chart.NodeSet
	seen         chart.NodeSet // where the selection has looked
	domains      []*chart.Node
	picked       []*chart.Transition
	// queue is SCXML's internal queue; head is its first event.
	queue     []internalEvent
	head      int
	waiting   int // bytes of data in the queue
	logs      []string
	eventData data.Value // what the event brought that the history keeps
	// deciding are the transitions that take what a caller has sent, during their microstep; decided are the tasks that they end.
	deciding []*chart.Transition
	decided  []Task

	microsteps, actions int
	faults              int    // of expressions
	parts               uint32 // timers and children that have begun
	ownsTimers          bool   // they are this macrostep's to change; of the instance before is a copy
	ownsTasks           bool   // likewise
	out                 []Out
	outBytes            int
	toInvoke            []*chart.Node   // with children that have not begun yet
	outputs             []machineOutput // of final nodes that were entered, for the parent
	byDefault           []*chart.Node   // entered by default, of those with an opening
	stopped             bool            // a final node at the top was entered, with the rules of SCXML
	budget              expr.Budget
	// failure ends the macrostep: nothing of it is kept.
	failure error
}

// machineOutput is what a final node of a state machine gives.
type machineOutput struct {
	of    *chart.Node
	value data.Value
}

// internalEvent is an event on the internal queue.
type internalEvent struct {
	name EventName
	data data.Value
	done *chart.Node // see trigger.done
	// fault is why, of error.execution; nil for all others.
	fault *Fault
	signal
}

// macrosteps are used again: a macrostep is a large value, and most of what it needs is room.
var macrosteps = sync.Pool{New: func() any {
	m := &macrostep{}
	m.scope.In = func(name string) bool { return m.d.IsIn(m.active, name) }
	m.scope.Instance.States = func() data.Value { return m.d.NewConfiguration(m.active).States }
	return m
}}

// newMacrostep begins a macrostep of an instance with these active nodes. release ends it.
func (d *Definition) newMacrostep(in *Instance, active chart.NodeSet, caller *Caller, now time.Time) *macrostep {
	m := macrosteps.Get().(*macrostep)
	m.d, m.in, m.caller, m.budget = d, *in, caller, expr.NewBudget(maxCost)
	m.active = append(m.active[:0], active...)
	m.scope.Public, m.scope.Private, m.scope.User, m.scope.Now, m.scope.Budget = in.Public, in.Private, caller.User(), now, &m.budget
	m.scope.Instance = d.exprInstance(in, m.scope.Instance.States)
	m.scope.Parent = exprParent(in)
	if d.Semantics == chart.SCXMLSemantics {
		m.scope.Locals = noSignal
	}
	return m
}

// release gives the room of a macrostep back. What it made must have been copied out.
func (m *macrostep) release() {
	in, states := m.scope.In, m.scope.Instance.States
	active, leave, enter, seen, outputs := m.active[:0], m.leave[:0], m.enter[:0], m.seen[:0], m.outputs[:0]
	domains, picked, queue := emptied(m.domains), emptied(m.picked), emptied(m.queue)
	*m = macrostep{} // NB: cleared in place; a value with these fields would be made elsewhere and copied
	m.active, m.leave, m.enter, m.seen, m.outputs, m.domains, m.picked, m.queue = active, leave, enter, seen, outputs, domains, picked, queue
	m.scope.In, m.scope.Instance.States = in, states
	macrosteps.Put(m)
}

// emptied keeps the room of a small slice, and nothing that it pointed to.
func emptied[T any](s []T) []T {
	const kept = 64
	if cap(s) > kept {
		return nil
	}
	clear(s[:cap(s)])
	return s[:0]
}

// exprInstance is the variable instance of expressions.
func (d *Definition) exprInstance(in *Instance, states func() data.Value) expr.Instance {
	return expr.Instance{
		ID:         in.ID,
		WorkflowID: string(d.ID),
		Version:    int(d.Version),
		CreatedAt:  in.CreatedAt,
		States:     states,
	}
}

// setEvent is the event that expressions see from now on.
func (m *macrostep) setEvent(e expr.Event) {
	m.event = e
	m.scope.Event = &m.event
}

// enqueue puts an event on the internal queue, or fails the macrostep when too much
// waits there.
func (m *macrostep) enqueue(e internalEvent) {
	m.waiting += len(e.data)
	switch {
	case m.waiting > maxWaitingBytes:
		m.fail(errTooMuchWaits)
	case len(m.queue)-m.head >= maxWaiting:
		m.fail(errTooManyWait)
	default:
		m.queue = append(m.queue, e)
	}
}

// isSpent fails the macrostep when it has cost too much.
func (m *macrostep) isSpent() bool {
	if m.budget.Exhausted() {
		m.fail(errTooCostly)
		return true
	}
	return false
}

// raiseError puts error.execution on the internal queue.
func (m *macrostep) raiseError(cause error) {
	if m.isSpent() {
		return
	}
	name, s := errorExecution, signal{}
	cause = m.place(cause, nil)
	if of := (*dispatchError)(nil); errors.As(cause, &of) {
		name, s = of.event, signal{sendID: of.sendID}
	}
	reason := append(data.Value(`{"message":`), data.AppendString(nil, data.Shorten(cause.Error()))...)
	at := (*placed)(nil)
	errors.As(cause, &at)
	m.enqueue(internalEvent{name: name, data: append(reason, '}'), fault: at.Fault, signal: s})
}

const (
	errorExecution     EventName = "error.execution"
	errorCommunication EventName = "error.communication"
)

// fail ends the macrostep; the first error counts.
func (m *macrostep) fail(err error) {
	if m.failure == nil {
		m.failure = err
	}
}

// setDocument replaces svcPublic or svcPrivate.
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

// runBlock runs one block of actions; an error ends the block and is raised.
func (m *macrostep) runBlock(actions []chart.Action) {
	if m.failure != nil {
		return
	}
	if err := m.runAll(actions); err != nil && m.failure == nil {
		m.raiseError(err)
	}
}

func (m *macrostep) runAll(actions []chart.Action) error {
	for k := range actions {
		if m.actions++; m.actions > maxActions {
			m.fail(errTooManyActions)
			m.placeBound(m.d.Places.Actions[&actions[k]])
			return m.failure
		}
		err := m.run(actions[k])
		if m.isSpent() || m.failure != nil {
			m.placeBound(m.d.Places.Actions[&actions[k]])
			return m.failure
		}
		if err != nil {
			return m.place(err, &actions[k])
		}
	}
	return nil
}

// runToCompletion takes eventless transitions and internal events until there are no more
// (statemachine/DEFINITION.md, "Run to completion").
func (m *macrostep) runToCompletion() {
	for m.failure == nil && !m.isSpent() {
		if m.stopped || m.d.StopsAt(m.active) {
			m.stop()
			return
		}
		if picked, _ := m.selectTransitions(trigger{}); len(picked) > 0 {
			m.microstep(picked)
			continue
		}
		if m.head < len(m.queue) {
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
	e := m.queue[m.head]
	m.queue[m.head] = internalEvent{} // its data is not kept until the queue is empty
	m.waiting -= len(e.data)
	m.head++
	if m.head == len(m.queue) {
		m.queue, m.head = m.queue[:0], 0
	}
	m.setEvent(expr.Event{Name: string(e.name), Data: e.data})
	if m.d.Semantics == chart.SCXMLSemantics {
		m.setSignal(e.name, &e.signal, e.data)
	}
	picked, _ := m.selectTransitions(trigger{name: e.name, done: e.done})
	if len(picked) > 0 {
		m.microstep(picked)
		return
	}
	if e.name == errorExecution && m.d.Semantics != chart.SCXMLSemantics {
		m.failUntaken(e)
	}
}

// failUntaken fails the macrostep for an error.execution that no transition takes.
func (m *macrostep) failUntaken(e internalEvent) {
	if e.fault != nil {
		m.fail(executionError{e.fault.Error(), e.fault})
		return
	}
	text := "" // an action has raised it
	if v, ok := e.data.Lookup("message"); ok {
		text = v.Text()
	}
	m.fail(executionError{reason: text})
}

// microstep leaves nodes, runs the transitions' actions and enters nodes
// (SCXML appendix D, microstep).
func (m *macrostep) microstep(picked []*chart.Transition) {
	if m.microsteps++; m.microsteps > maxMicrosteps {
		m.fail(errTooManyMicrosteps)
		m.placeBound(picked[0].Line)
		return
	}
	m.leave, m.enter = m.leave.EmptyFor(len(m.d.Nodes)), m.enter.EmptyFor(len(m.d.Nodes))
	leave, enter := m.leave, m.enter
	m.byDefault = m.byDefault[:0]
	// The domains are those before the exit. SCXML computes them again for the
	// entry, when history nodes remember something else, and can then leave a
	// gap between what was left and what is entered.
	domains := append(m.domains[:0], make([]*chart.Node, len(picked))...)
	m.domains = domains
	for i, t := range picked {
		if len(t.Targets) == 0 {
			continue
		}
		domains[i] = m.domain(t)
		for j := m.active.Next(domains[i].Index + 1); j >= 0 && j <= domains[i].Last; j = m.active.Next(j + 1) {
			leave.Add(j)
		}
	}
	m.exit(leave)
	for _, t := range picked {
		m.runBlock(t.Actions)
	}
	for i, t := range picked {
		if domains[i] != nil {
			m.planEntry(enter, t.Targets, domains[i])
		}
	}
	m.enterAll(enter)
}

// exit leaves the nodes in reverse document order, after the history nodes beside
// them have recorded what is active (statemachine/DEFINITION.md,
// "Exit and entry order").
func (m *macrostep) exit(leave chart.NodeSet) {
	for i := leave.Next(1); i >= 0; i = leave.Next(i + 1) {
		for _, h := range m.d.Nodes[i].Histories {
			m.remember(h)
		}
	}
	for i := leave.Previous(len(m.d.Nodes) - 1); i > 0; i = leave.Previous(i - 1) {
		m.look(looksPerNode)
		m.runBlock(m.d.Nodes[i].Exit)
		m.endAfter(m.d.Nodes[i])
		if m.d.Nodes[i].Task != nil {
			m.endTask(m.d.Nodes[i])
		}
		m.endChildren(m.d.Nodes[i])
		m.active.Remove(i)
	}
}

func (m *macrostep) remember(h *chart.Node) {
	var nodes []int
	for i := m.active.Next(h.Parent.Index + 1); i >= 0 && i <= h.Parent.Last; i = m.active.Next(i + 1) {
		n := m.d.Nodes[i]
		if h.Kind == DeepHistory && n.IsLeaf() || h.Kind == ShallowHistory && n.Parent == h.Parent {
			nodes = append(nodes, i)
		}
	}
	m.look(h.Parent.Last - h.Parent.Index + looksPerUnit*len(m.in.State.Memory))
	kept := slices.DeleteFunc(slices.Clone(m.in.State.Memory), func(r record.Memory) bool { return r.History == h.Index })
	m.in.State.Memory = append(kept, record.Memory{History: h.Index, Nodes: nodes})
}

// planEntry adds to enter all nodes that entering the targets below domain implies:
// SCXML's computeEntrySet.
func (m *macrostep) planEntry(enter chart.NodeSet, targets []*chart.Node, domain *chart.Node) {
	for _, n := range targets {
		m.planDescendants(enter, n, domain)
	}
	for _, n := range m.effectiveTargets(targets) {
		m.planAncestors(enter, n, domain, domain)
	}
	if domain.Kind == Parallel {
		// SCXML has only compound domains. This one stays active, and all of its
		// regions were left.
		m.planRegions(enter, domain, domain)
	}
}

func (m *macrostep) planDescendants(enter chart.NodeSet, n, domain *chart.Node) {
	if n.Kind.IsHistory() {
		if n.Opening != nil && m.in.State.Remembered(n) == nil {
			m.byDefault = append(m.byDefault, n)
		}
		stands := m.effectiveTargets([]*chart.Node{n})
		for _, s := range stands {
			m.planDescendants(enter, s, domain)
		}
		// SCXML goes up to the parent of the history node also when the domain lies inside it, and enters regions
		// beside the domain that were not left (statemachine/DEFINITION.md, "Domains").
		upTo := n.Parent
		if upTo.Contains(domain) {
			upTo = domain
		}
		for _, s := range stands {
			m.planAncestors(enter, s, upTo, domain)
		}
		return
	}
	enter.Add(n.Index)
	switch n.Kind {
	case Compound:
		if n.Opening != nil {
			m.byDefault = append(m.byDefault, n)
		}
		for _, s := range n.Initial {
			m.planDescendants(enter, s, domain)
		}
		for _, s := range m.effectiveTargets(n.Initial) {
			m.planAncestors(enter, s, n, domain)
		}
	case Parallel:
		m.planRegions(enter, n, domain)
	}
}

// planRegions adds the regions of a parallel node that nothing else enters.
func (m *macrostep) planRegions(enter chart.NodeSet, p, domain *chart.Node) {
	for _, r := range p.Children {
		if !enter.AnyIn(r.Index, r.Last) {
			m.planDescendants(enter, r, domain)
		}
	}
}

// planAncestors adds the nodes between n and ancestor, both left out.
func (m *macrostep) planAncestors(enter chart.NodeSet, n, ancestor, domain *chart.Node) {
	if n == ancestor {
		return // an internal transition to its own source
	}
	for p := n.Parent; p != nil && p != ancestor; p = p.Parent {
		enter.Add(p.Index)
		if p.Kind == Parallel {
			m.planRegions(enter, p, domain)
		}
	}
}

// enterAll enters the nodes in document order and raises what is done by it.
func (m *macrostep) enterAll(enter chart.NodeSet) {
	for i := enter.Next(1); i >= 0; i = enter.Next(i + 1) {
		if m.active.Has(i) {
			continue
		}
		n := m.d.Nodes[i]
		m.look(looksPerNode)
		m.active.Add(i)
		m.runBlock(n.Entry)
		if n.Opens {
			m.open(n)
		}
		m.beginAfter(n)
		if n.Task != nil {
			m.beginTask(n)
		}
		if len(n.Invoke) > 0 {
			m.toInvoke = append(m.toInvoke, n)
		}
		if n.Kind == Final {
			m.finish(n)
		}
	}
}

// finish raises done.state for the parent of a final node, and for the parallel
// node above it when that is its last region (statemachine/DEFINITION.md,
// "Final nodes and done events").
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
	m.enqueue(internalEvent{name: p.Done, data: output, done: p})
	for g := p.Parent; g != nil && g.Parent != nil && g.Kind == Parallel && chart.IsDone(g, m.active); g = g.Parent {
		m.enqueue(internalEvent{name: g.Done, done: g})
		if m.d.Semantics != chart.XstateSemantics {
			return // W3C SCXML, Appendix D, enterStates: a parallel node around this one hears nothing
		}
	}
}
