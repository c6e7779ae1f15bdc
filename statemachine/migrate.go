package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
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

// Plan says how instances of one version become instances of another one (statemachine/DEFINITION.md, "Migration"). It is built
// once by Parser.ParsePlan and never changed.
type Plan struct {
	chart.Plan
	from, to *Definition
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
	m := p.to.newMacrostep(&next, active, caller, in.NextTime(now))
	defer m.release()
	m.setEvent(expr.Event{Name: string(migrateEvent)})
	m.eventData = data.Value(fmt.Sprintf(`{"from":%d,"to":%d}`, p.from.Version, p.to.Version))
	enter, err := p.planMissing(m)
	if err != nil {
		return Result{}, err
	}
	if err := m.runAll(p.Assign); err != nil {
		return Result{}, notMigrated{fmt.Sprintf("assign: %v", err), "assign: an expression fails"}
	}
	p.beginNew(m, in)
	m.enterAll(enter)
	if !p.to.StopsAt(m.active) { // NB: with the rules of XState the end of a machine runs its exits
		m.runToCompletion()
	}
	before := m.in // whose data is checked here, changed or not
	before.State.At = nil
	result, err := m.result(Moved, in.State.At.End, migrateEvent, &before)
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
	m := p.to.newMacrostep(&next, active, caller, in.NextTime(now))
	defer m.release()
	_, err = p.planMissing(m)
	return err
}

// Assigns reports whether the plan writes data of instances.
func (p *Plan) Assigns() bool { return len(p.Assign) > 0 }

// ReadsData reports whether what the plan assigns depends on the instance.
func (p *Plan) ReadsData() bool {
	for _, a := range p.Assign {
		for _, s := range a.(*chart.Assign).Settings { //nolint:forcetypeassert // a plan has no other
			if s.Value.ReadsInstance() {
				return true
			}
		}
	}
	return false
}

// carry takes along what does not depend on the data. The result has no configuration yet: active is where it stands then.
func (p *Plan) carry(in *Instance) (next Instance, active chart.NodeSet, err error) {
	if p.from.IsOver(in) {
		return next, active, refuseMigration("it has ended")
	}
	next = *in
	active, err = p.activeNodes(in)
	if err == nil {
		next.State.Memory, err = p.memoryOf(in)
	}
	if err == nil {
		next.State.Children, err = p.childrenOf(in)
	}
	if err == nil {
		next.State.Timers, err = p.timersOf(in, active)
	}
	p.carryTasks(&next, in, active)
	next.Redirect = ""
	return next, active, err
}

// activeNodes are the nodes of to where the instance stands then, before regions that only to has are entered.
func (p *Plan) activeNodes(in *Instance) (chart.NodeSet, error) {
	active := chart.NewNodeSet(len(p.to.Nodes))
	for i := in.State.At.Active.Next(1); i >= 0; i = in.State.At.Active.Next(i + 1) {
		n := p.from.Nodes[i]
		if !n.IsLeaf() {
			continue
		}
		c := p.Counterparts[i]
		switch {
		case p.to.Machine(MachineID(n.Machine.ID)) == nil:
			return nil, refuseMigration("version %d has no state machine %q", p.to.Version, n.Machine.ID)
		case c == nil:
			return nil, refuseMigration("version %d has no node %q in machine %q: map it", p.to.Version, n.ID, n.Machine.ID)
		case !c.IsLeaf():
			return nil, refuseMigration("node %q of machine %q has nodes inside in version %d: map it to one of them", c.ID, c.Machine.ID, p.to.Version)
		}
		for ; c.Parent != nil; c = c.Parent {
			active.Add(c.Index)
		}
	}
	return active, nil
}

// planMissing returns the nodes of regions and machines that only to has.
func (p *Plan) planMissing(m *macrostep) (chart.NodeSet, error) {
	m.enter = m.enter.EmptyFor(len(p.to.Nodes))
	for _, n := range p.to.Nodes {
		if n.Kind != Parallel || n.Parent != nil && !m.active.Has(n.Index) {
			continue
		}
		for _, region := range n.Children {
			if !m.active.AnyIn(region.Index, region.Last) {
				m.planDescendants(m.enter, region, n)
			}
		}
	}
	whole := chart.NewNodeSet(len(p.to.Nodes))
	for i := range p.to.Nodes {
		if m.active.Has(i) || m.enter.Has(i) {
			whole.Add(i)
		}
	}
	if !p.to.IsWhole(whole) {
		return nil, refuseMigration("its nodes cannot be active together in version %d", p.to.Version)
	}
	return m.enter, nil
}

