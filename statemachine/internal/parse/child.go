package parse

import (
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
)

// invokes reads the children of a node: one, or a list.
func (b *builder) invokes(n *chart.Node, v *document.Node) {
	items := []*document.Node{v}
	if v.Kind == document.Sequence {
		items = v.Items
	}
	for _, item := range items {
		b.invoke(n, item)
	}
}

func (b *builder) invoke(n *chart.Node, v *document.Node) {
	keys := clause.InvokeKeys
	if b.IsSCXML() {
		keys = clause.SCXMLInvokeKeys
	}
	if !b.Mapping(v, keys) {
		return
	}
	inv := &chart.Invoke{Node: n, Number: len(n.Invoke)}
	n.Invoke = append(n.Invoke, inv)
	if b.IsSCXML() && !b.scxmlInvoke(inv, v) {
		return
	}
	of := v.Field("workflow")
	if of == nil {
		b.Add(v, "invoke needs \"workflow\"")
		return
	}
	if inv.Workflow = b.Text(of); !chart.IsIdentifier(inv.Workflow) {
		b.Add(of, "%q cannot be the id of a workflow", data.Shorten(inv.Workflow))
	}
	b.Definition.Invokes = chart.AddReference(b.Definition.Invokes, inv.Workflow, of.Line)
	if at := v.Field("version"); at != nil {
		version, ok := b.Int(at)
		if ok && version < 1 {
			b.Add(at, "a version is 1 or more")
		}
		inv.Version = uint64(max(version, 0)) //nolint:gosec // not negative
	}
	if at := v.Field("data"); at != nil && inv.SCXMLInvoke == nil && b.Mapping(at, clause.DocumentKeys) {
		for key, to := range map[string]**chart.Template{"svcPublic": &inv.Public, "svcPrivate": &inv.Private} {
			if part := at.Field(key); part != nil {
				*to = b.Template(part)
			}
		}
	}
	b.callbacks(inv, v)
}

// callbacks reads what takes the end of a child: in one order, so that a file always means the same.
func (b *builder) callbacks(inv *chart.Invoke, v *document.Node) {
	for _, of := range []struct {
		key    string
		failed bool
	}{{"onDone", false}, {"onError", true}} {
		at := v.Field(of.key)
		if at == nil {
			continue
		}
		list := b.transitions(inv.Node, at, chart.EventPattern{})
		for _, t := range list {
			t.Child = &chart.ChildTransition{Invoke: inv, Failed: of.failed}
		}
		inv.Node.On = append(inv.Node.On, list...)
	}
}
