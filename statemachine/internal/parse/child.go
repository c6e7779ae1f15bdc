package parse

import (
	"maps"
	"slices"

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
	of, job := v.Field("workflow"), v.Field("job")
	switch {
	case of == nil && job == nil && b.IsSCXML():
		b.Add(v, "invoke needs \"workflow\"")
		return
	case of == nil && job == nil:
		b.Add(v, "invoke needs \"workflow\" or \"job\"")
		return
	case of != nil && job != nil:
		b.Advise(job, "make two invokes of it", "invoke has either \"workflow\" or \"job\"")
		return
	case job != nil:
		b.job(inv, v, job)
		b.callbacks(inv, v)
		return
	}
	if at := v.Field("priority"); at != nil && !b.Stored {
		b.Add(at, "only a job has a priority")
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

// job reads an invoke that has a job done.
func (b *builder) job(inv *chart.Invoke, v, of *document.Node) {
	inv.Job = &chart.JobInvoke{Type: b.Text(of), Data: b.Optional(v.Field("data")), Priority: b.Optional(v.Field("priority"))}
	switch known := b.Definition.JobByType; {
	case len(known) == 0:
		b.Advise(of, "name it under jobs at the top of the file", "unknown type of jobs %q", data.Shorten(inv.Job.Type))
	case known[inv.Job.Type] == nil:
		b.Suggest(of, inv.Job.Type, slices.Sorted(maps.Keys(known)), "unknown type of jobs %q", data.Shorten(inv.Job.Type))
	}
	if at := v.Field("version"); at != nil {
		b.Add(at, "a job has no version")
	}
	if p := inv.Job.Priority; p != nil && p.Constant != nil {
		if _, err := chart.JobPriority(p.Constant); err != nil {
			b.Add(v.Field("priority"), "%v", err)
		}
	}
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
