package parse

import (
	"bytes"
	"errors"

	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
)

// maxCuts is how many lines before a fault of the syntax are left out to find a text that can be read.
const maxCuts = 64

// Sketch returns as much of a definition's chart as can be drawn, and its faults as Parse has them. The Chart is nil when nothing can. Of a
// text whose syntax is wrong it is what stands before the fault.
func (p *Parser) Sketch(src clause.Source) (*chart.Picture, error) {
	b, err := p.build(src)
	if b == nil {
		var tree *document.Node
		var faults document.Faults
		if errors.As(err, &faults) && len(faults) > 0 {
			lines := bytes.SplitAfter(src.Text, []byte("\n"))
			for end := min(faults[0].Line-1, len(lines)); tree == nil && end > max(faults[0].Line-1-maxCuts, 0); end-- {
				tree, _ = document.Parse(src.File, bytes.Join(lines[:end], nil))
			}
		}
		if tree == nil {
			return nil, err
		}
		b = p.builder(src)
		b.definition(tree)
	}
	if len(b.Definition.Nodes) < 2 { // the first is no node of a chart
		return nil, err
	}
	return b.Definition.Chart(), err
}
