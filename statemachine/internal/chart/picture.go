package chart

import (
	"slices"
	"strings"
	"time"
)

// Picture is a definition's statechart as a value: what a picture shows of it, and no actions and no rights.
// It belongs to anyone who asked for it.
type Picture struct {
	ID      WorkflowID
	Name    string
	Version uint64
	// Nodes are in document order, a state machine before its states. A node is named by its index here.
	Nodes []PictureNode
}

// NodeKind is what a node of a Chart is.
type NodeKind uint8

// The kinds of nodes (statemachine/DEFINITION.md, "State machines and states").
const (
	Atomic NodeKind = iota
	Compound
	Parallel
	Final
	ShallowHistory
	DeepHistory
)

// IsHistory reports whether a node of the kind stands for what was active before.
func (k NodeKind) IsHistory() bool { return k == ShallowHistory || k == DeepHistory }

// PictureNode is a state machine or a state.
type PictureNode struct {
	ID   NodeID
	Kind NodeKind
	// Label is how people see the node; no text when the definition has none.
	Label Text
	Tone  Tone
	// Parent is -1 for a state machine.
	Parent int
	// Children are in document order, history nodes among them.
	Children []int
	// Initial is what is entered by default: descendants of a compound node.
	Initial []int
	// Default is where a history node leads while it remembers nothing; none: the default entry of its parent.
	Default []int
	// Invokes are the workflows of the children that run while the node is active.
	Invokes []string
	// Jobs are the types of those that the node has done.
	Jobs []string
	// Transitions are in the order in which they are tried.
	Transitions []PictureTransition
}

// Trigger is what a transition waits for.
type Trigger uint8

// The triggers of transitions.
const (
	OnEvent     Trigger = iota // an event that somebody sends or raises
	Always                     // nothing
	AfterDelay                 // a timer of the node
	OnDone                     // the completion of the node
	InvokeDone                 // the end of a child
	InvokeError                // the failure of a child
	JobDone                    // the end of a job
	JobError                   // the failure of a job
)

// PictureTransition is one way out of a node, or, without targets, a reaction in it.
type PictureTransition struct {
	Trigger Trigger
	// Event is the event pattern of OnEvent, or several with blanks between them; for the others the event that the machine raises; empty for Always.
	Event string
	// Label is how people see the event of OnEvent; no text when the definition has none.
	Label Text
	// Delay is that of AfterDelay as it stands in the file: a constant, or an expression without ${ }.
	Delay string
	// Wait is that delay when it is a constant; zero when an expression gives it.
	Wait time.Duration
	// Guard is the condition as it stands in the file, without ${ }: an expression, or a name of guards. Empty: none.
	Guard   string
	Targets []int
	Reenter bool

	// Wide reports whether a pattern that is wider than a name may take it; nil: not what comes on its own.
	Wide func(EventName) bool
}

// Takes reports whether an event of that name triggers the transition. That of Always is none.
func (t *PictureTransition) Takes(name EventName) bool {
	switch {
	case t.Trigger == Always || name == "":
		return false
	case t.Trigger != OnEvent:
		return t.Event == string(name)
	}
	return slices.ContainsFunc(strings.Fields(t.Event), func(text string) bool {
		p, ok := ParsePattern(text)
		if !ok || !p.Matches(name) {
			return false
		}
		if !p.Any && !p.Prefix {
			return true
		}
		return t.Wide == nil && !IsReserved(name) || t.Wide != nil && t.Wide(name)
	})
}

// Chart returns the definition's statechart.
func (d *Definition) Chart() *Picture {
	c := &Picture{ID: d.ID, Name: d.Name, Version: d.Version, Nodes: make([]PictureNode, len(d.Nodes)-1)}
	for i, n := range d.Nodes[1:] {
		out := &c.Nodes[i]
		*out = PictureNode{
			ID: n.ID, Kind: n.Kind, Label: n.Label, Tone: n.Tone, Parent: n.Parent.Index - 1,
			Initial: indexesOf(n.Initial), Default: indexesOf(n.Fallback),
		}
		for _, inv := range n.Invoke {
			if inv.Job != nil {
				out.Jobs = append(out.Jobs, inv.Job.Type)
				continue
			}
			out.Invokes = append(out.Invokes, inv.Workflow)
		}
		for _, t := range n.On {
			out.Transitions = append(out.Transitions, d.pictureOf(t))
		}
		for _, t := range n.Always {
			out.Transitions = append(out.Transitions, d.pictureOf(t))
		}
		if out.Parent >= 0 { // NB: the root is not a node of a Chart
			c.Nodes[out.Parent].Children = append(c.Nodes[out.Parent].Children, i)
		}
	}
	return c
}

