package statemachine

import (
	"troupe/statemachine/internal/chart"
)

// Replayable reports whether Create and Replay give an instance's data again from its history: callers give nothing with
// a creation, which the history does not keep, and no rights of a caller decide which transition takes an event. What its
// expressions read of a caller is another question.
func (d *Definition) Replayable() bool {
	if d.Semantics == chart.SCXMLSemantics || !d.CreatePublic.IsNothing() || !d.CreatePrivate.IsNothing() {
		return false
	}
	allows, parallel := false, len(d.Machines) > 1
	for _, n := range d.Nodes {
		parallel = parallel || n.Kind == chart.Parallel && n.Parent != nil
		for i, tr := range n.On {
			if tr.Allow == nil {
				continue
			}
			allows = true
			if overlaps(tr, n.On[i+1:]) {
				return false
			}
			for up := n.Parent; up != nil; up = up.Parent {
				if overlaps(tr, up.On) {
					return false
				}
			}
		}
	}
	return !allows || !parallel
}

func overlaps(tr *chart.Transition, others []*chart.Transition) bool {
	for _, o := range others {
		if o.Event.Any || o.Event.Prefix || o.Everything || tr.Event.Any || tr.Event.Prefix || o.Event.Name == tr.Event.Name {
			return true
		}
	}
	return false
}

// Replay is Step for an event that was taken once, of which the rights of its caller were asked then. event.Data is what
// the history has kept; what the definition does not keep (history: false) is missing.
func (d *Definition) Replay(in *Instance, e Event) (r Result, kept bool, err error) {
	if declared := d.Events[e.Name]; !d.Declares(e.Name) || declared != nil && declared.Unkept {
		return Result{}, false, nil
	}
	err = d.stepInto(&r, in, &e, trigger{name: e.Name})
	return r, true, err
}
