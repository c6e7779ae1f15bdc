//go:build differential

package filter

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// difference is a class of questions that a partner answers otherwise.
type difference struct {
	// partner is mingo, sift, or both.
	partner, name string
	// rule is that of doc.go which decides.
	rule    string
	applies func(ask) bool
}

// knownDifferences are as narrow as the partners' faults let them be. The rule
// that decides is quoted from doc.go.
var knownDifferences = []difference{
	// Rule 1, the path.
	{"mingo", "a position is not tried on the elements of an array", "rule 1", ask.positionInArray},
	{"sift", "a position is not tried on the elements of an array", "rule 1", ask.positionInArray},
	{"mingo", "what is no object in an array is missing, or is entered", "rule 1", ask.mixedArray},
	{"sift", "what is no object in an array is missing, or is entered", "rule 1", ask.mixedArray},
	{"mingo", "the values of several elements are one array", "rule 1", ask.gathers},
	{"sift", "a position in a text is a character", "rule 1", ask.positionInText},
	{"mingo", "arrays in arrays are taken apart", "rule 1", func(a ask) bool { return a.takesApart() && !a.is("$size") }},
	{"sift", "arrays in arrays are taken apart", "rule 1", ask.takesApart},
	// Rule 2, null.
	{"mingo", "$gte and $lte null do not match missing", "rule 2", func(a ask) bool { return a.is("$gte", "$lte") && a.operand == nil }},
	{"sift", "$gte and $lte null match empty arrays", "rule 2", func(a ask) bool { return a.is("$gte", "$lte") && a.operand == nil }},
	{"sift", "null in an object equals missing", "rule 2", func(a ask) bool {
		return some(a.value(), func(v any) bool { o, ok := v.(object); return ok && o.has(nil) })
	}},
	{"mingo", "what objects in an array miss is not null", "rule 2", ask.missesInArray},
	// Rule 3, comparisons.
	{"mingo", "objects and arrays are compared in another order", "rule 3", ask.comparesStructures},
	{"sift", "objects and arrays are compared in another order", "rule 3", ask.comparesStructures},
	// Rule 4, equality.
	{"mingo", "objects are equal in any order", "rule 4", func(a ask) bool { return hasPair(a.value()) }},
	{"sift", "objects are equal in any order", "rule 4", func(a ask) bool { return hasPair(a.value()) }},
	{"mingo", "$in and $all compare arrays otherwise", "rule 4", func(a ask) bool { return a.is("$in", "$nin", "$all") && lists(a.operand, isStructured) }},
	{"sift", "$in and $all compare arrays otherwise", "rule 4", func(a ask) bool { return a.is("$in", "$nin", "$all") && lists(a.operand, isStructured) }},
	// Rule 6, $elemMatch and $all.
	{"sift", "$all of nothing matches everything", "rule 6", func(a ask) bool { return a.is("$all") && len(a.operand.(list)) == 0 }},
	{"mingo", "$all does not match what is no array", "rule 6", func(a ask) bool {
		return a.is("$all") && slices.ContainsFunc(a.reached(true), func(v any) bool { _, ok := v.(list); return !ok })
	}},
	{"mingo", "scalars are documents for $elemMatch", "rule 6", ask.hasScalarDocument},
	{"sift", "scalars are documents for $elemMatch", "rule 6", ask.hasScalarDocument},
	// Rule 7, numbers, types and bits.
	{"mingo", "$mod takes what is no number", "rule 7", func(a ask) bool { return a.is("$mod") && slices.ContainsFunc(a.reached(false), isNoNumber) }},
	{"sift", "$mod takes what is no number", "rule 7", func(a ask) bool { return a.is("$mod") && slices.ContainsFunc(a.reached(false), isNoNumber) }},
	{"mingo", "$mod does not truncate the remainder", "rule 7", func(a ask) bool { return a.is("$mod") && lists(a.operand, hasFraction) }},
	{"sift", "$mod does not truncate the remainder", "rule 7", func(a ask) bool { return a.is("$mod") && lists(a.operand, hasFraction) }},
	{"mingo", "types of numbers and of arrays", "rule 7", func(a ask) bool { return a.is("$type") }},
	{"sift", "types have other names", "rule 7", func(a ask) bool { return a.is("$type") }},
	{"mingo", "bits of what is no number are 0", "rule 7", func(a ask) bool { return isBits(a) && slices.ContainsFunc(a.reached(false), isNoNumber) }},
	{"mingo", "bits above the 31st are lost", "rule 7", func(a ask) bool { return isBits(a) && !slices.ContainsFunc(a.reached(false), isNoNumber) }},
	{"sift", "bits are not supported", "rule 7", isBits},
	{"mingo", "numbers are rounded, and their spelling is lost", "rule 7", ask.rounded},
	{"sift", "numbers are rounded, and their spelling is lost", "rule 7", ask.rounded},
}

