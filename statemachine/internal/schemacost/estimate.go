// Package schemacost bounds what it costs to check a value against a JSON Schema, in units of some 50 ns. The library has
// no bound: a schema of 2 KB whose definitions refer to the next one twice each is visited 2^25 times, for the value {}. Of
// is the cost of a schema with its references unfolded; without recursion a check costs at most Estimate.Bound. Within
// walks as the library does, over the schema and the value at once, and only counts.
package schemacost

import (
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"troupe/statemachine/internal/pattern"
)

// What things cost, in units.
const (
	visitCost  = 10 // of one schema with one value: the library makes three objects for it
	numberCost = 10 // of reading a number
	// patternShare is how many instructions of a regular expression handle a byte in one unit, when all are at work.
	patternShare = pattern.Share
	// patternStart is how many instructions are made ready in one unit.
	patternStart = 16
	// regexPerByte is above what a byte of a regular expression takes that the data has: the most are in a(?i:-𞥃), and in
	// a{1000}.
	regexPerByte = 50_000
	// deepShare is how many schemas about the same value the library looks through in one unit, for cycles.
	deepShare = 16
	// assumedText is how long texts are taken to be before there is a value.
	assumedText = 100
	// closePairs is up to how many elements of a list are compared in pairs.
	closePairs = 20
)

const regexFormat = "regex"

// Estimate is the cost of a schema. The zero value is that of one that takes everything.
type Estimate struct {
	visited uint64 // what the visits cost, one for each schema of the unfolded whole
	perByte uint64 // what each byte of a value adds to that
	texts   uint64 // the part of perByte that is of regular expressions
	// open: it has no bound but the value's, because the schema refers to itself, or was not unfolded to its end.
	open bool
	// Foreign: it refers to the schema of schemas, whose references mean different things in different places.
	Foreign bool
}

// Of unfolds a schema. It ends as soon as Once is above most.
func Of(s *jsonschema.Schema, most uint64) Estimate {
	u := unfolding{around: map[*jsonschema.Schema]bool{}, most: most}
	u.add(s, 0)
	return u.Estimate
}

// Once is the cost of a visit to everything, with texts of a usual length.
func (e Estimate) Once() uint64 { return sum(e.visited, product(e.texts, assumedText)) }

// Bound is what checking a value costs at most that has so many bytes as JSON.
func (e Estimate) Bound(bytes int) uint64 {
	if e.open {
		return math.MaxUint64
	}
	values := uint64(bytes)/2 + 1 // each but the last has a comma or a bracket
	return sum(product(e.visited, values), product(e.perByte, uint64(bytes)))
}

func sum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func product(a, b uint64) uint64 {
	if b != 0 && a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}

type unfolding struct {
	Estimate
	around map[*jsonschema.Schema]bool
	most   uint64
}

func (u *unfolding) add(s *jsonschema.Schema, depth uint64) {
	if s == nil {
		return
	}
	if u.Once() > u.most {
		u.open = true
		return
	}
	own := ownCost(s)
	u.visited += own.visited + depth/deepShare
	u.perByte, u.texts = u.perByte+own.perByte, u.texts+own.texts
	u.Foreign = u.Foreign || strings.Contains(s.Location, "://json-schema.org/")
	if u.around[s] {
		u.open = true
		return
	}
	u.around[s] = true
	whole(s, func(part *jsonschema.Schema) { u.add(part, depth+1) })
	for _, part := range below(s) {
		u.add(part, 0)
	}
	delete(u.around, s)
}

// whole visits the schemas about the same value that s is made of.
func whole(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	for _, one := range [...]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else} {
		if one != nil {
			visit(one)
		}
	}
	if s.DynamicRef != nil {
		visit(s.DynamicRef.Ref)
	}
	for _, all := range [...][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, one := range all {
			visit(one)
		}
	}
	for _, one := range s.DependentSchemas {
		visit(one)
	}
	for _, one := range s.Dependencies {
		if of, is := one.(*jsonschema.Schema); is {
			visit(of)
		}
	}
}

// requirements is what the names that s requires cost.
func requirements(s *jsonschema.Schema) uint64 {
	cost := len(s.Required) + len(s.Dependencies) + len(s.DependentSchemas)
	for _, names := range s.DependentRequired {
		cost += len(names) + 1
	}
	for _, names := range s.Dependencies {
		of, _ := names.([]string)
		cost += len(of)
	}
	return uint64(cost)
}

// below returns the schemas about parts of the value, and nils. That of the content of a text is none: the library does not look into it
// (jsonschema.Compiler.AssertContent).
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems}
	all = append(all, s.PrefixItems...)
	all = slices.AppendSeq(all, maps.Values(s.Properties))
	all = slices.AppendSeq(all, maps.Values(s.PatternProperties))
	for _, one := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch one := one.(type) {
		case *jsonschema.Schema:
			all = append(all, one)
		case []*jsonschema.Schema:
			all = append(all, one...)
		}
	}
	return all
}

// ownCost is the cost of one visit to s without its parts: a fixed one, and one for each byte of the value.
func ownCost(s *jsonschema.Schema) Estimate {
	e := Estimate{visited: visitCost, perByte: 2} // its members or elements, and which of them are evaluated
	e.visited += requirements(s)
	for _, choice := range choices(s) {
		e.visited += weight(choice) + numberCost
		switch choice.(type) {
		case json.Number:
			e.perByte++ // the value is read each time
		case []any, map[string]any:
			e.perByte += weightPerByte
		}
	}
	if s.Format != nil {
		e.visited, e.perByte = e.visited+2*visitCost, e.perByte+patternShare
		if s.Format.Name == regexFormat {
			e.perByte += regexPerByte
		}
	}
	checks, digits := numberChecks(s)
	e.visited, e.perByte = e.visited+checks*numberCost+digits, e.perByte+2*checks
	if s.MultipleOf != nil {
		e.perByte += 4
	}
	if s.UniqueItems {
		e.visited += closePairs
		e.perByte += weightPerByte * closePairs
	}
	if s.Pattern != nil {
		e.pattern(s.Pattern)
	}
	for re := range s.PatternProperties {
		e.pattern(re)
	}
	return e
}

func (e *Estimate) pattern(re jsonschema.Regexp) {
	size := sizeOf(re)
	e.visited += size/patternStart + 2
	e.perByte += size/patternShare + size/patternStart + 4 // NB: the name of a member can have one byte
	e.texts += size/patternShare + 1
}

func numberChecks(s *jsonschema.Schema) (checks, digits uint64) {
	for _, number := range []*big.Rat{s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum, s.MultipleOf} {
		if number != nil {
			checks++
			digits += uint64(number.Num().BitLen()+number.Denom().BitLen()) / 64
		}
	}
	return checks, digits
}

func choices(s *jsonschema.Schema) []any {
	var all []any
	if s.Enum != nil {
		all = s.Enum.Values
	}
	if s.Const != nil {
		all = append(slices.Clip(all), *s.Const)
	}
	return all
}

// weightPerByte is above the weight of a value for each byte of it as JSON.
const weightPerByte = 6

func weight(v any) uint64 {
	n := uint64(1)
	switch v := v.(type) {
	case json.Number:
		n += numberCost + uint64(len(v))/4
	case string:
		n += uint64(len(v)) / 64
	case []any:
		for _, one := range v {
			n += weight(one)
		}
	case map[string]any:
		for name, one := range v {
			n += 2 + uint64(len(name))/64 + weight(one)
		}
	}
	return n
}
