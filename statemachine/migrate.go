package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// ErrNotMigrated: the instance cannot go to the other version. The text of the error says why, for who migrates.
var ErrNotMigrated = errors.New("the instance cannot be migrated")

// notMigrated is an ErrNotMigrated. brief is its reason without what the instance holds.
type notMigrated struct{ reason, brief string }

func (e notMigrated) Error() string { return e.reason }

func (notMigrated) Unwrap() error { return ErrNotMigrated }

func refuseMigration(reason string, args ...any) error {
	text := fmt.Sprintf(reason, args...)
	return notMigrated{text, text}
}

// BriefReason is the text of an ErrNotMigrated for those who may not see the instance: without anything of its data.
func BriefReason(err error) string {
	if refused := (notMigrated{}); errors.As(err, &refused) {
		return refused.brief
	}
	return ErrNotMigrated.Error()
}

// migrateEvent is the event of the history entry.
const migrateEvent EventName = "migrate"

// timerRule says what becomes of timers.
type timerRule byte

const (
	timersKept timerRule = iota
	timersRestarted
	timersDropped
)

// Plan says how instances of one version become instances of another one (statemachine/DEFINITION.md, "Migration"). It is built
// once by Parser.ParsePlan and never changed.
type Plan struct {
	from, to *Definition
	// counterparts are the nodes of to for those of from, by index; nil without one.
	counterparts []*node
	timers       timerRule
	assign       []action
}

// From and To are the two versions.
func (p *Plan) From() uint64 { return p.from.Version }

// To is the version that instances get.
func (p *Plan) To() uint64 { return p.to.Version }

// Target is the definition that instances get.
func (p *Plan) Target() *Definition { return p.to }

// Migrate makes an instance of From one of To. It is pure as Step is, and in is not changed. ErrNotMigrated means that nothing
// happened; its text says why.
func (p *Plan) Migrate(in *Instance, caller *Caller, now time.Time) (Result, error) {
	next, active, err := p.carry(in)
	if err != nil {
		return Result{}, err
	}
	m := p.to.newMove(&next, active, caller, in.timeOf(now))
	defer m.release()
	m.setEvent(expr.Event{Name: string(migrateEvent)})
	m.brought = data.Value(fmt.Sprintf(`{"from":%d,"to":%d}`, p.from.Version, p.to.Version))
	enter, err := p.planMissing(m)
	if err != nil {
		return Result{}, err
	}
	if err := m.runAll(p.assign); err != nil {
		return Result{}, notMigrated{fmt.Sprintf("assign: %v", err), "assign: an expression fails"}
	}
	p.beginNew(m, in)
	m.enterAll(enter)
	if !p.to.isOver(m.active) { // NB: with the rules of XState the end of a machine runs its exits
		m.settle()
	}
	before := m.in // whose data is checked here, changed or not
	before.at = nil
	result, err := m.finishWith(Moved, in.at.end, migrateEvent, &before)
	if err == nil {
		err = p.to.checkData(&result.Instance)
	}
	if err != nil {
		return Result{}, notMigrated{err.Error(), fmt.Sprintf("an action fails, or the data does not fit version %d", p.to.Version)}
	}
	return result, nil
}

// TryBlind is Migrate for who may not see the data, without its result: whether it would be refused for where the instance stands and what it
// waits for. What the data decides is left out.
func (p *Plan) TryBlind(in *Instance, caller *Caller, now time.Time) error {
	next, active, err := p.carry(in)
	if err != nil {
		return err
	}
	m := p.to.newMove(&next, active, caller, in.timeOf(now))
	defer m.release()
	_, err = p.planMissing(m)
	return err
}

// Assigns reports whether the plan writes data of instances.
func (p *Plan) Assigns() bool { return len(p.assign) > 0 }

// ReadsData reports whether what the plan assigns depends on the instance.
func (p *Plan) ReadsData() bool {
	for _, a := range p.assign {
		for _, s := range a.(assign).settings { //nolint:forcetypeassert // a plan has no other
			if s.value.readsInstance() {
				return true
			}
		}
	}
	return false
}

// carry takes along what does not depend on the data. The result has no configuration yet: active is where it stands then.
func (p *Plan) carry(in *Instance) (next Instance, active nodeSet, err error) {
	if p.from.IsOver(in) {
		return next, active, refuseMigration("it has ended")
	}
	next = *in
	active, err = p.activeNodes(in)
	if err == nil {
		next.memory, err = p.memoryOf(in)
	}
	if err == nil {
		next.children, err = p.childrenOf(in)
	}
	if err == nil {
		next.timers, err = p.timersOf(in, active)
	}
	p.carryTasks(&next, in, active)
	next.Redirect = ""
	return next, active, err
}

// activeNodes are the nodes of to where the instance stands then, before regions that only to has are entered.
func (p *Plan) activeNodes(in *Instance) (nodeSet, error) {
	active := newNodeSet(len(p.to.nodes))
	for i := in.at.active.next(1); i >= 0; i = in.at.active.next(i + 1) {
		n := p.from.nodes[i]
		if !n.isLeaf() {
			continue
		}
		c := p.counterparts[i]
		switch {
		case p.to.machine(MachineID(n.machine.id)) == nil:
			return nil, refuseMigration("version %d has no state machine %q", p.to.Version, n.machine.id)
		case c == nil:
			return nil, refuseMigration("version %d has no node %q in machine %q: map it", p.to.Version, n.id, n.machine.id)
		case !c.isLeaf():
			return nil, refuseMigration("node %q of machine %q has nodes inside in version %d: map it to one of them", c.id, c.machine.id, p.to.Version)
		}
		for ; c.parent != nil; c = c.parent {
			active.add(c.index)
		}
	}
	return active, nil
}

