package filter

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The oracle is the slow and obvious matcher: it decodes everything, collects all values that a path leads to, and then looks
// whether one is as wanted. It follows FILTER.md sentence by sentence, and trusts that the filter is well-formed.

// member and list make decoded objects and arrays different types; objects keep their order. A number keeps its spelling.
type (
	member  struct{ key, value any }
	object  []member
	list    []any
	number  string
	missing struct{}
)

func decode(src string) any {
	d := json.NewDecoder(strings.NewReader(src))
	d.UseNumber()
	return decodeNext(d)
}

func decodeNext(d *json.Decoder) any {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	switch x := token.(type) {
	case json.Delim:
		if x == '{' {
			o := object{}
			for d.More() {
				key := decodeNext(d)
				o = append(o, member{key, decodeNext(d)})
			}
			_, _ = d.Token()
			return o
		}
		l := list{}
		for d.More() {
			l = append(l, decodeNext(d))
		}
		_, _ = d.Token()
		return l
	case json.Number:
		return number(x.String())
	}
	return token
}

func (n number) rat() *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		panic("no number: " + n)
	}
	return r
}

func (n number) truncated() (int64, bool) {
	r := n.rat()
	whole := new(big.Int).Quo(r.Num(), r.Denom())
	return whole.Int64(), whole.IsInt64()
}

