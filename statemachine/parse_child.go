package statemachine

import (
	"slices"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// invokes reads the children of a node: one, or a list.
func (b *builder) invokes(n *node, v *document.Node) {
	items := []*document.Node{v}
	if v.Kind == document.Sequence {
		items = v.Items
	}
	for _, item := range items {
		b.invoke(n, item)
	}
}

func (b *builder) invoke(n *node, v *document.Node) {
	keys := invokeKeys
	if b.isSCXML() {
		keys = scxmlInvokeKeys
	}
	if !b.known(v, keys) {
		return
	}
	b.byItself(v)
	inv := &invoke{node: n, number: len(n.invoke)}
	n.invoke = append(n.invoke, inv)
	if b.isSCXML() && !b.scxmlInvoke(inv, v) {
		return
	}
	of := v.Field("workflow")
	if of == nil {
		b.Add(v, "invoke needs \"workflow\"")
		return
	}
	if inv.workflow = b.Text(of); !IsIdentifier(inv.workflow) {
		b.Add(of, "%q cannot be the id of a workflow", data.Shorten(inv.workflow))
	}
	b.d.invoked = addReference(b.d.invoked, inv.workflow, of.Line)
	if at := v.Field("version"); at != nil {
		version, ok := b.Int(at)
		if ok && version < 1 {
			b.Add(at, "a version is 1 or more")
		}
		inv.version = uint64(max(version, 0)) //nolint:gosec // not negative
	}
	if at := v.Field("data"); at != nil && inv.scxmlInvoke == nil && b.known(at, documentKeys) {
		for key, to := range map[string]**template{"svcPublic": &inv.public, "svcPrivate": &inv.private} {
			if part := at.Field(key); part != nil {
				*to = b.template(part)
			}
		}
	}
	b.tellings(inv, v)
}

// tellings reads what takes the end of a child: in one order, so that a file always means the same.
func (b *builder) tellings(inv *invoke, v *document.Node) {
	for _, of := range []struct {
		key    string
		failed bool
	}{{"onDone", false}, {"onError", true}} {
		at := v.Field(of.key)
		if at == nil {
			continue
		}
		list := b.transitions(inv.node, at, eventPattern{})
		for _, t := range list {
			t.told = &telling{inv, of.failed}
		}
		inv.node.on = append(inv.node.on, list...)
	}
}

// Reference is a name of something outside that a definition needs, and the line where it stands first.
type Reference struct {
	Name string
	Line int
}

// addReference adds a name that is new.
func addReference(to []Reference, name string, line int) []Reference {
	if slices.ContainsFunc(to, func(r Reference) bool { return r.Name == name }) {
		return to
	}
	return append(to, Reference{name, line})
}

// Invokes returns the workflows whose instances this one creates, in document order, each once.
func (d *Definition) Invokes() []Reference { return d.invoked }
