package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/schemacost"
)

// valueKinds is a set of kinds of JSON values. A whole number is a number, too.
type valueKinds uint8

const (
	nullKind valueKinds = 1 << iota
	boolKind
	wholeKind
	numberKind // those that are not whole
	textKind
	listKind
	objectKind

	anyKind valueKinds = 1<<iota - 1
)

// kindsOfType are the kinds of the words of "type".
var kindsOfType = map[string]valueKinds{
	"null": nullKind, "boolean": boolKind, "integer": wholeKind, "number": wholeKind | numberKind,
	"string": textKind, "array": listKind, "object": objectKind,
}

// String lists the words of "type".
func (k valueKinds) String() string {
	var words []string
	for _, word := range []string{"string", "number", "integer", "boolean", "array", "object", "null"} {
		of := kindsOfType[word]
		if k&of != of || word == "integer" && k&numberKind != 0 {
			continue
		}
		words = append(words, word)
	}
	return strings.Join(words, " or ")
}

func kindsOf(parts []*jsonschema.Schema) valueKinds {
	kinds := anyKind
	for _, part := range parts {
		if part.Types == nil {
			continue
		}
		var of valueKinds
		for _, word := range part.Types.ToStrings() {
			of |= kindsOfType[word]
		}
		kinds &= of
	}
	return kinds
}

// choicesOf returns the values that are named one by one, by enum, const or alternatives that are const or enum each. It
// is false when they are not, or when too many alternatives would have to be looked at. Other rules of the schema may leave fewer.
func choicesOf(parts []*jsonschema.Schema) ([]any, bool) {
	left := alternativesMax
	return choicesWithin(parts, &left)
}

// alternativesMax bounds choicesOf: alternatives may have alternatives, and refer to the same ones.
const alternativesMax = 10_000

func choicesWithin(parts []*jsonschema.Schema, left *int) ([]any, bool) {
	if *left -= len(parts); *left < 0 {
		return nil, false
	}
	for _, part := range parts {
		switch {
		case part.Const != nil:
			return []any{*part.Const}, true
		case part.Enum != nil:
			return part.Enum.Values, true
		}
	}
	for _, part := range parts {
		for _, alternatives := range [][]*jsonschema.Schema{part.OneOf, part.AnyOf} {
			var all []any
			whole := len(alternatives) > 0
			for _, one := range alternatives {
				choices, ok := choicesWithin(conjuncts(one, nil), left)
				all, whole = append(all, choices...), whole && ok
			}
			if whole {
				return all, true
			}
		}
	}
	return nil, false
}

// Values says which values of a field one schema has and another one refuses.
type Values struct {
	// Sent and Taken are the types that have nothing in common; both empty where that is not the reason.
	Sent, Taken string
	// Refused are the choices that are refused, as JSON; All: there are no others.
	Refused []string
	All     bool
}

// valuesRefused compares a field that is sent with the schemas that all take it. It is nil unless some values are refused for
// certain. left bounds the checks.
func valuesRefused(sent *jsonschema.Schema, taken []*jsonschema.Schema, left *uint64) *Values {
	if sent == nil || isFalse(sent) {
		return nil
	}
	var takes []*jsonschema.Schema
	for _, one := range taken {
		takes = conjuncts(one, takes)
	}
	parts := conjuncts(sent, nil)
	given, wanted := kindsOf(parts), kindsOf(takes)
	if given != 0 && wanted != 0 && given&wanted == 0 {
		return &Values{Sent: given.String(), Taken: wanted.String(), All: true}
	}
	choices, finite := choicesOf(parts)
	if !finite {
		return nil
	}
	v, offered := Values{}, 0
	for _, choice := range choices {
		if fitsNot(sent, choice, left) {
			continue
		}
		offered++
		if slices.ContainsFunc(taken, func(one *jsonschema.Schema) bool { return fitsNot(one, choice, left) }) {
			v.Refused = append(v.Refused, textOf(choice))
		}
	}
	if len(v.Refused) == 0 {
		return nil
	}
	v.All = len(v.Refused) == offered
	return &v
}

// fitsNot reports whether a value fails a schema. One with numbers beyond the bounds of checks never does, nor one whose check
// costs more than is left; left goes down by the cost.
func fitsNot(s *jsonschema.Schema, v any, left *uint64) bool {
	if _, far := farNumber(v); far {
		return false
	}
	cost, within := schemacost.Within(s, v, *left)
	*left -= cost
	return within && s.Validate(v) != nil
}

func textOf(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // it was JSON
	}
	return data.Shorten(string(bytes.TrimSpace(b.Bytes())))
}
