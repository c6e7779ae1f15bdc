// Package migration says what of an instance goes along to another version of its workflow, as a plan of migration wants it, and why it
// cannot. It looks at no data and runs no action.
package migration

import (
	"errors"
	"fmt"
	"slices"

	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
	"troupe/statemachine/internal/transit"
)

// ErrRefused: see statemachine.ErrNotMigrated.
var ErrRefused = errors.New("the instance cannot be migrated")

// Refusal is an ErrRefused. Brief is its reason without what the instance holds.
type Refusal struct{ Reason, Brief string }

func (e Refusal) Error() string { return e.Reason }

func (Refusal) Unwrap() error { return ErrRefused }

func refuse(reason string, args ...any) error {
	text := fmt.Sprintf(reason, args...)
	return Refusal{text, text}
}

// Carry takes along what does not depend on the data. The result has no configuration yet: active is where it stands then.
func Carry(p *chart.Plan, in *record.Instance) (next record.Instance, active chart.NodeSet, err error) {
	if in.State.IsOver() {
		return next, active, refuse("it has ended")
	}
	next = *in
	active, err = activeNodes(p, &in.State)
	if err == nil {
		next.State.Memory, err = memoryOf(p, &in.State)
	}
	if err == nil {
		next.State.Children, err = childrenOf(p, &in.State)
	}
	if err == nil {
		next.State.Jobs = jobsOf(p, &in.State, active)
		next.State.Timers, err = timersOf(p, &in.State, active)
	}
	carryTasks(p, &next.State, &in.State, active)
	next.Redirect = ""
	return next, active, err
}

// activeNodes are the nodes of the new version where the instance stands then, before regions that only that has are entered.
func activeNodes(p *chart.Plan, s *record.State) (chart.NodeSet, error) {
	active := chart.NewNodeSet(len(p.New.Nodes))
	for i := s.At.Active.Next(1); i >= 0; i = s.At.Active.Next(i + 1) {
		n := p.Old.Nodes[i]
		if !n.IsLeaf() {
			continue
		}
		c := p.Counterparts[i]
		switch {
		case p.New.Machine(chart.MachineID(n.Machine.ID)) == nil:
			return nil, refuse("version %d has no state machine %q", p.New.Version, n.Machine.ID)
		case c == nil:
			return nil, refuse("version %d has no node %q in machine %q: map it", p.New.Version, n.ID, n.Machine.ID)
		case !c.IsLeaf():
			return nil, refuse("node %q of machine %q has nodes inside in version %d: map it to one of them", c.ID, c.Machine.ID, p.New.Version)
		}
		for ; c.Parent != nil; c = c.Parent {
			active.Add(c.Index)
		}
	}
	return active, nil
}

// PlanMissing adds the nodes of regions and machines that only the new version has.
func PlanMissing(p *chart.Plan, w *transit.Walk, enter chart.NodeSet) error {
	for _, n := range p.New.Nodes {
		if n.Kind != chart.Parallel || n.Parent != nil && !w.Active.Has(n.Index) {
			continue
		}
		for _, region := range n.Children {
			if !w.Active.AnyIn(region.Index, region.Last) {
				w.PlanDescendants(enter, region, n)
			}
		}
	}
	whole := chart.NewNodeSet(len(p.New.Nodes))
	for i := range p.New.Nodes {
		if w.Active.Has(i) || enter.Has(i) {
			whole.Add(i)
		}
	}
	if !p.New.IsWhole(whole) {
		return refuse("its nodes cannot be active together in version %d", p.New.Version)
	}
	return nil
}

func memoryOf(p *chart.Plan, s *record.State) (out []record.Memory, err error) {
	for _, old := range s.Memory {
		h := p.Counterparts[old.History]
		if h == nil || !h.Kind.IsHistory() {
			continue // nobody can ask for it
		}
		next := record.Memory{History: h.Index}
		var nodes []*chart.Node
		for _, i := range old.Nodes {
			n := p.Counterparts[i]
			if n == nil || !h.Parent.Contains(n) || h.Kind == chart.DeepHistory && !n.IsLeaf() || h.Kind == chart.ShallowHistory && n.Parent != h.Parent {
				of := p.Old.Nodes[i]
				return nil, refuse("history %q of machine %q remembers node %q, which it cannot in version %d", h.ID, h.Machine.ID, of.ID, p.New.Version)
			}
			next.Nodes = append(next.Nodes, n.Index)
			nodes = append(nodes, n)
		}
		if !chart.AreOrthogonal(nodes) {
			return nil, refuse("what history %q of machine %q remembers cannot be active together in version %d", h.ID, h.Machine.ID, p.New.Version)
		}
		out = append(out, next)
	}
	return out, nil
}

