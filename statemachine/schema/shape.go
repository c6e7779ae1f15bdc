package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Shape is what a schema says of the fields of a value, so that a page can be made of it. The zero value has no fields.
type Shape struct {
	parts []*jsonschema.Schema // all hold
}

// Shape returns the shape of the schema's values; s may be nil.
func (s *Schema) Shape() Shape {
	if s == nil {
		return Shape{}
	}
	return Shape{conjuncts(s.compiled, nil)}
}

// Fields returns the names of the fields that every value may have, in order. Alternatives and conditions do not count.
func (s Shape) Fields() []string {
	names := map[string]bool{}
	for _, part := range s.parts {
		for name := range part.Properties {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Required returns the names of the fields that every value must have, in order.
func (s Shape) Required() []string {
	var names []string
	for _, part := range s.parts {
		names = append(names, part.Required...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Mentions reports whether a value can have a field of that name; alternatives and conditions count.
func (s Shape) Mentions(name string) bool {
	return slices.ContainsFunc(s.parts, func(part *jsonschema.Schema) bool { return mentions(part, name) })
}

// Field returns the shape of one of Fields.
func (s Shape) Field(name string) Shape {
	var below Shape
	for _, part := range s.parts {
		below.parts = conjuncts(part.Properties[name], below.parts)
	}
	return below
}

// Items returns the shape of the elements of a list.
func (s Shape) Items() Shape {
	var below Shape
	for _, part := range s.parts {
		below.parts = conjuncts(part.Items2020, below.parts)
	}
	return below
}

// Within reports whether the shape equals one of those around it, which happens in a schema that refers to itself.
func (s Shape) Within(around []Shape) bool {
	return slices.ContainsFunc(around, func(o Shape) bool { return slices.Equal(o.parts, s.parts) })
}
