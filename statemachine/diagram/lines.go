package diagram

import (
	"bytes"
	"fmt"
	"strings"

	"troupe/statemachine"
)

type lineWriter struct {
	bytes.Buffer
	picture *Picture
	chart   *statemachine.Chart
	marks   *marks
	words   *phrases
}

func newLineWriter(p *Picture) lineWriter {
	return lineWriter{picture: p, chart: p.translated(), marks: marksOf(p), words: p.words()}
}

func (w *lineWriter) line(depth int, format string, args ...any) {
	w.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

// machines calls node for each state machine, and transitions for each node.
func (w *lineWriter) machines(node func(depth, i int), transitions func(i int)) {
	for i := range w.chart.Nodes {
		if w.chart.Nodes[i].Parent < 0 {
			node(1, i)
		}
	}
	for i := range w.chart.Nodes {
		transitions(i)
	}
}
