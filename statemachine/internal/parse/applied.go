package parse

import (
	"fmt"

	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// checkApplied holds that each event that is applied in every state says who may
// send it. at is the definition's own unmatched, or nil.
func (b *builder) checkApplied(at *document.Node) {
	d := b.Definition
	for _, name := range d.EventNames() {
		if d.UnmatchedRule(name) != chart.UnmatchedApply {
			continue
		}
		d.Applies = true
		c := d.Events[name]
		if c != nil && c.Allow != nil {
			continue
		}
		where := at
		if c != nil && c.Unmatched == chart.UnmatchedApply {
			where = &document.Node{Line: c.Line}
		}
		b.Advise(where, fmt.Sprintf("events: {%s: {allow: …}}", name),
			"event %q is applied in every state, so its declaration needs an \"allow\"", string(name))
	}
	if d.Unmatched == chart.UnmatchedApply && len(d.Declared.Patterns) > 0 {
		b.Advise(at, "say unmatched: apply where an event is declared", "\"apply\" cannot hold for events that only a pattern names")
	}
}
