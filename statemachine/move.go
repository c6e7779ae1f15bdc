package statemachine

import (
	"errors"
	"slices"
	"sync"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Bounds of one macrostep (statemachine/DEFINITION.md, "Bounds of one event").
const (
	maxMicrosteps = 1000
	maxActions    = 10_000 // actions run by one event, loops included
	// maxWaiting and maxWaitingBytes bound the internal queue: more events could not
	// all be taken, and raising one copies its data.
	maxWaiting      = maxMicrosteps
	maxWaitingBytes = 4 << 20
	// maxTemplateBytes bounds the value that a template builds, before its size is
	// checked anywhere else.
	maxTemplateBytes = 4 << 20
	maxLogBytes      = 2 << 10 // a longer log line is cut
	// maxCost bounds the cost of all expressions of one event together, with copies and
	// looks at the chart: ten times that of a single expression, about half a second.
	maxCost = 10_000_000
)

// move is one macrostep while it is being made. in is a copy of the instance
// that only the move changes.
type move struct {
	d      *Definition
	in     Instance // all but at, which is where the instance was
	active nodeSet
	caller *Caller
	scope  expr.Scope
	event  expr.Event // what scope.Event points to
	// leave, enter, domains and picked are the room of a microstep.
	leave, enter nodeSet
	seen         nodeSet // where the selection has looked
	domains      []*node
	picked       []*transition
	// queue is SCXML's internal queue; head is its first event.
	queue   []internalEvent
	head    int
	waiting int // bytes of data in the queue
	logs    []string
	brought data.Value // what the event brought that the history keeps
	// deciding are the transitions that take what a caller has sent, during their microstep; decided are the tasks that they end.
	deciding []*transition
	decided  []Task

	microsteps, actions int
	faults              int    // of expressions
	parts               uint32 // timers and children that have begun
	ownsTimers          bool   // they are this move's to change; of the instance before is a copy
	ownsTasks           bool   // likewise
	out                 []Out
	outBytes            int
	toInvoke            []*node         // with children that have not begun yet
	outputs             []machineOutput // of final nodes that were entered, for the parent
	byDefault           []*node         // entered by default, of those with an opening
	stopped             bool            // a final node at the top was entered, with the rules of SCXML
	budget              expr.Budget
	// failure ends the macrostep: nothing of it is kept.
	failure error
}

// machineOutput is what a final node of a state machine gives.
type machineOutput struct {
	of    *node
	value data.Value
}

// internalEvent is an event on the internal queue.
type internalEvent struct {
	name EventName
	data data.Value
	done *node // see trigger.done
	// fault is why, of error.execution; nil for all others.
	fault *Fault
	signal
}

// moves are used again: a move is a large value, and most of what it needs is room.
var moves = sync.Pool{New: func() any {
	m := &move{}
	m.scope.In = func(name string) bool { return m.d.isIn(m.active, name) }
	m.scope.Instance.States = func() data.Value { return m.d.newConfiguration(m.active).states }
	return m
}}

// newMove begins a macrostep of an instance with these active nodes. release ends it.
func (d *Definition) newMove(in *Instance, active nodeSet, caller *Caller, now time.Time) *move {
	m := moves.Get().(*move)
	m.d, m.in, m.caller, m.budget = d, *in, caller, expr.NewBudget(maxCost)
	m.active = append(m.active[:0], active...)
	m.scope.Public, m.scope.Private, m.scope.User, m.scope.Now, m.scope.Budget = in.Public, in.Private, caller.user(), now, &m.budget
	m.scope.Instance = d.exprInstance(in, m.scope.Instance.States)
	m.scope.Parent = in.exprParent()
	if d.semantics == scxmlSemantics {
		m.scope.Locals = noSignal
	}
	return m
}

// release gives the room of a move back. What the move made must have been copied out.
func (m *move) release() {
	in, states := m.scope.In, m.scope.Instance.States
	active, leave, enter, seen, outputs := m.active[:0], m.leave[:0], m.enter[:0], m.seen[:0], m.outputs[:0]
	domains, picked, queue := emptied(m.domains), emptied(m.picked), emptied(m.queue)
	*m = move{} // NB: cleared in place; a value with these fields would be made elsewhere and copied
	m.active, m.leave, m.enter, m.seen, m.outputs, m.domains, m.picked, m.queue = active, leave, enter, seen, outputs, domains, picked, queue
	m.scope.In, m.scope.Instance.States = in, states
	moves.Put(m)
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
func (m *move) setEvent(e expr.Event) {
	m.event = e
	m.scope.Event = &m.event
}

// enqueue puts an event on the internal queue, or fails the macrostep when too much
// waits there.
func (m *move) enqueue(e internalEvent) {
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
func (m *move) isSpent() bool {
	if m.budget.Exhausted() {
		m.fail(errTooCostly)
		return true
	}
	return false
}

// raiseError puts error.execution on the internal queue.
func (m *move) raiseError(cause error) {
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
func (m *move) fail(err error) {
	if m.failure == nil {
		m.failure = err
	}
}

// setDocument replaces svcPublic or svcPrivate.
func (m *move) setDocument(r root, v data.Value) error {
	m.budget.ChargeBytes(len(v))
	if r == rootPrivate {
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
func (m *move) runBlock(actions []action) {
	if m.failure != nil {
		return
	}
	if err := m.runAll(actions); err != nil && m.failure == nil {
		m.raiseError(err)
	}
}

func (m *move) runAll(actions []action) error {
	for k := range actions {
		if m.actions++; m.actions > maxActions {
			m.fail(errTooManyActions)
			m.placeBound(m.d.places.actions[&actions[k]])
			return m.failure
		}
		err := actions[k].run(m)
		if m.isSpent() || m.failure != nil {
			m.placeBound(m.d.places.actions[&actions[k]])
			return m.failure
		}
		if err != nil {
			return m.place(err, &actions[k])
		}
	}
	return nil
}

// settle takes eventless transitions and internal events until there are no more
// (statemachine/DEFINITION.md, "Run to completion").
func (m *move) settle() {
	for m.failure == nil && !m.isSpent() {
		if m.stopped || m.d.isOver(m.active) {
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
func (m *move) takeInternal() {
	e := m.queue[m.head]
	m.queue[m.head] = internalEvent{} // its data is not kept until the queue is empty
	m.waiting -= len(e.data)
	m.head++
	if m.head == len(m.queue) {
		m.queue, m.head = m.queue[:0], 0
	}
	m.setEvent(expr.Event{Name: string(e.name), Data: e.data})
	if m.d.semantics == scxmlSemantics {
		m.setSignal(e.name, &e.signal, e.data)
	}
	picked, _ := m.selectTransitions(trigger{name: e.name, done: e.done})
	if len(picked) > 0 {
		m.microstep(picked)
		return
	}
	if e.name == errorExecution && m.d.semantics != scxmlSemantics {
		m.failUntaken(e)
	}
}

// failUntaken fails the macrostep for an error.execution that no transition takes.
func (m *move) failUntaken(e internalEvent) {
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
func (m *move) microstep(picked []*transition) {
	if m.microsteps++; m.microsteps > maxMicrosteps {
		m.fail(errTooManyMicrosteps)
		m.placeBound(picked[0].line)
		return
	}
	m.leave, m.enter = m.leave.emptyFor(len(m.d.nodes)), m.enter.emptyFor(len(m.d.nodes))
	leave, enter := m.leave, m.enter
	m.byDefault = m.byDefault[:0]
	// The domains are those before the exit. SCXML computes them again for the
	// entry, when history nodes remember something else, and can then leave a
	// gap between what was left and what is entered.
	domains := append(m.domains[:0], make([]*node, len(picked))...)
	m.domains = domains
	for i, t := range picked {
		if len(t.targets) == 0 {
			continue
		}
		domains[i] = m.domain(t)
		for j := m.active.next(domains[i].index + 1); j >= 0 && j <= domains[i].last; j = m.active.next(j + 1) {
			leave.add(j)
		}
	}
	m.exit(leave)
	for _, t := range picked {
		m.runBlock(t.actions)
	}
	for i, t := range picked {
		if domains[i] != nil {
			m.planEntry(enter, t.targets, domains[i])
		}
	}
	m.enterAll(enter)
}

// exit leaves the nodes in reverse document order, after the history nodes beside
// them have recorded what is active (statemachine/DEFINITION.md,
// "Exit and entry order").
func (m *move) exit(leave nodeSet) {
	for i := leave.next(1); i >= 0; i = leave.next(i + 1) {
		for _, h := range m.d.nodes[i].histories {
			m.remember(h)
		}
	}
	for i := leave.previous(len(m.d.nodes) - 1); i > 0; i = leave.previous(i - 1) {
		m.look(looksPerNode)
		m.runBlock(m.d.nodes[i].exit)
		m.endAfter(m.d.nodes[i])
		if m.d.nodes[i].task != nil {
			m.endTask(m.d.nodes[i])
		}
		m.endChildren(m.d.nodes[i])
		m.active.remove(i)
	}
}

func (m *move) remember(h *node) {
	var nodes []int
	for i := m.active.next(h.parent.index + 1); i >= 0 && i <= h.parent.last; i = m.active.next(i + 1) {
		n := m.d.nodes[i]
		if h.kind == deepHistory && n.isLeaf() || h.kind == shallowHistory && n.parent == h.parent {
			nodes = append(nodes, i)
		}
	}
	m.look(h.parent.last - h.parent.index + looksPerUnit*len(m.in.memory))
	kept := slices.DeleteFunc(slices.Clone(m.in.memory), func(r memory) bool { return r.history == h.index })
	m.in.memory = append(kept, memory{h.index, nodes})
}

// planEntry adds to enter all nodes that entering the targets below domain implies:
// SCXML's computeEntrySet.
func (m *move) planEntry(enter nodeSet, targets []*node, domain *node) {
	for _, n := range targets {
		m.planDescendants(enter, n, domain)
	}
	for _, n := range m.effectiveTargets(targets) {
		m.planAncestors(enter, n, domain, domain)
	}
	if domain.kind == parallel {
		// SCXML has only compound domains. This one stays active, and all of its
		// regions were left.
		m.planRegions(enter, domain, domain)
	}
}

func (m *move) planDescendants(enter nodeSet, n, domain *node) {
	if n.kind.isHistory() {
		if n.opening != nil && m.remembered(n) == nil {
			m.byDefault = append(m.byDefault, n)
		}
		stands := m.effectiveTargets([]*node{n})
		for _, s := range stands {
			m.planDescendants(enter, s, domain)
		}
		// SCXML goes up to the parent of the history node also when the domain lies inside it, and enters regions
		// beside the domain that were not left (statemachine/DEFINITION.md, "Domains").
		upTo := n.parent
		if upTo.contains(domain) {
			upTo = domain
		}
		for _, s := range stands {
			m.planAncestors(enter, s, upTo, domain)
		}
		return
	}
	enter.add(n.index)
	switch n.kind {
	case compound:
		if n.opening != nil {
			m.byDefault = append(m.byDefault, n)
		}
		for _, s := range n.initial {
			m.planDescendants(enter, s, domain)
		}
		for _, s := range m.effectiveTargets(n.initial) {
			m.planAncestors(enter, s, n, domain)
		}
	case parallel:
		m.planRegions(enter, n, domain)
	}
}

// planRegions adds the regions of a parallel node that nothing else enters.
func (m *move) planRegions(enter nodeSet, p, domain *node) {
	for _, r := range p.children {
		if !enter.anyIn(r.index, r.last) {
			m.planDescendants(enter, r, domain)
		}
	}
}

// planAncestors adds the nodes between n and ancestor, both left out.
func (m *move) planAncestors(enter nodeSet, n, ancestor, domain *node) {
	if n == ancestor {
		return // an internal transition to its own source
	}
	for p := n.parent; p != nil && p != ancestor; p = p.parent {
		enter.add(p.index)
		if p.kind == parallel {
			m.planRegions(enter, p, domain)
		}
	}
}

// enterAll enters the nodes in document order and raises what is done by it.
func (m *move) enterAll(enter nodeSet) {
	for i := enter.next(1); i >= 0; i = enter.next(i + 1) {
		if m.active.has(i) {
			continue
		}
		n := m.d.nodes[i]
		m.look(looksPerNode)
		m.active.add(i)
		m.runBlock(n.entry)
		if n.opens {
			m.open(n)
		}
		m.beginAfter(n)
		if n.task != nil {
			m.beginTask(n)
		}
		if len(n.invoke) > 0 {
			m.toInvoke = append(m.toInvoke, n)
		}
		if n.kind == final {
			m.finish(n)
		}
	}
}

// finish raises done.state for the parent of a final node, and for the parallel
// node above it when that is its last region (statemachine/DEFINITION.md,
// "Final nodes and done events").
func (m *move) finish(n *node) {
	p := n.parent
	if p.machine == p && m.d.semantics == scxmlSemantics {
		m.stopped = true
		return
	}
	output, err := m.outputOf(n)
	if err != nil {
		m.raiseError(err)
	}
	if p.machine == p && m.in.parent != nil {
		m.outputs = append(m.outputs, machineOutput{n, output})
	}
	m.enqueue(internalEvent{name: p.done, data: output, done: p})
	for g := p.parent; g != nil && g.parent != nil && g.kind == parallel && isDone(g, m.active); g = g.parent {
		m.enqueue(internalEvent{name: g.done, done: g})
		if m.d.semantics != xstateSemantics {
			return // W3C SCXML, Appendix D, enterStates: a parallel node around this one hears nothing
		}
	}
}
