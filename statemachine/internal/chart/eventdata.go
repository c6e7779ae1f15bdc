package chart

import (
	"bytes"
	"fmt"
	"slices"

	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

// Documents holds the members svcPublic and svcPrivate of event.data.
type Documents struct {
	Public, Private data.Value // absent when event.data does not name them
}

// AreNamed reports whether event.data names one of them.
func (p *Documents) AreNamed() bool { return p.Public != nil || p.Private != nil }

// rootPrefix is what both names of documents begin with.
var rootPrefix = []byte("svcP")

// DocumentsOf reads which documents event.data names, and refuses ambiguous data (statemachine/DEFINITION.md, "Event data"). c may be nil.
func DocumentsOf(c *EventDeclaration, given data.Value) (Documents, error) {
	var p Documents
	// NB: a byte that few events have is found much faster than a word.
	if bytes.IndexByte(given, '\\') < 0 && (bytes.IndexByte(given, 'P') < 0 || !bytes.Contains(given, rootPrefix)) {
		return p, nil // the usual case: no name can be there, not even an escaped one
	}
	other := false
	for key, v := range given.Members() {
		switch key {
		case "svcPublic":
			p.Public = v
		case "svcPrivate":
			p.Private = v
		default:
			other = true
			continue
		}
		if v.Kind() != data.Object {
			return p, misplaced{key + " must be an object"}
		}
	}
	switch {
	case !p.AreNamed():
	case other:
		return p, misplaced{"svcPublic and svcPrivate cannot stand beside other members"}
	case c != nil && c.Into != NoDocument:
		return p, ErrNamedDocument
	case p.Private != nil && (c == nil || !c.Private):
		return p, misplaced{"svcPrivate cannot be set with this event"}
	}
	return p, nil
}

// misplaced is the ErrInvalidData of event.data that names the documents wrongly.
type misplaced struct{ reason string }

func (e misplaced) Error() string { return "event.data: " + e.reason }

func (e misplaced) Unwrap() error { return schema.ErrInvalidData }

// ErrNamedDocument: the event has an into, so its data must not name the documents.
var ErrNamedDocument error = misplaced{"svcPublic and svcPrivate cannot be named with this event"}

// Mismatches compares the schema of data that is sent with an event with the event's declaration. It returns the fields that the event
// refuses, those that it requires and that may be missing, and those of which it refuses all values, or some choices. Only what is certain is
// one (actors/formportal/DESIGN.md, "Forms and events"). An event that the definition does not declare takes everything.
func (d *Definition) Mismatches(event EventName, sent *schema.Schema) []schema.Mismatch {
	c := d.Events[event]
	if sent == nil {
		return nil
	}
	var found []schema.Mismatch
	if c != nil {
		found = sent.Mismatches(c.Schema)
	}
	fields := sent.Shape().Fields()
	for _, name := range []string{"svcPrivate", "svcPublic"} {
		if !slices.Contains(fields, name) {
			continue
		}
		// DocumentsOf decides about an object that has all fields.
		given := []byte(`{"` + name + `":{}`)
		for _, other := range fields {
			if other != "svcPrivate" && other != "svcPublic" {
				given = append(given, `,"other":0`...)
				break
			}
		}
		_, err := DocumentsOf(c, append(given, '}'))
		known := slices.ContainsFunc(found, func(m schema.Mismatch) bool { return len(m.Path) == 1 && m.Path[0] == name && !m.Optional })
		if err != nil && !known {
			found = append(found, schema.Mismatch{Path: []string{name}})
		}
	}
	return found
}

// CheckCreation checks the data of a create against the definition's create block.
func (d *Definition) CheckCreation(public, private data.Value) error {
	for _, part := range []struct {
		name   string
		schema *schema.Schema
		given  data.Value
	}{{"svcPublic", d.CreatePublic, public}, {"svcPrivate", d.CreatePrivate, private}} {
		if part.given.Kind() == data.Absent {
			part.given = EmptyObject
		}
		err := part.schema.Check(part.given)
		if err != nil && part.schema.IsNothing() {
			err = ErrNotSettable
		}
		if err != nil {
			return fmt.Errorf("on create %s: %w", part.name, err)
		}
	}
	return nil
}

// TakesNoData says why an instance cannot be created without data: ErrInvalidData; nil when it can.
func (d *Definition) TakesNoData() error { return d.CheckCreation(nil, nil) }

// CheckData checks an instance's documents against the workflow's schema.
func (d *Definition) CheckData(public, private data.Value) error {
	if err := d.PublicSchema.Check(public); err != nil {
		return fmt.Errorf("svcPublic: %w", err)
	}
	if err := d.PrivateSchema.Check(private); err != nil {
		return fmt.Errorf("svcPrivate: %w", err)
	}
	return nil
}

// IntoAndApply say where event.data goes and how: the first transition with either decides, then the declaration, which may be nil.
func IntoAndApply(picked []*Transition, c *EventDeclaration) (into Document, how ApplyRule) {
	for _, t := range picked {
		if into == NoDocument {
			into = t.Into
		}
		if how == ApplyUnset {
			how = t.Apply
		}
	}
	if c != nil {
		if into == NoDocument {
			into = c.Into
		}
		if how == ApplyUnset {
			how = c.Apply
		}
	}
	return into, how
}