func (o object) get(key string) any {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

func operators(v any) (object, bool) {
	o, ok := v.(object)
	return o, ok && len(o) > 0 && strings.HasPrefix(o[0].key.(string), "$")
}

// oracle says what a matcher does; the controls set one of the bugs.
type oracle struct {
	// expandPositions takes an array apart although it was named by position.
	expandPositions bool
	// missingInArrays has scalars in arrays give missing.
	missingInArrays bool
	// unordered ignores the order of members.
	unordered bool
	// floats compares numbers as float64.
	floats bool
	// crossKinds has comparisons go from one kind to the next.
	crossKinds bool
	// negateEach has $ne and $nin look for an element that is different.
	negateEach bool
	// missingIsNotNull tells missing and null apart.
	missingIsNotNull bool
	// scalarDocuments has $elemMatch try scalars as documents.
	scalarDocuments bool
	// elementsHaveSize has $size look at the elements as well.
	elementsHaveSize bool
}

// reach returns all values that path leads to from v (statemachine/filter/FILTER.md, "Paths"). An array at the end is opened
// unless whole is set.
func (o oracle) reach(v any, path []string, whole bool) []any {
	if l, ok := v.(list); ok {
		return o.reachInList(l, path, whole)
	}
	if len(path) == 0 {
		return []any{v}
	}
	if obj, ok := v.(object); ok {
		for _, m := range obj {
			if m.key == path[0] {
				return o.reach(m.value, path[1:], whole)
			}
		}
	}
	return []any{missing{}}
}

func (o oracle) reachInList(l list, path []string, whole bool) (all []any) {
	if len(path) == 0 {
		if !whole {
			all = append(all, l...)
		}
		return append(all, l)
	}
	for i, e := range l {
		_, isObject := e.(object)
		_, isList := e.(list)
		if isObject {
			all = append(all, o.reach(e, path, whole)...)
		}
		if strconv.Itoa(i) == path[0] {
			switch {
			case len(path) == 1 && !o.expandPositions:
				all = append(all, e)
			case len(path) == 1 || isObject || isList:
				all = append(all, o.reach(e, path[1:], whole)...)
			}
		}
		if o.missingInArrays && !isObject && !isList {
			all = append(all, missing{})
		}
	}
	return all
}

func (o oracle) match(filter, doc any) bool {
	for _, m := range filter.(object) {
		if !o.matchMember(m.key.(string), m.value, doc) {
			return false
		}
	}
	return true
}

func (o oracle) matchMember(key string, value, doc any) bool {
	one := func(f any) bool { return o.match(f, doc) }
	switch key {
	case "$comment":
		return true
	case "$and":
		return !slices.ContainsFunc(value.(list), func(f any) bool { return !one(f) })
	case "$or":
		return slices.ContainsFunc(value.(list), one)
	case "$nor":
		return !slices.ContainsFunc(value.(list), one)
	}
	values := func(whole bool) []any { return o.reach(doc, strings.Split(key, "."), whole) }
	if ops, ok := operators(value); ok {
		return o.all(ops, values)
	}
	return slices.ContainsFunc(values(false), func(v any) bool { return o.equal(v, value) })
}

func (o oracle) all(ops object, values func(whole bool) []any) bool {
	for _, m := range ops {
		if !o.one(m.key.(string), m.value, ops, values) {
			return false
		}
	}
	return true
}

func (o oracle) one(operator string, want any, ops object, values func(whole bool) []any) bool {
	some := func(whole bool, f func(v any) bool) bool { return slices.ContainsFunc(values(whole), f) }
	equal := func(v any) bool { return o.equal(v, want) }
	in := func(v any) bool {
		return slices.ContainsFunc(want.(list), func(w any) bool { return o.equal(v, w) })
	}
	switch operator {
	case "$eq":
		return some(false, equal)
	case "$ne": // statemachine/filter/FILTER.md, "Negation"
		if o.negateEach {
			return some(false, func(v any) bool { return !equal(v) })
		}
		return !some(false, equal)
	case "$gt", "$gte", "$lt", "$lte":
		return some(false, func(v any) bool { return o.compares(operator, v, want) })
	case "$in":
		return some(false, in)
	case "$nin":
		if o.negateEach {
			return some(false, func(v any) bool { return !in(v) })
		}
		return !some(false, in)
	case "$not":
		return !o.all(want.(object), values)
	case "$exists":
		exists := some(true, func(v any) bool { return v != missing{} })
		return exists == (want != false && want != nil && want != number("0"))
	case "$all":
		return o.hasAll(want.(list), values)
	case "$elemMatch":
		return some(true, func(v any) bool { return o.elementMatches(v, want.(object)) })
	case "$size":
		n, _ := want.(number).truncated()
		return some(!o.elementsHaveSize, func(v any) bool { l, ok := v.(list); return ok && int64(len(l)) == n })
	case "$options":
		return true
	}
	return some(false, func(v any) bool { return holdsAlone(operator, v, want, ops) })
}

// hasAll is $all: one element of the list after the other.
func (o oracle) hasAll(wants list, values func(bool) []any) bool {
	for _, want := range wants {
		if ops, ok := operators(want); ok {
			if !o.all(ops, values) {
				return false
			}
		} else if !o.one("$eq", want, nil, values) {
			return false
		}
	}
	return len(wants) > 0
}

// elementMatches is statemachine/filter/FILTER.md, "Elements of arrays".
func (o oracle) elementMatches(v any, want object) bool {
	l, _ := v.(list)
	if ofValues(want) {
		return slices.ContainsFunc(l, func(e any) bool {
			return o.all(want, func(bool) []any { return []any{e} })
		})
	}
	return slices.ContainsFunc(l, func(e any) bool {
		if inner, ok := e.(list); ok {
			keyed := object{}
			for i, x := range inner {
				keyed = append(keyed, member{strconv.Itoa(i), x})
			}
			e = keyed
		}
		_, ok := e.(object)
		return (ok || o.scalarDocuments) && o.match(want, e)
	})
}

func ofValues(want object) bool {
	ops, ok := operators(want)
	return ok && !slices.Contains([]string{"$and", "$or", "$nor"}, ops[0].key.(string))
}

// holdsAlone is for the operators that look at one value and no others.
func holdsAlone(operator string, v, want any, ops object) bool {
	switch operator {
	case "$type":
		names, ok := want.(list)
		if !ok {
			names = list{want}
		}
		return slices.ContainsFunc(names, func(name any) bool { return hasType(v, name) })
	case "$regex":
		flags, _ := ops.get("$options").(string)
		if flags != "" {
			flags = "(?" + flags + ")"
		}
		s, ok := v.(string)
		return ok && regexp.MustCompile(flags+want.(string)).MatchString(s)
	case "$mod":
		n, ok := v.(number)
		if !ok {
			return false
		}
		whole, ok := n.truncated()
		divisor, _ := want.(list)[0].(number).truncated()
		remainder, _ := want.(list)[1].(number).truncated()
		return ok && whole%divisor == remainder
	case "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear":
		n, ok := v.(number)
		return ok && n.rat().IsInt() && n.rat().Num().IsInt64() && hasBits(operator, n.rat().Num().Int64(), want)
	}
	panic("the oracle does not know " + operator)
}

// hasBits looks at one place after the other.
func hasBits(operator string, n int64, want any) bool {
	var places []int64
	if l, ok := want.(list); ok {
		for _, e := range l {
			place, _ := e.(number).truncated()
			places = append(places, place)
		}
	} else {
		mask, _ := want.(number).truncated()
		for place := range int64(63) {
			if mask>>place&1 == 1 {
				places = append(places, place)
			}
		}
	}
	set := 0
	for _, place := range places {
		set += int(n >> min(place, 63) & 1)
	}
	switch operator {
	case "$bitsAllSet":
		return set == len(places)
	case "$bitsAllClear":
		return set == 0
	case "$bitsAnySet":
		return set > 0
	}
	return set < len(places)
}

// hasType is statemachine/filter/FILTER.md, "Numbers, types and bits".
func hasType(v, name any) bool {
	if code, ok := name.(number); ok {
		n, _ := code.truncated()
		name = map[int64]string{1: "double", 2: "string", 3: "object", 4: "array", 8: "bool", 10: "null", 16: "int", 18: "long"}[n]
	}
	switch x := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "bool"
	case string:
		return name == "string"
	case object:
		return name == "object"
	case list:
		return name == "array"
	case number:
		if name == "number" {
			return true
		}
		if _, err := strconv.ParseInt(string(x), 10, 32); err == nil {
			return name == "int"
		}
		if _, err := strconv.ParseInt(string(x), 10, 64); err == nil {
			return name == "long"
		}
		return name == "double"
	}
	return false
}

