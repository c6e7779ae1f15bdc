package statemachine

import (
	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/coverage"
	"troupe/statemachine/internal/record"
	"troupe/statemachine/internal/transit"
)

// Definition is one version of a workflow: a statechart whose regions are its state machines, with everything compiled. It is built once by
// Parser.Parse and never changed, so any number of instances may share it. What can be asked of the chart itself is promoted from what the
// parser has compiled.
type Definition struct {
	chart.Definition
	coverage *coverage.Coverage // nil: nobody counts what is reached
}

func newDefinition(compiled *chart.Definition) *Definition {
	d := &Definition{Definition: *compiled}
	d.InitialNodes = chart.NewNodeSet(len(d.Nodes))
	walk := transit.Walk{Chart: compiled, State: &record.State{}}
	walk.PlanRegions(d.InitialNodes, d.Nodes[0], d.Nodes[0])
	return d
}

// Covered returns the definition as one whose instances count in by what they reach.
func (d *Definition) Covered(by *Coverage) *Definition {
	covered := *d
	covered.coverage = by
	return &covered
}

// AppendRecord appends the stored form of the instance (package record has its layout).
func (d *Definition) AppendRecord(dst []byte, in *Instance, chain Chain, attachment []byte) []byte {
	return record.Append(dst, &d.Definition, in, chain, attachment)
}

// Restore makes the instance that r was written from, under the definition that it was written with. It returns ErrRecord when they do
// not fit.
func (d *Definition) Restore(id string, r Record) (Instance, error) {
	return record.Restore(&d.Definition, id, r)
}

// Positions returns the instance's states in the order of the definition's machines (statemachine/DEFINITION.md, "Positions"). A nested
// parallel node stands for its machine and is followed by one position for each of its regions. The result is shared and must not be changed.
func (d *Definition) Positions(in *Instance) []Position { return in.State.At.Positions }

// States returns the JSON array of the instance's positions, which is shared and must not be changed.
func (d *Definition) States(in *Instance) data.Value { return in.State.At.States }

// IsDone reports whether every state machine is in a final node.
func (d *Definition) IsDone(in *Instance) bool { return in.State.At.Done }

// IsOver reports whether the instance has come to its end, or its parent has cancelled it.
func (d *Definition) IsOver(in *Instance) bool { return in.State.IsOver() }

// IsInitial reports whether the instance is in the nodes that its creation entered before anything else moved it: every state machine, and
// every region in it, is in its initial node.
func (d *Definition) IsInitial(in *Instance) bool { return in.State.At.Initial }

// Assign returns the instance with a task that belongs to somebody; "" is nobody. It returns ErrNoTask.
func (*Definition) Assign(in *Instance, id ElementID, assignee string) (Instance, error) {
	next, ok := in.WithAssignee(id, assignee)
	if !ok {
		return next, ErrNoTask
	}
	return next, nil
}
