package statemachine

import (
	"bytes"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// applyData applies event.data to the instance, once, after the selection and before
// any state is left (statemachine/DEFINITION.md, "Event data"). The first picked
// transition with into or apply decides, then the event's declaration, then the
// default: data that names svcPublic and svcPrivate is merged into each, all other
// data into svcPublic. p is the result of partsOf.
func (m *macrostep) applyData(picked []*chart.Transition, c *chart.EventDeclaration, given data.Value, p *parts) error {
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
	case (m.byItself() || m.d.Semantics == chart.SCXMLSemantics) && into == chart.NoDocument && how == chart.ApplyUnset: // data of nobody's goes where the definition says alone
		return nil
	case into != chart.NoDocument && p.named():
		return errWhole
	case into != chart.NoDocument:
		return m.applyTo(into, how, given)
	case string(given) == string(chart.EmptyObject): // it does not replace svcPublic
		return nil
	case p.named():
		if err := m.applyTo(chart.Public, how, p.public); err != nil {
			return err
		}
		return m.applyTo(chart.Private, how, p.private)
	}
	return m.applyTo(chart.Public, how, given)
}

// parts holds the members svcPublic and svcPrivate of event.data.
type parts struct {
	public, private data.Value // absent when event.data does not name them
}

func (p *parts) named() bool { return p.public != nil || p.private != nil }

// rootPrefix is what both names of documents begin with.
var rootPrefix = []byte("svcP")

// partsOf reads which documents event.data names, and refuses ambiguous data
// (statemachine/DEFINITION.md, "Event data"). c may be nil.
func partsOf(c *chart.EventDeclaration, given data.Value) (parts, error) {
	var p parts
	// NB: a byte that few events have is found much faster than a word.
	if bytes.IndexByte(given, '\\') < 0 && (bytes.IndexByte(given, 'P') < 0 || !bytes.Contains(given, rootPrefix)) {
		return p, nil // the usual case: no name can be there, not even an escaped one
	}
	other := false
	for key, v := range given.Members() {
		switch key {
		case "svcPublic":
			p.public = v
		case "svcPrivate":
			p.private = v
		default:
			other = true
			continue
		}
		if v.Kind() != data.Object {
			return p, misplaced{key + " must be an object"}
		}
	}
	switch {
	case !p.named():
	case other:
		return p, misplaced{"svcPublic and svcPrivate cannot stand beside other members"}
	case c != nil && c.Into != chart.NoDocument:
		return p, errWhole
	case p.private != nil && (c == nil || !c.Private):
		return p, misplaced{"svcPrivate cannot be set with this event"}
	}
	return p, nil
}

// misplaced is the ErrInvalidData of event.data that names the documents wrongly.
type misplaced struct{ reason string }

func (e misplaced) Error() string { return "event.data: " + e.reason }

func (e misplaced) Unwrap() error { return ErrInvalidData }

// errWhole: the event has an into, so its data must not name the documents.
var errWhole error = misplaced{"svcPublic and svcPrivate cannot be named with this event"}

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
	return m.d.checkData(&m.in)
}
