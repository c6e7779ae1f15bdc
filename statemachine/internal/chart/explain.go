package chart

import (
	"errors"
	"fmt"

	"troupe/statemachine/data"
)

// Explains refuses a history entry that no instance of the definition can have: one whose event neither callers nor the service send to it ("" is
// its creation or migration), that ends where it has no positions, or whose event brought something else than an object. With the rules of SCXML
// any event may come, with any data.
func (d *Definition) Explains(event EventName, brought data.Value, end []NodeID) error {
	native := d.Semantics != SCXMLSemantics
	switch {
	case native && event != "" && !d.Declares(event) && !d.ServiceEvents[event] && !IsReserved(event):
		return fmt.Errorf("%s version %d has no event %s", d.ID, d.Version, data.Quote(string(event)))
	case native && len(brought) > 0 && brought.Kind() != data.Object:
		return errors.New("data must be an object")
	case !d.hasPositions(end):
		return fmt.Errorf("endState: %v is not where an instance of %s version %d can be", end, d.ID, d.Version)
	}
	return nil
}

// hasPositions reports whether an instance can be at the nodes, which are those of its positions in their order.
func (d *Definition) hasPositions(names []NodeID) bool {
	at, active := d.PositionsNamed(names), NewNodeSet(len(d.Nodes))
	for _, p := range at {
		if !d.Activate(active, p.Machine, p.Node) {
			return false
		}
	}
	return len(at) == len(names) && d.IsWhole(active)
}