// memoryOf is what the history nodes of to remember then.
func (p *Plan) memoryOf(in *Instance) (out []record.Memory, err error) {
	for _, old := range in.State.Memory {
		h := p.Counterparts[old.History]
		if h == nil || !h.Kind.IsHistory() {
			continue // nobody can ask for it
		}
		next := record.Memory{History: h.Index}
		var nodes []*chart.Node
		for _, i := range old.Nodes {
			n := p.Counterparts[i]
			if n == nil || !h.Parent.Contains(n) || h.Kind == DeepHistory && !n.IsLeaf() || h.Kind == ShallowHistory && n.Parent != h.Parent {
				of := p.from.Nodes[i]
				return nil, refuseMigration("history %q of machine %q remembers node %q, which it cannot in version %d", h.ID, h.Machine.ID, of.ID, p.to.Version)
			}
			next.Nodes = append(next.Nodes, n.Index)
			nodes = append(nodes, n)
		}
		if !chart.AreOrthogonal(nodes) {
			return nil, refuseMigration("what history %q of machine %q remembers cannot be active together in version %d", h.ID, h.Machine.ID, p.to.Version)
		}
		out = append(out, next)
	}
	return out, nil
}

// childrenOf are the children that to knows. One that runs is not left alone.
func (p *Plan) childrenOf(in *Instance) (out []record.ChildState, err error) {
	for _, c := range in.State.Children {
		old := c.Invoke
		if n := p.Counterparts[old.Node.Index]; n != nil && old.Number < len(n.Invoke) && n.Invoke[old.Number].Workflow == old.Workflow {
			c.Invoke = n.Invoke[old.Number]
			out = append(out, c)
			continue
		}
		if c.Status == ChildRuns {
			return nil, refuseMigration("its child of workflow %q runs, and version %d does not invoke it there", old.Workflow, p.to.Version)
		}
	}
	return out, nil
}

// carryTasks keeps the open tasks of nodes that have work in to, with who has them, and ends the timers of the others.
func (p *Plan) carryTasks(next, in *Instance, active chart.NodeSet) {
	next.State.Tasks = nil
	for _, t := range in.State.Tasks {
		name := t.OverdueName()
		n := p.Counterparts[t.Node.Index]
		goesOn := n != nil && n.Task != nil && active.Has(n.Index)
		if goesOn {
			t.Node = n
			next.State.Tasks = append(next.State.Tasks, t)
		}
		if !goesOn || !p.to.RaisesOverdue {
			next.State.Timers = slices.DeleteFunc(next.State.Timers, func(other record.TimerState) bool { return other.Send == name })
		}
	}
}

// timersOf are those that go on.
func (p *Plan) timersOf(in *Instance, active chart.NodeSet) (out []record.TimerState, err error) {
	for _, t := range in.State.Timers {
		switch {
		case t.Child != nil:
			return nil, refuseMigration("it has an incident of a child: retry or drop that first")
		case p.Timers == chart.TimersDropped:
		case t.After == nil:
			out = append(out, t)
		case p.Timers == chart.TimersKept:
			if t.After = counterpartOf(t.After, p.Counterparts[t.After.Node.Index]); t.After != nil && active.Has(t.After.Node.Index) {
				out = append(out, t)
			}
		}
	}
	return out, nil
}

// counterpartOf returns the after of n that is written with the same delay as a; nil when there is none.
func counterpartOf(a *chart.After, n *chart.Node) *chart.After {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.After, func(other *chart.After) bool { return other.Written() == a.Written() })
	if i < 0 {
		return nil
	}
	return n.After[i]
}

// beginNew begins what to has at nodes that are active already, and from does not have there.
func (p *Plan) beginNew(m *macrostep, in *Instance) {
	for i := m.active.Next(1); i >= 0; i = m.active.Next(i + 1) {
		n := p.to.Nodes[i]
		var olds []*chart.Node // that it stands for
		for j := in.State.At.Active.Next(1); j >= 0; j = in.State.At.Active.Next(j + 1) {
			if p.Counterparts[j] == n {
				olds = append(olds, p.from.Nodes[j])
			}
		}
		if p.Timers != chart.TimersDropped {
			for _, a := range n.After {
				had := slices.ContainsFunc(olds, func(old *chart.Node) bool { return counterpartOf(a, old) != nil })
				if p.Timers == chart.TimersRestarted || !had {
					m.beginTimer(a)
				}
			}
		}
		if n.Task != nil && !slices.ContainsFunc(m.in.State.Tasks, func(t record.TaskState) bool { return t.Node == n }) {
			m.beginTask(n)
		}
		if len(n.Invoke) > 0 && !slices.ContainsFunc(olds, func(old *chart.Node) bool { return len(old.Invoke) > 0 }) {
			m.toInvoke = append(m.toInvoke, n)
		}
	}
}
