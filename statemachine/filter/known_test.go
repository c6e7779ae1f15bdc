//go:build differential

package filter

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/internal/markdown"
)

// difference is a class of questions that a partner answers otherwise.
type difference struct {
	// partner is mingo, sift, or both.
	partner, name string
	// rule is the heading of statemachine/filter/FILTER.md that decides.
	rule    string
	applies func(ask) bool
}

// knownDifferences are as narrow as the partners' faults allow
// (statemachine/filter/FILTER.md, "Differences from mingo and sift").
var knownDifferences = []difference{
	// statemachine/filter/FILTER.md, "Paths".
	{"mingo", "a position is not tried on the elements of an array", "Paths", ask.positionInArray},
	{"sift", "a position is not tried on the elements of an array", "Paths", ask.positionInArray},
	{"mingo", "elements that are not objects give missing, or are entered", "Paths", ask.mixedArray},
	{"sift", "elements that are not objects give missing, or are entered", "Paths", ask.mixedArray},
	{"mingo", "the values of several elements are gathered into one array", "Paths", ask.gathers},
	{"sift", "a position in a text is a character", "Paths", ask.positionInText},
	{"mingo", "arrays in arrays are opened", "Paths", func(a ask) bool { return a.takesApart() && !a.is("$size") }},
	{"sift", "arrays in arrays are opened", "Paths", ask.takesApart},
	// statemachine/filter/FILTER.md, "Null and missing".
	{"mingo", "$gte and $lte null do not match missing", "Null and missing", func(a ask) bool { return a.is("$gte", "$lte") && a.operand == nil }},
	{"sift", "$gte and $lte null match empty arrays", "Null and missing", func(a ask) bool { return a.is("$gte", "$lte") && a.operand == nil }},
	{"sift", "null in an object equals missing", "Null and missing", func(a ask) bool {
		return some(a.value(), func(v any) bool { o, ok := v.(object); return ok && o.has(nil) })
	}},
	{"mingo", "a member that an object of an array lacks is not null", "Null and missing", ask.missesInArray},
	// statemachine/filter/FILTER.md, "Comparisons".
	{"mingo", "objects and arrays are compared in another order", "Comparisons", ask.comparesStructures},
	{"sift", "objects and arrays are compared in another order", "Comparisons", ask.comparesStructures},
	// statemachine/filter/FILTER.md, "Equality".
	{"mingo", "objects are equal in any order", "Equality", func(a ask) bool { return hasPair(a.value()) }},
	{"sift", "objects are equal in any order", "Equality", func(a ask) bool { return hasPair(a.value()) }},
	{"mingo", "$in and $all compare arrays otherwise", "Equality", func(a ask) bool { return a.is("$in", "$nin", "$all") && lists(a.operand, isStructured) }},
	{"sift", "$in and $all compare arrays otherwise", "Equality", func(a ask) bool { return a.is("$in", "$nin", "$all") && lists(a.operand, isStructured) }},
	// statemachine/filter/FILTER.md, "Elements of arrays".
	{"sift", "$all of nothing matches everything", "Elements of arrays", func(a ask) bool { return a.is("$all") && len(a.operand.(list)) == 0 }},
	{"mingo", "$all matches arrays only", "Elements of arrays", func(a ask) bool {
		return a.is("$all") && slices.ContainsFunc(a.reached(true), func(v any) bool { _, ok := v.(list); return !ok })
	}},
	{"mingo", "scalars are documents for $elemMatch", "Elements of arrays", ask.hasScalarDocument},
	{"sift", "scalars are documents for $elemMatch", "Elements of arrays", ask.hasScalarDocument},
	// statemachine/filter/FILTER.md, "Numbers, types and bits".
	{"mingo", "$mod reads values that are not numbers", "Numbers, types and bits", func(a ask) bool { return a.is("$mod") && slices.ContainsFunc(a.reached(false), isNoNumber) }},
	{"sift", "$mod reads values that are not numbers", "Numbers, types and bits", func(a ask) bool { return a.is("$mod") && slices.ContainsFunc(a.reached(false), isNoNumber) }},
	{"mingo", "$mod does not truncate the remainder", "Numbers, types and bits", func(a ask) bool { return a.is("$mod") && lists(a.operand, hasFraction) }},
	{"sift", "$mod does not truncate the remainder", "Numbers, types and bits", func(a ask) bool { return a.is("$mod") && lists(a.operand, hasFraction) }},
	{"mingo", "$type sorts numbers and arrays differently", "Numbers, types and bits", func(a ask) bool { return a.is("$type") }},
	{"sift", "$type knows other names", "Numbers, types and bits", func(a ask) bool { return a.is("$type") }},
	{"mingo", "values that are not numbers have the bits of 0", "Numbers, types and bits", func(a ask) bool { return isBits(a) && slices.ContainsFunc(a.reached(false), isNoNumber) }},
	{"mingo", "bits above the 31st are lost", "Numbers, types and bits", func(a ask) bool { return isBits(a) && !slices.ContainsFunc(a.reached(false), isNoNumber) }},
	{"sift", "bits are not supported", "Numbers, types and bits", isBits},
	{"mingo", "numbers are rounded, and their spelling is lost", "Numbers, types and bits", ask.rounded},
	{"sift", "numbers are rounded, and their spelling is lost", "Numbers, types and bits", ask.rounded},
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

// arrays returns the arrays that the path passes through before its end, with the segment that follows.
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

// TestDifferentialKnownAreDocumented holds FILTER.md to knownDifferences.
func TestDifferentialKnownAreDocumented(t *testing.T) {
	var documented, known []string
	for _, row := range markdown.Tables(markdown.Section(readDocument(t), "Differences from mingo and sift"))[0].Rows {
		documented = append(documented, strings.Join(row, ": "))
		assert.NotEmpty(t, markdown.Section(readDocument(t), row[2]), "FILTER.md has no heading %q", row[2])
	}
	for _, d := range knownDifferences {
		known = append(known, strings.Join([]string{d.partner, d.name, d.rule}, ": "))
	}
	assert.ElementsMatch(t, documented, known, "differences")
}
