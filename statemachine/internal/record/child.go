package record

import (
	"slices"
	"time"

	"troupe/statemachine/internal/chart"
)

const (
	// MaxDepth is how many instances can stand above one.
	MaxDepth         = 16
	maxChildrenEnded = 10 // that are remembered
)

// ChildStatus is what happened to a child.
type ChildStatus byte

// A child runs until it is done, has failed, or the node that invoked it was left.
const (
	ChildRuns ChildStatus = iota + 1
	ChildDone
	ChildFailed
	ChildCancelled
)

// String is the word of the interface.
func (s ChildStatus) String() string {
	return []string{"", "running", "done", "failed", "cancelled"}[s]
}

// Child is an instance that a node has invoked.
type Child struct {
	ID       ElementID
	Workflow string
	Begun    time.Time
	Status   ChildStatus
}

// ChildState is a Child as the machine keeps it.
type ChildState struct {
	ID     ElementID
	Invoke *chart.Invoke
	Begun  time.Time
	Status ChildStatus
	Invoked
}

// Invoked is what a child has beyond its invoke: a name by which events reach it, and its workflow where that is computed.
type Invoked struct {
	Name, Workflow string    // "": none, and that of the invoke
	Heard          ElementID // the last event that came from it
}

// WorkflowID is the workflow of the child.
func (c *ChildState) WorkflowID() string {
	if c.Workflow != "" {
		return c.Workflow
	}
	return c.Invoke.Workflow
}

// Parent is the instance that has invoked another one.
type Parent struct {
	Workflow, Instance string
	Child              ElementID // how it calls its child
	Depth              int       // how many instances stand above the child
	Heard              ElementID // the last event that came from it
}

// Children returns those that run, and the last ones that have ended, in the order in which they began.
func (in *Instance) Children() []Child {
	if len(in.State.Children) == 0 {
		return nil
	}
	out := make([]Child, len(in.State.Children))
	for i := range in.State.Children {
		c := &in.State.Children[i]
		out[i] = Child{ID: c.ID, Workflow: c.WorkflowID(), Begun: c.Begun, Status: c.Status}
	}
	return out
}

// Parent returns the instance that has invoked this one; nil when none has.
func (in *Instance) Parent() *Parent { return in.State.Parent }

// IsEnded reports whether the instance was stopped, or cancelled by its parent.
func (in *Instance) IsEnded() bool { return in.State.Ended }

// ForgetEnded keeps the last ones of those that have ended. It may change children.
func ForgetEnded(children []ChildState) []ChildState {
	ended := 0
	for i := len(children) - 1; i >= 0; i-- {
		if children[i].Status == ChildRuns {
			continue
		}
		if ended++; ended > maxChildrenEnded {
			children = slices.Delete(children, i, i+1)
		}
	}
	return children
}

// ChildName is the name of a child; "" without one.
func (s *State) ChildName(id ElementID) string {
	for i := range s.Children {
		if s.Children[i].ID == id {
			return s.Children[i].Name
		}
	}
	return ""
}

// WithoutChild returns the instance with a child that has ended, and false when it does not wait for it.
func (in *Instance) WithoutChild(id ElementID, failed bool) (next Instance, end *chart.ChildTransition, ok bool) {
	next = *in
	i := slices.IndexFunc(in.State.Children, func(c ChildState) bool {
		// NB: with the rules of SCXML, what a child that was done before it was cancelled has said still counts.
		late := c.Invoke.SCXMLInvoke != nil && c.Status == ChildCancelled && !failed
		return c.ID == id && (c.Status == ChildRuns || late)
	})
	if i < 0 || in.State.Ended {
		return next, nil, false
	}
	next.State.Children = slices.Clone(in.State.Children)
	next.State.Children[i].Status = ChildDone
	if failed {
		next.State.Children[i].Status = ChildFailed
	}
	next.State.Children = ForgetEnded(next.State.Children)
	return next, &chart.ChildTransition{Invoke: in.State.Children[i].Invoke, Failed: failed}, true
}

// Left returns the children that what a version has at the same place began, of an instance that a reset leaves behind. None is heard any more.
func Left(d *chart.Definition, children []ChildState) (out []ChildState) {
	for _, c := range children {
		old := c.Invoke
		if old.Node.Index >= len(d.Nodes) {
			continue
		}
		n := d.Nodes[old.Node.Index]
		if n.ID != old.Node.ID || old.Number >= len(n.Invoke) {
			continue
		}
		c.Invoke = n.Invoke[old.Number]
		if c.Status == ChildCancelled && c.Invoke.SCXMLInvoke != nil {
			c.Status = ChildFailed // NB: one that was cancelled may still say that it is done (WithoutChild)
		}
		if c.Invoke.Job == nil && c.Invoke.Workflow == old.Workflow && (c.Invoke.SCXMLInvoke == nil) == (old.SCXMLInvoke == nil) {
			out = append(out, c)
		}
	}
	return out
}