// planMissing returns the nodes of regions and machines that only to has.
func (p *Plan) planMissing(m *move) (nodeSet, error) {
	m.enter = m.enter.emptyFor(len(p.to.nodes))
	for _, n := range p.to.nodes {
		if n.kind != parallel || n.parent != nil && !m.active.has(n.index) {
			continue
		}
		for _, region := range n.children {
			if !m.active.anyIn(region.index, region.last) {
				m.planDescendants(m.enter, region, n)
			}
		}
	}
	whole := newNodeSet(len(p.to.nodes))
	for i := range p.to.nodes {
		if m.active.has(i) || m.enter.has(i) {
			whole.add(i)
		}
	}
	if !p.to.isWhole(whole) {
		return nil, refuseMigration("its nodes cannot be active together in version %d", p.to.Version)
	}
	return m.enter, nil
}

// memoryOf is what the history nodes of to remember then.
func (p *Plan) memoryOf(in *Instance) (out []memory, err error) {
	for _, old := range in.memory {
		h := p.counterparts[old.history]
		if h == nil || !h.kind.isHistory() {
			continue // nobody can ask for it
		}
		next := memory{history: h.index}
		var nodes []*node
		for _, i := range old.nodes {
			n := p.counterparts[i]
			if n == nil || !h.parent.contains(n) || h.kind == deepHistory && !n.isLeaf() || h.kind == shallowHistory && n.parent != h.parent {
				of := p.from.nodes[i]
				return nil, refuseMigration("history %q of machine %q remembers node %q, which it cannot in version %d", h.id, h.machine.id, of.id, p.to.Version)
			}
			next.nodes = append(next.nodes, n.index)
			nodes = append(nodes, n)
		}
		if !areOrthogonal(nodes) {
			return nil, refuseMigration("what history %q of machine %q remembers cannot be active together in version %d", h.id, h.machine.id, p.to.Version)
		}
		out = append(out, next)
	}
	return out, nil
}

// childrenOf are the children that to knows. One that runs is not left alone.
func (p *Plan) childrenOf(in *Instance) (out []child, err error) {
	for _, c := range in.children {
		old := c.invoke
		if n := p.counterparts[old.node.index]; n != nil && old.number < len(n.invoke) && n.invoke[old.number].workflow == old.workflow {
			c.invoke = n.invoke[old.number]
			out = append(out, c)
			continue
		}
		if c.status == ChildRuns {
			return nil, refuseMigration("its child of workflow %q runs, and version %d does not invoke it there", old.workflow, p.to.Version)
		}
	}
	return out, nil
}

// carryTasks keeps the open tasks of nodes that have work in to, with who has them, and ends the timers of the others.
func (p *Plan) carryTasks(next, in *Instance, active nodeSet) {
	next.tasks = nil
	for _, t := range in.tasks {
		name := t.overdueName()
		n := p.counterparts[t.node.index]
		goesOn := n != nil && n.task != nil && active.has(n.index)
		if goesOn {
			t.node = n
			next.tasks = append(next.tasks, t)
		}
		if !goesOn || !p.to.raisesOverdue {
			next.timers = slices.DeleteFunc(next.timers, func(other timer) bool { return other.send == name })
		}
	}
}

// timersOf are those that go on.
func (p *Plan) timersOf(in *Instance, active nodeSet) (out []timer, err error) {
	for _, t := range in.timers {
		switch {
		case t.told != nil:
			return nil, refuseMigration("it has an incident of a child: retry or drop that first")
		case p.timers == timersDropped:
		case t.after == nil:
			out = append(out, t)
		case p.timers == timersKept:
			if t.after = counterpartOf(t.after, p.counterparts[t.after.node.index]); t.after != nil && active.has(t.after.node.index) {
				out = append(out, t)
			}
		}
	}
	return out, nil
}

// counterpartOf returns the after of n that is written with the same delay as a; nil when there is none.
func counterpartOf(a *after, n *node) *after {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.after, func(other *after) bool { return other.written() == a.written() })
	if i < 0 {
		return nil
	}
	return n.after[i]
}

// written is the delay as the name of the event has it.
func (a *after) written() string { return strings.TrimSuffix(string(a.event), "."+string(a.node.id)) }

// beginNew begins what to has at nodes that are active already, and from does not have there.
func (p *Plan) beginNew(m *move, in *Instance) {
	for i := m.active.next(1); i >= 0; i = m.active.next(i + 1) {
		n := p.to.nodes[i]
		var olds []*node // that it stands for
		for j := in.at.active.next(1); j >= 0; j = in.at.active.next(j + 1) {
			if p.counterparts[j] == n {
				olds = append(olds, p.from.nodes[j])
			}
		}
		if p.timers != timersDropped {
			for _, a := range n.after {
				had := slices.ContainsFunc(olds, func(old *node) bool { return counterpartOf(a, old) != nil })
				if p.timers == timersRestarted || !had {
					m.beginTimer(a)
				}
			}
		}
		if n.task != nil && !slices.ContainsFunc(m.in.tasks, func(t task) bool { return t.node == n }) {
			m.beginTask(n)
		}
		if len(n.invoke) > 0 && !slices.ContainsFunc(olds, func(old *node) bool { return len(old.invoke) > 0 }) {
			m.toInvoke = append(m.toInvoke, n)
		}
	}
}