// childrenOf are the children that the new version knows. One that runs is not left alone.
func childrenOf(p *chart.Plan, s *record.State) (out []record.ChildState, err error) {
	for _, c := range s.Children {
		old := c.Invoke
		if n := p.Counterparts[old.Node.Index]; n != nil && old.Number < len(n.Invoke) && n.Invoke[old.Number].Job == nil && n.Invoke[old.Number].Workflow == old.Workflow {
			c.Invoke = n.Invoke[old.Number]
			out = append(out, c)
			continue
		}
		if c.Status == record.ChildRuns {
			return nil, refuse("its child of workflow %q runs, and version %d does not invoke it there", old.Workflow, p.New.Version)
		}
	}
	return out, nil
}

// jobsOf are the jobs that the new version has done at the same place. The others end.
func jobsOf(p *chart.Plan, s *record.State, active chart.NodeSet) (out []record.JobState) {
	for _, j := range s.Jobs {
		n := p.Counterparts[j.Invoke.Node.Index]
		if j.Invoke = counterpartJob(j.Invoke, n); j.Invoke != nil && active.Has(n.Index) {
			out = append(out, j)
		}
	}
	return out
}

// counterpartJob returns the invoke of n that has the same job done as inv, at the same place; nil when there is none.
func counterpartJob(inv *chart.Invoke, n *chart.Node) *chart.Invoke {
	if n == nil || inv.Job == nil || inv.Number >= len(n.Invoke) {
		return nil
	}
	if other := n.Invoke[inv.Number]; other.Job != nil && other.Job.Type == inv.Job.Type {
		return other
	}
	return nil
}

// carryTasks keeps the open tasks of nodes that have work in the new version, with who has them, and ends the timers of the others.
func carryTasks(p *chart.Plan, next, s *record.State, active chart.NodeSet) {
	next.Tasks = nil
	for _, t := range s.Tasks {
		name := t.OverdueName()
		n := p.Counterparts[t.Node.Index]
		goesOn := n != nil && n.Task != nil && active.Has(n.Index)
		if goesOn {
			t.Node = n
			next.Tasks = append(next.Tasks, t)
		}
		if !goesOn || !p.New.RaisesOverdue {
			next.Timers = slices.DeleteFunc(next.Timers, func(other record.TimerState) bool { return other.Send == name })
		}
	}
}

func timersOf(p *chart.Plan, s *record.State, active chart.NodeSet) (out []record.TimerState, err error) {
	for _, t := range s.Timers {
		switch {
		case t.Child != nil && t.Child.Failed && t.Child.Invoke.Job != nil: // it goes where the job goes
			n := p.Counterparts[t.Child.Invoke.Node.Index]
			if inv := counterpartJob(t.Child.Invoke, n); inv != nil && active.Has(n.Index) {
				t.Child = &chart.ChildTransition{Invoke: inv, Failed: true}
				out = append(out, t)
			}
		case t.Child != nil:
			return nil, refuse("it has an incident of a child: retry or drop that first")
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

// New is what the new version has at a node that is active already, and the old one has not.
type New struct {
	After  []*chart.After
	Invoke []*chart.Invoke
}

// NewAt is what begins at an active node of the new version.
func NewAt(p *chart.Plan, s *record.State, n *chart.Node) (begins New) {
	var olds []*chart.Node // that it stands for
	for j := s.At.Active.Next(1); j >= 0; j = s.At.Active.Next(j + 1) {
		if p.Counterparts[j] == n {
			olds = append(olds, p.Old.Nodes[j])
		}
	}
	for _, a := range n.After {
		had := slices.ContainsFunc(olds, func(old *chart.Node) bool { return counterpartOf(a, old) != nil })
		if p.Timers == chart.TimersRestarted || p.Timers == chart.TimersKept && !had {
			begins.After = append(begins.After, a)
		}
	}
	invoked := slices.ContainsFunc(olds, func(old *chart.Node) bool { return len(old.Invoke) > 0 })
	for _, inv := range n.Invoke {
		had := slices.ContainsFunc(olds, func(old *chart.Node) bool { return counterpartJob(inv, old) != nil })
		if !invoked || inv.Job != nil && !had {
			begins.Invoke = append(begins.Invoke, inv)
		}
	}
	return begins
}