func (a ask) is(operators ...string) bool { return slices.Contains(operators, a.operator) }

// value returns the operand when it is a value and holds no operators.
func (a ask) value() any {
	if a.is("$elemMatch", "$not") {
		return nil
	}
	return a.operand
}

func isStructured(v any) bool {
	switch v.(type) {
	case object, list:
		return true
	}
	return false
}

// some reports whether f holds for v or something in it.
func some(v any, f func(any) bool) bool {
	switch x := v.(type) {
	case object:
		for _, m := range x {
			if some(m.value, f) {
				return true
			}
		}
	case list:
		for _, e := range x {
			if some(e, f) {
				return true
			}
		}
	}
	return f(v)
}

func hasPair(v any) bool {
	return some(v, func(v any) bool { o, ok := v.(object); return ok && len(o) > 1 })
}

func roundedInJavaScript(v any) bool {
	return some(v, func(v any) bool {
		n, ok := v.(number)
		if !ok {
			return false
		}
		f, exact := n.rat().Float64()
		spelled := strings.ContainsAny(string(n), "eE.") && n.rat().IsInt() || n == "-0"
		return !exact || math.IsInf(f, 0) || spelled
	})
}

// hasNested reports whether v is an array with an array in it.
func hasNested(v any) bool {
	l, ok := v.(list)
	return ok && slices.ContainsFunc(l, func(e any) bool { _, ok := e.(list); return ok })
}

func lists(v any, f func(any) bool) bool {
	l, ok := v.(list)
	return ok && slices.ContainsFunc(l, f)
}

func isNothing(v any) bool { return v == nil }

func isNoNumber(v any) bool { _, ok := v.(number); return !ok }

func hasFraction(v any) bool { n, ok := v.(number); return ok && !n.rat().IsInt() }

// has reports whether a member has a value.
func (o object) has(value any) bool {
	return slices.ContainsFunc(o, func(m member) bool { return m.value == value })
}

func isBits(a ask) bool { return strings.HasPrefix(a.operator, "$bits") }

func (a ask) rounded() bool {
	return roundedInJavaScript(a.operand) || slices.ContainsFunc(a.reached(false), roundedInJavaScript)
}

func (a ask) comparesStructures() bool {
	return a.is("$gt", "$gte", "$lt", "$lte") && isStructured(a.operand)
}

// takesApart: what looks at elements looks at those of arrays in arrays, too.
func (a ask) takesApart() bool {
	return !a.is("$exists") && slices.ContainsFunc(a.reached(true), hasNested)
}

// arrays returns the arrays that the path passes through before its end, with
// the segment that follows.
func (a ask) arrays() (all []passed) {
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		if len(path) == 0 {
			return
		}
		switch x := v.(type) {
		case object:
			walk(x.get(path[0]), path[1:])
		case list:
			all = append(all, passed{x, path[0]})
			for i, e := range x {
				if _, ok := e.(object); ok {
					walk(e, path)
				}
				if fmt.Sprint(i) == path[0] {
					walk(e, path[1:])
				}
			}
		}
	}
	walk(a.document, a.path)
	return all
}

// passed is an array on the way of a path.
type passed struct {
	array list
	next  string
}

func (a ask) positionInArray() bool {
	return slices.ContainsFunc(a.arrays(), func(p passed) bool { return p.next == "0" || p.next == "1" })
}

// gathers: a whole array is asked for, and the path leads to several values.
func (a ask) gathers() bool {
	_, isList := a.operand.(list)
	return (isList || a.is("$elemMatch", "$size", "$exists")) && len(a.arrays()) > 0
}

// missesInArray: null is asked for, and missing in an object in an array.
func (a ask) missesInArray() bool {
	return (a.operand == nil || lists(a.operand, isNothing)) && len(a.arrays()) > 0 && slices.Contains(a.reached(false), any(missing{}))
}

// hasScalarDocument: $elemMatch has paths, and a scalar to try them on.
func (a ask) hasScalarDocument() bool {
	if !a.is("$elemMatch") || ofValues(a.operand.(object)) {
		return false
	}
	return slices.ContainsFunc(a.reached(true), func(v any) bool { return lists(v, func(e any) bool { return !isStructured(e) }) })
}

func (a ask) mixedArray() bool {
	return slices.ContainsFunc(a.arrays(), func(p passed) bool {
		return len(p.array) == 0 || slices.ContainsFunc(p.array, func(e any) bool { _, ok := e.(object); return !ok })
	})
}

// positionInText: a text on the way has more to come.
func (a ask) positionInText() bool {
	for n := range a.path {
		for _, v := range (oracle{}).reach(a.document, a.path[:n], false) {
			if _, ok := v.(string); ok && (a.path[n] == "0" || a.path[n] == "1") {
				return true
			}
		}
	}
	return false
}
