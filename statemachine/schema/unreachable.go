package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"troupe/statemachine/data"
)

// Unreachable is a place in a value that does not fit a schema, whatever else will be filled in.
type Unreachable struct {
	// Pointer leads to the place (RFC 6901).
	Pointer string
	Reason  Reason
}

// Reason says why something does not fit.
type Reason string

const (
	// UnknownField: the schema has no such field.
	UnknownField Reason = "unknown"
	// WrongType: the schema has another type of value there.
	WrongType Reason = "type"
	// NoChoice: it is none of the choices that the schema has there.
	NoChoice Reason = "choice"
)

const unreachableMax = 200

// Unreachable returns the places of v that do not fit: fields that the schema does not have, values of another type, and those that
// are none of several choices. What is missing, and what a person can still correct, such as a number that is too small,
// is none. Alternatives and conditions may have any field, and what they say of values is not asked. It returns at
// most 200, in the order of v. A nil Schema takes everything.
func (s *Schema) Unreachable(v data.Value) []Unreachable {
	if s == nil {
		return nil
	}
	w := &walk{left: maxCheckCost}
	w.value(conjuncts(s.compiled, nil), v, nil)
	return w.found
}

type walk struct {
	found []Unreachable
	left  uint64 // what checks may still cost
}

func (w *walk) add(path []string, reason Reason) {
	w.found = append(w.found, Unreachable{Pointer: pointerTo(path), Reason: reason})
}

// pointerTo is a JSON pointer (RFC 6901, section 3).
func pointerTo(path []string) string {
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, name := range path {
		b.WriteByte('/')
		b.WriteString(escape.Replace(name))
	}
	return b.String()
}

func (w *walk) value(parts []*jsonschema.Schema, v data.Value, path []string) {
	cost := uint64(len(parts) * len(parts)) // conjuncts compared them with each other
	if len(parts) == 0 || len(w.found) >= unreachableMax || cost > w.left {
		return
	}
	w.left -= cost
	if kinds := kindsOf(parts); kinds != 0 && kinds&kindOfValue(v) == 0 {
		w.add(path, WrongType)
		return
	}
	switch v.Kind() {
	case data.Object:
		w.object(parts, v, path)
	case data.Array:
		w.list(parts, v, path)
	default:
		choices, finite := choicesOf(parts)
		if !finite || len(choices) < 2 { // NB: a single one is a requirement that can still be met, as of a box to be ticked
			return
		}
		given := v.Any()
		if slices.ContainsFunc(parts, func(part *jsonschema.Schema) bool { return fitsNot(part, given, &w.left) }) {
			w.add(path, NoChoice)
		}
	}
}

// kindOfValue counts every number as both kinds: whether it has to be whole is for anyone who fills it in.
func kindOfValue(v data.Value) valueKinds {
	switch v.Kind() {
	case data.Null:
		return nullKind
	case data.Bool:
		return boolKind
	case data.Number:
		return wholeKind | numberKind
	case data.String:
		return textKind
	case data.Array:
		return listKind
	}
	return objectKind
}

func (w *walk) object(parts []*jsonschema.Schema, v data.Value, path []string) {
	open := !slices.ContainsFunc(parts, hasFields)
	for name, member := range v.Members() {
		if len(w.found) >= unreachableMax {
			return
		}
		below := append(slices.Clone(path), name)
		var of []*jsonschema.Schema
		known := open
		for _, part := range parts {
			for _, one := range membersOf(part, name) {
				of = conjuncts(one, of)
			}
			known = known || mentions(part, name)
		}
		if refusedBy(parts, name) || !known && len(of) == 0 {
			w.add(below, UnknownField)
			continue
		}
		w.value(of, member, below)
	}
}

// membersOf are the schemas that a part has for the member: those that name it, else the one of all others.
func membersOf(part *jsonschema.Schema, name string) []*jsonschema.Schema {
	found := named(part, name)
	if rest, _ := part.AdditionalProperties.(*jsonschema.Schema); rest != nil && len(found) == 0 {
		found = append(found, rest)
	}
	return found
}

func hasFields(part *jsonschema.Schema) bool {
	return somewhere(part, map[*jsonschema.Schema]bool{}, func(one *jsonschema.Schema) bool {
		return len(one.Properties) > 0 || len(one.PatternProperties) > 0
	})
}

func refusedBy(parts []*jsonschema.Schema, name string) bool {
	return slices.ContainsFunc(parts, func(part *jsonschema.Schema) bool { return refuses(part, name) })
}

func (w *walk) list(parts []*jsonschema.Schema, v data.Value, path []string) {
	var of []*jsonschema.Schema
	for _, part := range parts {
		if len(part.PrefixItems) > 0 {
			return // the first elements have schemas of their own
		}
		of = conjuncts(part.Items2020, of)
	}
	for n, element := range v.Elements() {
		w.value(of, element, append(slices.Clone(path), strconv.Itoa(n)))
	}
}
