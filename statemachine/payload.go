package statemachine

import (
	"errors"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

func (m *macrostep) setPath(r chart.Document, path data.Path, v data.Value) error {
	doc := m.in.Public
	if r == chart.Private {
		doc = m.in.Private
	}
	switch {
	case len(path) > 0:
		var err error
		if v, err = data.Set(doc, path, v); err != nil {
			return err
		}
	case v.Kind() != data.Object:
		return errors.New("assign: a document must be an object")
	}
	return m.setDocument(r, v)
}

// applyData applies event.data to the instance, once, after the selection and before any state is left (statemachine/DEFINITION.md, "Event
// data"). The first picked transition with into or apply decides, then the event's declaration, then the default: data that names svcPublic
// and svcPrivate is merged into each, all other data into svcPublic. p is the result of chart.DocumentsOf.
func (m *macrostep) applyData(picked []*chart.Transition, c *chart.EventDeclaration, given data.Value, p *chart.Documents) error {
	into, how := chart.IntoAndApply(picked, c)
	switch {
	case given.Kind() != data.Object || how == chart.ApplyNone:
		return nil
	case (m.isInternal() || m.d.Semantics == chart.SCXMLSemantics) && into == chart.NoDocument && how == chart.ApplyUnset: // data of nobody's goes where the definition says alone
		return nil
	case into != chart.NoDocument && p.AreNamed():
		return chart.ErrNamedDocument
	case into != chart.NoDocument:
		return m.applyTo(into, how, given)
	case string(given) == string(chart.EmptyObject): // it does not replace svcPublic
		return nil
	case p.AreNamed():
		if err := m.applyTo(chart.Public, how, p.Public); err != nil {
			return err
		}
		return m.applyTo(chart.Private, how, p.Private)
	}
	return m.applyTo(chart.Public, how, given)
}

func (m *macrostep) applyTo(r chart.Document, how chart.ApplyRule, v data.Value) error {
	if v.Kind() == data.Absent {
		return nil
	}
	if how != chart.ApplyReplace {
		old := m.in.Public
		if r == chart.Private {
			old = m.in.Private
		}
		v = data.Merge(old, v)
	}
	if err := m.setDocument(r, v); err != nil {
		return err
	}
	return m.d.CheckData(m.in.Public, m.in.Private)
}

func (m *macrostep) outputOf(n *chart.Node) (data.Value, error) {
	switch {
	case n.Params != nil:
		return chart.Payload{Value: n.Output, Params: n.Params}.Eval(&m.scope, m.raiseError)
	case n.Output != nil:
		return n.Output.Eval(&m.scope)
	}
	return nil, nil
}

func (m *macrostep) setPlace(p *chart.Place, v data.Value) error {
	if p.Bad != nil {
		return p.Bad
	}
	return m.setPath(p.Root, p.Path, v)
}
