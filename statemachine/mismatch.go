package statemachine

import (
	"slices"

	"troupe/statemachine/schema"
)

// Mismatches compares the schema of data that is sent with an event with the event's
// declaration. It returns the fields that the event refuses, those that it requires and that
// may be missing, and those of which it refuses all values, or some choices. Only what is
// certain is one (actors/formportal/DESIGN.md, "Forms and events"). An event that the definition does not
// declare takes everything.
func (d *Definition) Mismatches(event EventName, sent *schema.Schema) []schema.Mismatch {
	c := d.Events[event]
	if sent == nil {
		return nil
	}
	var misfits []schema.Mismatch
	if c != nil {
		misfits = sent.Mismatches(c.Schema)
	}
	fields := sent.Shape().Fields()
	for _, name := range []string{"svcPrivate", "svcPublic"} {
		if !slices.Contains(fields, name) {
			continue
		}
		// partsOf decides about an object that has all fields.
		given := []byte(`{"` + name + `":{}`)
		for _, other := range fields {
			if other != "svcPrivate" && other != "svcPublic" {
				given = append(given, `,"other":0`...)
				break
			}
		}
		_, err := partsOf(c, append(given, '}'))
		told := slices.ContainsFunc(misfits, func(m schema.Mismatch) bool { return len(m.Path) == 1 && m.Path[0] == name && !m.Optional })
		if err != nil && !told {
			misfits = append(misfits, schema.Mismatch{Path: []string{name}})
		}
	}
	return misfits
}
