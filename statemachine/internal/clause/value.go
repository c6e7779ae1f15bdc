package clause

import (
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// RefuseEvent adds a fault when a rule of candidates reads the event: lists of tasks have none.
func (b *Reader) RefuseEvent(at *document.Node, r *chart.Rule) {
	for ; r != nil; r = r.Deny {
		if r.ReadsEvent() {
			b.Add(at, "who is a candidate cannot depend on the event: there is none when tasks are listed")
			return
		}
	}
}

// PublicTemplate reads a value that people see.
func (b *Reader) PublicTemplate(at *document.Node, what string) *chart.Template {
	t := b.Template(at)
	b.RefusePrivate(at, t, what)
	if t != nil && t.Constant == nil && t.Program == nil {
		b.Add(at, "%s must be a text, or one expression", what)
	}
	return t
}

// RefusePrivate adds a fault when a value that people see reads svcPrivate.
func (b *Reader) RefusePrivate(at *document.Node, t *chart.Template, what string) {
	if t != nil && t.Program != nil && t.Program.Reads("svcPrivate") {
		b.Add(at, "%s may not read svcPrivate: %s", what, chart.NotInTexts["svcPrivate"])
	}
}
