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
	into, how := chart.NoDocument, chart.ApplyUnset
	for _, t := range picked {
		if into == chart.NoDocument {
			into = t.Into
		}
		if how == chart.ApplyUnset {
			how = t.Apply
		}
	}
	if c != nil {
		if into == chart.NoDocument {
			into = c.Into
		}
		if how == chart.ApplyUnset {
			how = c.Apply
		}
	}
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

func (m *macrostep) childData(t *chart.Template) (data.Value, error) {
	if t == nil {
		return nil, nil
	}
	v, err := t.Eval(&m.scope)
	if err == nil && v.Kind() != data.Object {
		err = errChildData
	}
	return v, err
}

var errPayload = errors.New("params can be added to an object only")

func (m *macrostep) payload(p chart.Payload) (data.Value, error) {
	var v data.Value
	if p.Value != nil {
		var err error
		if v, err = p.Value.Eval(&m.scope); err != nil {
			return nil, err
		}
	}
	if p.Params == nil {
		return v, nil
	}
	if len(v) > 0 && v.Kind() != data.Object {
		return nil, errPayload
	}
	for _, param := range p.Params {
		member, err := param.Value.Eval(&m.scope)
		if err != nil {
			m.raiseError(err)
			continue
		}
		if len(v) == 0 {
			v = chart.EmptyObject
		}
		if v, err = data.Set(v, data.Path{param.Name}, member); err != nil {
			return nil, err
		}
	}
	if len(v) > chart.MaxTemplateBytes {
		return nil, chart.ErrTemplateTooLarge
	}
	return v, nil
}

func (m *macrostep) outputOf(n *chart.Node) (data.Value, error) {
	switch {
	case n.Params != nil:
		return m.payload(chart.Payload{Value: n.Output, Params: n.Params})
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
