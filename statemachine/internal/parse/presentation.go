package parse

import (
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
)

func (b *builder) presented(n *chart.Node, v *document.Node) {
	n.Label = b.Label(v.Field("label"))
	n.Tone = n.ToneIn()
	if at := v.Field("tone"); at != nil {
		n.Tone = clause.OneOf(&b.Reader, at, clause.ToneWords)
	}
}
