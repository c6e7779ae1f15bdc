package statemachine

import (
	"strings"
	"time"

	"troupe/statemachine/data"
)

// MaxDataBytes bounds svcPublic and svcPrivate together
// (statemachine/DEFINITION.md, "Size of an instance"). The rest of the record is
// small compared to it.
const MaxDataBytes = 1 << 20

// Instance is a workflow instance as a value: where it is and what it holds.
// Step returns a new one and leaves the old as it was; the two may share bytes,
// which nobody writes to.
type Instance struct {
	ID        string // ULID
	CreatedAt time.Time
	// Sequence is the number of history entries, and UpdatedAt the time of the
	// last one.
	Sequence  uint64
	UpdatedAt time.Time
	// Public and Private are svcPublic and svcPrivate: always objects.
	Public, Private data.Value
	// Redirect is svcRedirect; "" when it is not set.
	Redirect string

	at *configuration // set by Create, Step and Restore
	// memory is what history nodes remember, in no order. It is replaced and never
	// changed in place.
	memory []memory
	// timers wait, in the order in which they began. It is replaced and never changed in place.
	timers []timer
	// children run, or have ended not long ago, in the order in which they began. It is replaced and never changed in place.
	children []child
	// tasks are open, in the order in which they began. It is replaced and never changed in place.
	tasks         []task
	tasksUnstored bool    // the stored record does not have tasks
	parent        *Parent // nil: nobody has invoked it
	ended         bool    // the parent has cancelled it
}

// memory is what one history node recorded when its parent was last left.
type memory struct {
	history int
	nodes   []int
}

// hasParts reports whether there is something to end when the instance is done.
func (in *Instance) hasParts() bool {
	return len(in.timers) > 0 || len(in.children) > 0 || in.parent != nil
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

// Positions returns the instance's states in the order of the definition's
// machines (statemachine/DEFINITION.md, "Positions"). A nested parallel node stands
// for its machine and is followed by one position for each of its regions. The result
// is shared and must not be changed.
func (d *Definition) Positions(in *Instance) []Position { return in.at.positions }

// States returns the JSON array of the instance's positions, which is shared and must
// not be changed.
func (d *Definition) States(in *Instance) data.Value { return in.at.states }

func appendPositions(out []Position, region *node, active nodeSet) []Position {
	n := region
	for n.kind == compound {
		child := activeChild(n, active)
		if child == nil {
			return out
		}
		n = child
	}
	out = append(out, Position{MachineID(region.id), n.id})
	if n.kind == parallel {
		for _, r := range n.children {
			out = appendPositions(out, r, active)
		}
	}
	return out
}

func activeChild(n *node, active nodeSet) *node {
	for _, c := range n.children {
		if active.has(c.index) {
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

// IsDone reports whether every state machine is in a final node.
func (d *Definition) IsDone(in *Instance) bool { return in.at.done }

// IsOver reports whether the instance has come to its end, or its parent has cancelled it.
func (d *Definition) IsOver(in *Instance) bool { return in.ended || in.at.done }

// IsInitial reports whether the instance is in the nodes that its creation entered before anything else moved it: every state machine, and
// every region in it, is in its initial node.
func (d *Definition) IsInitial(in *Instance) bool { return in.at.initial }

// isDoneWith reports whether every state machine is in a final node when these nodes are active.
func (d *Definition) isDoneWith(active nodeSet) bool {
	for _, m := range d.machines {
		if !isDone(m, active) {
			return false
		}
	}
	return true
}

// isOver reports whether the instance has come to the end that XState gives a machine (statemachine/DEFINITION.md, "Rules of XState").
func (d *Definition) isOver(active nodeSet) bool {
	return d.semantics == xstateSemantics && d.isDoneWith(active)
}

// isDone is isInFinalState of SCXML's appendix D.
func isDone(n *node, active nodeSet) bool {
	switch n.kind {
	case compound:
		c := activeChild(n, active)
		return c != nil && c.kind == final
	case parallel:
		for _, c := range n.children {
			if !isDone(c, active) {
				return false
			}
		}
		return true
	}
	return false
}

// isIn is the function In of expressions: name is "node" or "machine.node", and
// ancestors of the innermost nodes count as well. A machine or region can be
// named too.
func (d *Definition) isIn(active nodeSet, name string) bool {
	for i := active.next(1); i >= 0; i = active.next(i + 1) {
		n := d.nodes[i]
		if name == string(n.id) {
			return true
		}
		if m := n.machine; len(name) == len(m.id)+1+len(n.id) && name[len(m.id)] == '.' &&
			name[:len(m.id)] == string(m.id) && name[len(m.id)+1:] == string(n.id) {
			return true
		}
	}
	return false
}

// IsParallel reports whether the position is that of a parallel node, whose regions have positions of their own.
func (d *Definition) IsParallel(p Position) bool {
	r := d.regions[p.Machine]
	if r == nil {
		return false
	}
	n := d.find(r.machine, p.Node)
	return n != nil && n.kind == parallel || n == nil && r.kind == parallel
}
