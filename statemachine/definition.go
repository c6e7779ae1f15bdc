package statemachine

import (
	"time"

	"troupe/statemachine/internal/chart"
)

// Definition is one version of a workflow: a statechart whose regions are its
// state machines, with everything compiled. It is built once by Parser.Parse
// and never changed, so any number of instances may share it. What can be asked of the chart
// itself is promoted from what the parser has compiled.
type Definition struct{ chart.Definition }

// newDefinition completes what the parser has compiled.
func newDefinition(compiled *chart.Definition) *Definition {
	d := &Definition{*compiled}
	m := d.newMacrostep(&Instance{}, chart.NewNodeSet(len(d.Nodes)), chart.SystemCaller, time.Time{})
	defer m.release()
	d.InitialNodes = chart.NewNodeSet(len(d.Nodes))
	m.planRegions(d.InitialNodes, d.Nodes[0], d.Nodes[0])
	return d
}
