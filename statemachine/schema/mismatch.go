package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Refuses reports whether no object with a member of that name fits the schema. Alternatives and conditions count as taking the
// member, so it may report false for a member that never fits. A nil Schema refuses nothing.
func (s *Schema) Refuses(member string) bool {
	return s != nil && refuses(s.compiled, member)
}

// Mismatch is a place where one schema asks for fields or values that another does not take.
type Mismatch struct {
	// Path leads to the field through the names of properties. An element of a list is not named: it has the path of its list.
	Path []string
	// Missing: the field is required and not there. Optional: it is required, and there, but may be left out. Else it is there
	// and refused, or with Values only some or all of its values.
	Missing, Optional bool
	Values            *Values
	// Others are the fields that the other side has beside it, where the field may be meant for one of them.
	Others []string
}

// Mismatches compares s, the schema of the data that is sent, with the schema of the data that is taken. It returns the fields of
// s that taken refuses, and the fields that taken requires and s does not have or does not require, in the order of their paths.
// Of a field that both have it compares the types and the choices; other rules of values are not compared. It has the same limits
// as Refuses.
func (s *Schema) Mismatches(taken *Schema) []Mismatch {
	if s == nil || taken == nil {
		return nil
	}
	c := comparison{seen: map[[2]*jsonschema.Schema]bool{}, left: MaxVisitCost}
	c.compare(s.compiled, taken.compiled, nil)
	return c.mismatches
}

// comparison is one call of Schema.Mismatches. Schemas may refer to themselves.
type comparison struct {
	seen       map[[2]*jsonschema.Schema]bool
	mismatches []Mismatch
	left       uint64 // what it may still cost, in the units of checks
}

func (c *comparison) pays(cost int) bool {
	if uint64(cost) > c.left {
		c.left = 0
		return false
	}
	c.left -= uint64(cost)
	return true
}

func (c *comparison) compare(sent, taken *jsonschema.Schema, path []string) {
	pair := [2]*jsonschema.Schema{sent, taken}
	if sent == nil || taken == nil || c.seen[pair] {
		return
	}
	c.seen[pair] = true
	fields, parts := properties(sent), conjuncts(taken, nil)
	if !c.pays((len(fields) + 1) * (len(parts)*len(parts) + 1)) { // conjuncts compares them with each other
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		below := append(slices.Clone(path), name)
		if refuses(taken, name) {
			c.mismatches = append(c.mismatches, Mismatch{Path: below, Others: without(Shape{parts}.Fields(), fields)})
			continue
		}
		var takes []*jsonschema.Schema
		for _, part := range parts {
			takes = append(takes, membersOf(part, name)...)
		}
		if v := valuesRefused(fields[name], takes, &c.left); v != nil {
			if c.mismatches = append(c.mismatches, Mismatch{Path: below, Values: v}); v.All {
				continue
			}
		}
		for _, one := range takes {
			c.compare(fields[name], one, below)
		}
	}
	for _, name := range (Shape{parts}).Required() {
		// Below the top, a schema without fields leaves its fields open.
		if len(path) > 0 && len(fields) == 0 {
			continue
		}
		m := Mismatch{Path: append(slices.Clone(path), name), Missing: !mentions(sent, name)}
		if m.Missing {
			m.Others = without(slices.Sorted(maps.Keys(fields)), properties(taken))
		}
		// A field with a default is filled in beforehand.
		filled := fields[name] != nil && fields[name].Default != nil
		if m.Optional = !m.Missing && !filled && !requires(sent, name); m.Missing || m.Optional {
			c.mismatches = append(c.mismatches, m)
		}
	}
	for _, one := range conjuncts(sent, nil) {
		for _, other := range parts {
			if v := valuesRefused(one.Items2020, present(other.Items2020), &c.left); v != nil && len(path) > 0 {
				if c.mismatches = append(c.mismatches, Mismatch{Path: path, Values: v}); v.All {
					continue
				}
			}
			c.compare(one.Items2020, other.Items2020, path)
		}
	}
}

func present(s *jsonschema.Schema) []*jsonschema.Schema {
	if s == nil {
		return nil
	}
	return []*jsonschema.Schema{s}
}

func without(names []string, fields map[string]*jsonschema.Schema) []string {
	return slices.DeleteFunc(names, func(name string) bool { return fields[name] != nil })
}

func properties(s *jsonschema.Schema) map[string]*jsonschema.Schema {
	fields := map[string]*jsonschema.Schema{}
	for _, part := range conjuncts(s, nil) {
		maps.Copy(fields, part.Properties)
	}
	return fields
}

// conjuncts returns the schemas that every value of s fits: s itself, the one that it refers to, and the parts of allOf.
func conjuncts(s *jsonschema.Schema, before []*jsonschema.Schema) []*jsonschema.Schema {
	if s == nil || slices.Contains(before, s) {
		return before
	}
	before = conjuncts(s.Ref, append(before, s))
	for _, part := range s.AllOf {
		before = conjuncts(part, before)
	}
	return before
}

// refuses is Schema.Refuses for one that is not nil.
func refuses(s *jsonschema.Schema, member string) bool {
	all := conjuncts(s, nil)
	open := slices.ContainsFunc(all, func(part *jsonschema.Schema) bool {
		return part.AnyOf != nil || part.OneOf != nil || part.If != nil || part.DependentSchemas != nil ||
			part.AdditionalProperties != nil || len(named(part, member)) > 0
	})
	return slices.ContainsFunc(all, func(part *jsonschema.Schema) bool {
		if isFalse(part) || part.MaxProperties != nil && *part.MaxProperties == 0 || part.PropertyNames != nil && part.PropertyNames.Validate(member) != nil {
			return true
		}
		if found := named(part, member); len(found) > 0 {
			return slices.ContainsFunc(found, isFalse)
		}
		rest, _ := part.AdditionalProperties.(*jsonschema.Schema)
		return part.AdditionalProperties == false || isFalse(rest) || isFalse(part.UnevaluatedProperties) && !open
	})
}

func named(s *jsonschema.Schema, member string) []*jsonschema.Schema {
	var found []*jsonschema.Schema
	if p := s.Properties[member]; p != nil {
		found = append(found, p)
	}
	for pattern, p := range s.PatternProperties {
		if pattern.MatchString(member) {
			found = append(found, p)
		}
	}
	return found
}

func isFalse(s *jsonschema.Schema) bool { return s != nil && s.Bool != nil && !*s.Bool }

// mentions reports whether some part of s has a schema for a member of that name, alternatives and conditions included.
func mentions(s *jsonschema.Schema, member string) bool {
	return somewhere(s, map[*jsonschema.Schema]bool{}, func(part *jsonschema.Schema) bool { return len(named(part, member)) > 0 })
}

// requires reports whether some part of s requires a member of that name, alternatives and conditions included.
func requires(s *jsonschema.Schema, member string) bool {
	return somewhere(s, map[*jsonschema.Schema]bool{}, func(part *jsonschema.Schema) bool { return slices.Contains(part.Required, member) })
}

// somewhere reports whether is holds for s or for a part of it about the same value. It
// asks each part once, however many others refer to it, and notes them in asked.
func somewhere(s *jsonschema.Schema, asked map[*jsonschema.Schema]bool, is func(*jsonschema.Schema) bool) bool {
	if s == nil || asked[s] {
		return false
	}
	asked[s] = true
	if is(s) {
		return true
	}
	parts := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Ref, s.If, s.Then, s.Else},
		slices.Collect(maps.Values(s.DependentSchemas)))
	return slices.ContainsFunc(parts, func(part *jsonschema.Schema) bool { return somewhere(part, asked, is) })
}