func indexesOf(nodes []*Node) (indexes []int) {
	for _, n := range nodes {
		indexes = append(indexes, n.Index-1)
	}
	return indexes
}

func (d *Definition) pictureOf(t *Transition) PictureTransition {
	out := PictureTransition{Event: t.Event.String(), Guard: t.Condition, Targets: indexesOf(t.Targets), Reenter: t.Reenter}
	switch {
	case d.Semantics == SCXMLSemantics:
		out.Wide = func(name EventName) bool { return !strings.HasPrefix(string(name), "after.") }
	case t.Everything:
		out.Wide = func(name EventName) bool { return name != ParentCancelled && !d.ServiceEvents[name] }
	default:
		out.Wide = func(name EventName) bool { return !IsReserved(name) && !d.ServiceEvents[name] }
	}
	for _, p := range t.More {
		out.Event += " " + p.String()
	}
	switch {
	case t.After != nil:
		out.Trigger, out.Event = AfterDelay, string(t.After.Event)
		out.Delay, out.Wait = t.After.Delay.Text, t.After.Delay.Constant
	case t.Child != nil:
		out.Trigger, out.Event = t.Child.trigger(), string(t.Child.Event())
	case t.OnDone != nil:
		out.Trigger = OnDone
	case t.Event == EventPattern{}:
		out.Trigger = Always
	default:
		if c := d.Events[EventName(out.Event)]; c != nil {
			out.Label = c.Label
		}
	}
	return out
}

func (t *ChildTransition) trigger() Trigger {
	switch {
	case t.Invoke.Job != nil && t.Failed:
		return JobError
	case t.Invoke.Job != nil:
		return JobDone
	case t.Failed:
		return InvokeError
	}
	return InvokeDone
}

// String is the pattern as it stands in a file.
func (p EventPattern) String() string {
	switch {
	case p.Any:
		return "*"
	case p.Prefix:
		return string(p.Name) + ".*"
	}
	return string(p.Name)
}

// PositionsNamed returns the positions of which a history entry has the nodes (Entry.Start, Entry.End).
func (d *Definition) PositionsNamed(names []NodeID) []Position {
	var out []Position
	for _, m := range d.Machines {
		out, names = d.positionsOf(out, m, names)
	}
	return out
}

// Node returns the index of the node at a position; false when there is none.
func (c *Picture) Node(p Position) (int, bool) {
	region := -1
	for i := range c.Nodes {
		n := &c.Nodes[i]
		isRegion := n.Parent < 0 || c.Nodes[n.Parent].Kind == Parallel
		if isRegion && string(n.ID) == string(p.Machine) {
			region = i
			break
		}
	}
	if region < 0 {
		return 0, false
	}
	machine := c.Machine(region)
	if n := &c.Nodes[region]; n.Kind == Parallel && n.ID == p.Node {
		return region, true
	}
	for i := machine + 1; i < len(c.Nodes) && c.Nodes[i].Parent >= 0; i++ {
		if c.Nodes[i].ID == p.Node {
			return i, true
		}
	}
	return 0, false
}

// Contains reports whether a node is another one, or in it.
func (c *Picture) Contains(around, node int) bool {
	for node >= 0 && node != around {
		node = c.Nodes[node].Parent
	}
	return node >= 0
}

// Machine returns the index of the state machine that a node belongs to.
func (c *Picture) Machine(node int) int {
	for c.Nodes[node].Parent >= 0 {
		node = c.Nodes[node].Parent
	}
	return node
}
