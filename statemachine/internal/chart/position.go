package chart

import (
	"strings"

	"troupe/statemachine/data"
)

// StatesOf returns the JSON array of positions that a history entry of an
// instance of this definition led to. It is empty for any other value.
func (d *Definition) StatesOf(entry data.Value) []byte {
	end, _ := entry.Lookup("endState")
	var names []NodeID
	for _, name := range end.Elements() {
		names = append(names, NodeID(name.Text()))
	}
	return appendPositionList(nil, d.PositionsNamed(names))
}

// positionsOf takes the names that are about a region from the front.
func (d *Definition) positionsOf(out []Position, region *Node, names []NodeID) ([]Position, []NodeID) {
	if len(names) == 0 {
		return out, nil
	}
	n := d.Find(region.Machine, names[0])
	out = append(out, Position{MachineID(region.ID), names[0]})
	names = names[1:]
	if region.Kind == Parallel {
		n = region
	}
	if n != nil && n.Kind == Parallel {
		for _, r := range n.Children {
			out, names = d.positionsOf(out, r, names)
		}
	}
	return out, names
}

// Position is one entry of states: where one active machine or region is.
type Position struct {
	Machine MachineID
	Node    NodeID
}

// NodeNames lists the nodes of positions, joined with ", ".
func NodeNames(positions []Position) string {
	names := make([]string, len(positions))
	for k, p := range positions {
		names[k] = string(p.Node)
	}
	return strings.Join(names, ", ")
}

func appendPositions(out []Position, region *Node, active NodeSet) []Position {
	n := region
	for n.Kind == Compound {
		child := ActiveChild(n, active)
		if child == nil {
			return out
		}
		n = child
	}
	out = append(out, Position{MachineID(region.ID), n.ID})
	if n.Kind == Parallel {
		for _, r := range n.Children {
			out = appendPositions(out, r, active)
		}
	}
	return out
}

// ActiveChild is the child of a compound node that is active; nil when none is.
func ActiveChild(n *Node, active NodeSet) *Node {
	for _, c := range n.Children {
		if active.Has(c.Index) {
			return c
		}
	}
	return nil
}

func appendPositionList(dst []byte, positions []Position) []byte {
	dst = append(dst, '[')
	for i, p := range positions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"stateMachineId":`...)
		dst = data.AppendString(dst, string(p.Machine))
		dst = append(dst, `,"nodeId":`...)
		dst = data.AppendString(dst, string(p.Node))
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// IsDoneWith reports whether every state machine is in a final node when these nodes are active.
func (d *Definition) IsDoneWith(active NodeSet) bool {
	for _, m := range d.Machines {
		if !IsDone(m, active) {
			return false
		}
	}
	return true
}

// StopsAt reports whether the instance has come to the end that XState gives a machine (statemachine/DEFINITION.md, "Rules of XState").
func (d *Definition) StopsAt(active NodeSet) bool {
	return d.Semantics == XstateSemantics && d.IsDoneWith(active)
}

// IsDone is isInFinalState of SCXML's appendix D.
func IsDone(n *Node, active NodeSet) bool {
	switch n.Kind {
	case Compound:
		c := ActiveChild(n, active)
		return c != nil && c.Kind == Final
	case Parallel:
		for _, c := range n.Children {
			if !IsDone(c, active) {
				return false
			}
		}
		return true
	}
	return false
}

// IsIn is the function In of expressions: name is "node" or "machine.node", and ancestors of the innermost nodes count as well. A
// machine or region can be named too.
func (d *Definition) IsIn(active NodeSet, name string) bool {
	for i := active.Next(1); i >= 0; i = active.Next(i + 1) {
		n := d.Nodes[i]
		if name == string(n.ID) {
			return true
		}
		if m := n.Machine; len(name) == len(m.ID)+1+len(n.ID) && name[len(m.ID)] == '.' &&
			name[:len(m.ID)] == string(m.ID) && name[len(m.ID)+1:] == string(n.ID) {
			return true
		}
	}
	return false
}

// IsParallel reports whether the position is that of a parallel node, whose regions have positions of their own.
func (d *Definition) IsParallel(p Position) bool {
	r := d.RegionByID[p.Machine]
	if r == nil {
		return false
	}
	n := d.Find(r.Machine, p.Node)
	return n != nil && n.Kind == Parallel || n == nil && r.Kind == Parallel
}

// Machine returns the state machine of the name; nil when there is none.
func (d *Definition) Machine(id MachineID) *Node {
	if m := d.RegionByID[id]; m != nil && m.Machine == m {
		return m
	}
	return nil
}

// Activate adds the node that one position names, with its ancestors.
func (d *Definition) Activate(active NodeSet, region MachineID, name NodeID) bool {
	r := d.RegionByID[region]
	if r == nil {
		return false
	}
	n := d.Find(r.Machine, name)
	if r == r.Machine && r.Kind == Parallel && NodeID(r.ID) == name {
		n = r
	}
	if n == nil || n != r && !r.Contains(n) {
		return false
	}
	for ; n.Parent != nil; n = n.Parent {
		active.Add(n.Index)
	}
	return true
}

// Find returns the node of a machine by name; nil when it has none.
func (d *Definition) Find(machine *Node, name NodeID) *Node {
	for i := machine.Index + 1; i <= machine.Last; i++ {
		if d.Nodes[i].ID == name {
			return d.Nodes[i]
		}
	}
	return nil
}

// IsWhole reports whether the set is a configuration: every compound node in it
// has exactly one active child, every parallel one all.
func (d *Definition) IsWhole(active NodeSet) bool {
	for _, n := range d.Nodes {
		if n.Parent != nil && !active.Has(n.Index) {
			continue
		}
		count := 0
		for _, c := range n.Children {
			if active.Has(c.Index) {
				count++
			}
		}
		if n.Kind == Compound && count != 1 || n.Kind == Parallel && count != len(n.Children) || n.Kind.IsHistory() {
			return false
		}
	}
	return true
}