// equal is statemachine/filter/FILTER.md, "Null and missing" and "Equality".
func (o oracle) equal(v, want any) bool {
	if want == nil {
		return v == nil || v == missing{} && !o.missingIsNotNull
	}
	return rank(v) == rank(want) && o.compare(v, want) == 0
}

// compares is statemachine/filter/FILTER.md, "Null and missing" and "Comparisons".
func (o oracle) compares(operator string, v, want any) bool {
	if want == nil {
		return (operator == "$gte" || operator == "$lte") && o.equal(v, nil)
	}
	if rank(v) != rank(want) && !o.crossKinds {
		return false
	}
	order := o.compare(v, want)
	switch operator {
	case "$gt":
		return order > 0
	case "$gte":
		return order >= 0
	case "$lt":
		return order < 0
	}
	return order <= 0
}

func rank(v any) int {
	switch v.(type) {
	case missing:
		return 0
	case nil:
		return 1
	case number:
		return 2
	case string:
		return 3
	case object:
		return 4
	case list:
		return 5
	}
	return 6
}

func (o oracle) compare(a, b any) int {
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	switch x := a.(type) {
	case number:
		if o.floats {
			f, _ := x.rat().Float64()
			g, _ := b.(number).rat().Float64()
			return big.NewFloat(f).Cmp(big.NewFloat(g))
		}
		return x.rat().Cmp(b.(number).rat())
	case string:
		return strings.Compare(x, b.(string))
	case bool:
		return map[bool]int{true: 1}[x] - map[bool]int{true: 1}[b.(bool)]
	case list:
		return slices.CompareFunc(x, b.(list), o.compare)
	case object:
		y := b.(object)
		if o.unordered {
			x, y = sorted(x), sorted(y)
		}
		return slices.CompareFunc(x, y, func(m, n member) int {
			if d := rank(m.value) - rank(n.value); d != 0 {
				return d
			}
			if d := strings.Compare(m.key.(string), n.key.(string)); d != 0 {
				return d
			}
			return o.compare(m.value, n.value)
		})
	}
	return 0
}

func sorted(o object) object {
	return slices.SortedFunc(slices.Values(o), func(a, b member) int { return strings.Compare(a.key.(string), b.key.(string)) })
}
