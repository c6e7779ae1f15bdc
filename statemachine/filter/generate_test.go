package filter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
	"troupe/statemachine/data"
)

// question is a filter and an instance that may or may not match it.
type question struct {
	Filter, Public, States, History string
}

func (q question) text() string {
	return fmt.Sprintf(`{"_id":"i1","workflowId":"w","states":%s,"svcPublic":%s,"svcPrivate":{"a":1},"svcHistory":%s}`, q.States, q.Public, q.History)
}

func (q question) decoded() any { return decode(q.text()) }

func (q question) document() Document {
	return Document{
		ID: "i1", WorkflowID: "w",
		States: data.Value(q.States), Public: data.Value(q.Public), Private: data.Value(`{"a":1}`),
		History: func() data.Value { return data.Value(q.History) },
	}
}

func (q question) parse(t interface{ Fatalf(string, ...any) }) *Filter {
	f, err := Parse([]byte(q.Filter), Options{Private: true})
	if err != nil {
		t.Fatalf("Parse(%s): %v", q.Filter, err)
	}
	return f
}

// questions draws an instance and a filter for it. Half of the operands are something that the instance has.
func questions() *rapid.Generator[question] {
	return rapid.Custom(func(t *rapid.T) question {
		q := question{
			Public:  members(3).Draw(t, "public"),
			States:  elements(3).Draw(t, "states"),
			History: elements(2).Draw(t, "history"),
		}
		if rapid.Bool().Draw(t, "real states") {
			q.States = realStates(t)
		}
		g := generator{t: t, doc: q.decoded()}
		q.Filter = g.filter(2, maxPositions, true)
		return q
	})
}

func realStates(t *rapid.T) string {
	var states []string
	for range rapid.IntRange(1, 3).Draw(t, "states") {
		states = append(states, state(t))
	}
	return "[" + strings.Join(states, ",") + "]"
}

func state(t *rapid.T) string {
	return fmt.Sprintf(`{"stateMachineId":%q,"nodeId":%q}`,
		rapid.SampledFrom([]string{"m", "n"}).Draw(t, "machine"), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node"))
}

type generator struct {
	t   *rapid.T
	doc any
}

func pick[T any](t *rapid.T, from ...T) T { return rapid.SampledFrom(from).Draw(t, "pick") }

// filter draws an object of conditions. depth is how far they may be nested,
// positions how many segments of a path may be positions.
func (g *generator) filter(depth, positions int, top bool) string {
	var parts []string
	used := map[string]bool{}
	add := func(key, value string) {
		if !used[key] {
			parts = append(parts, strconv.Quote(key)+":"+value)
		}
		used[key] = true
	}
	for range pick(g.t, 1, 1, 1, 2) {
		if depth > 0 && rapid.IntRange(0, 4).Draw(g.t, "combined") == 0 {
			var list []string
			for range pick(g.t, 1, 2) {
				list = append(list, g.filter(depth-1, positions, top))
			}
			add(pick(g.t, "$and", "$or", "$nor"), "["+strings.Join(list, ",")+"]")
			continue
		}
		if top && rapid.IntRange(0, 5).Draw(g.t, "on states") == 0 {
			add(g.onStates())
			continue
		}
		path := g.path(positions, top)
		there := []any{nil}
		if top {
			there = oracle{}.reach(g.doc, strings.Split(path, "."), false)
		}
		add(path, g.condition(there, depth, positions-positionsIn(segments(strings.Split(path, ".")))))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// path draws a path, half of the time one that leads somewhere.
func (g *generator) path(positions int, top bool) string {
	var keys []string
	var at any
	if top {
		keys = append(keys, pick(g.t, "svcPublic", "svcPublic", "svcPublic", "svcPublic", "svcPublic", "svcPublic", "states", "svcHistory", "_id", "workflowId", "svcPrivate"))
		at = g.doc.(object).get(keys[0])
	}
	known := top && rapid.Bool().Draw(g.t, "known path")
	for n := pick(g.t, 0, 1, 1, 1, 1, 2, 2, 3, 4); n > 0 || len(keys) == 0; n-- {
		key := pick(g.t, "a", "a", "b", "0", "1")
		if known {
			if l, ok := at.(list); ok && len(l) > 0 && rapid.Bool().Draw(g.t, "element") {
				at = rapid.SampledFrom(l).Draw(g.t, "element")
			}
			switch x := at.(type) {
			case object:
				if len(x) > 0 {
					m := rapid.SampledFrom(x).Draw(g.t, "member")
					key, at = m.key.(string), m.value
				}
			case list:
				if len(x) > 1 && (key == "0" || key == "1") {
					at = x[key[0]-'0']
				}
			}
		}
		if _, ok := data.ParsePosition(key); ok {
			if positions--; positions < 0 {
				key = "a"
			}
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, ".")
}

func (g *generator) onStates() (path, condition string) {
	node := func() string {
		return pick(g.t, `"a"`, `"b"`, `{"$in":["a","c"]}`, `{"$in":["a",null]}`, `{"$ne":"a"}`, `{"$in":["b"]}`)
	}
	machine := func() string { return pick(g.t, `"m"`, `{"$in":["m","n"]}`, `{"$in":["n"]}`) }
	switch rapid.IntRange(0, 5).Draw(g.t, "form") {
	case 0:
		return "states.nodeId", node()
	case 1:
		return "states", state(g.t)
	case 2:
		return "states", `{"$in":[` + state(g.t) + `,` + state(g.t) + `]}`
	case 3:
		return "states", `{"$all":[` + state(g.t) + `,{"nodeId":"a"}]}`
	case 4:
		return "states", `{"$all":[{"$elemMatch":{"nodeId":` + node() + `}},{"$elemMatch":{"$and":[{"nodeId":` + node() + `},{"stateMachineId":` + machine() + `}]}}]}`
	}
	return "states", `{"$elemMatch":{"stateMachineId":` + machine() + `,"nodeId":` + node() + `}}`
}

func (g *generator) condition(there []any, depth, positions int) string {
	if rapid.IntRange(0, 3).Draw(g.t, "plain") == 0 {
		return g.operand(there)
	}
	return g.operators(there, depth, positions)
}

// operand draws a value, half of the time one of those that are there.
func (g *generator) operand(there []any) string {
	if len(there) > 0 && rapid.Bool().Draw(g.t, "there") {
		text := encode(rapid.SampledFrom(there).Draw(g.t, "value"), rapid.IntRange(0, 3).Draw(g.t, "backward") == 0)
		if rapid.IntRange(0, 3).Draw(g.t, "beside") == 0 { // a number that differs in its last digit
			text = strings.NewReplacer("992", "993", "71", "72").Replace(text)
		}
		return text
	}
	return value(2).Draw(g.t, "operand")
}

func (g *generator) list(there []any, least int) string {
	var parts []string
	for range rapid.IntRange(least, 3).Draw(g.t, "values") {
		parts = append(parts, g.operand(there))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// operatorNames has some twice, so that they are drawn more often; flatNames are those that hold no others.
var (
	flatNames = []string{
		"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$gt", "$lte", "$in", "$nin", "$in", "$exists", "$type", "$regex", "$regex",
		"$size", "$mod", "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear",
	}
	operatorNames = append([]string{"$not", "$elemMatch", "$elemMatch", "$elemMatch", "$all"}, flatNames...)
)

func (g *generator) operators(there []any, depth, positions int) string {
	names := operatorNames
	if depth == 0 {
		names = flatNames
	}
	var parts []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, pick(g.t, 1, 1, 2), rapid.ID[string]).Draw(g.t, "operators") {
		parts = append(parts, strconv.Quote(name)+":"+g.operatorOperand(name, there, depth, positions))
		if name == "$regex" && rapid.Bool().Draw(g.t, "options") {
			parts = append(parts, `"$options":`+pick(g.t, `"i"`, `"m"`, `"s"`, `"im"`, `""`))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (g *generator) operatorOperand(name string, there []any, depth, positions int) string {
	switch name {
	case "$in", "$nin":
		return g.list(there, 0)
	case "$not":
		return g.operators(there, depth-1, positions)
	case "$exists":
		return pick(g.t, "true", "false", "1", "0", "null")
	case "$type":
		return pick(g.t, `"int"`, `"long"`, `"double"`, `"number"`, `"string"`, `"object"`, `"array"`, `"bool"`, `"null"`, `"date"`, "2", "10.0", "16", `["int",4]`, `["null","bool"]`)
	case "$regex":
		return pick(g.t, `"a"`, `"^a"`, `"^a\\."`, `"^xx"`, `"^x{3}"`, `"A$"`, `"^A"`, `"^$"`, `"1"`, `"^é"`, `"^\\x00"`, `"^a|b"`, `"^(?:a)b*"`, `"."`, strconv.Quote("^"+longText[:300]))
	case "$elemMatch":
		return g.elementMatch(there, depth, positions)
	case "$all":
		if rapid.IntRange(0, 2).Draw(g.t, "of elements") == 0 {
			return `[{"$elemMatch":` + g.elementMatch(there, depth, positions) + `}]`
		}
		return g.list(there, 0)
	case "$size":
		return pick(g.t, "0", "1", "2", "1.0", "3")
	case "$mod":
		return pick(g.t, "[2,1]", "[2,0]", "[3,-1]", "[2.9,0.5]", "[-2,1]", "[1,0]")
	case "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear":
		return pick(g.t, "0", "1", "2", "3", "[]", "[0]", "[1,70]", "[63]", "9007199254740993")
	}
	return g.operand(there)
}

func (g *generator) elementMatch(there []any, depth, positions int) string {
	var inside []any
	for _, v := range there {
		if l, ok := v.(list); ok {
			inside = append(inside, l...)
		}
	}
	if rapid.Bool().Draw(g.t, "document") {
		return g.filter(depth-1, positions, false)
	}
	return g.operators(inside, depth-1, positions)
}

// encode is the inverse of decode; missing becomes null. With backward set the members of objects change their order.
func encode(v any, backward bool) string {
	var parts []string
	switch x := v.(type) {
	case object:
		for _, m := range x {
			parts = append(parts, encode(m.key, backward)+":"+encode(m.value, backward))
		}
		if backward {
			slices.Reverse(parts)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case list:
		for _, e := range x {
			parts = append(parts, encode(e, backward))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case number:
		return string(x)
	case missing:
		return "null"
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// longText and longDigits are longer than a key of an index.
var (
	longText   = strings.Repeat("x", 400)
	longDigits = strings.Repeat("7", 700)
)

func value(depth int) *rapid.Generator[string] {
	scalar := rapid.SampledFrom([]string{
		"null", "null", "0", "1", "1.0", "10e-1", "2", "3", "-1", "-0", "2.5", "9007199254740992", "9007199254740993", "1e400", "-1e400", "3000000000",
		`"1"`, `"a"`, `"\u0061"`, `"ab"`, `"A"`, `"b\na"`, `"i1"`, `""`, `"é"`, `"\u0000"`, `"\udbff\udfff"`, "true", "false",
		`"` + longText + `a"`, `"` + longText + `b"`, longDigits + "1", longDigits + "2", "-" + longDigits + "1",
	})
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar, members(depth), elements(depth))
}

func elements(depth int) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []string) string { return "[" + strings.Join(l, ",") + "]" })
}

func members(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var parts []string
		keys := rapid.Permutation([]string{"a", "b", "0", "1"}).Draw(t, "keys")
		for _, key := range keys[:rapid.IntRange(0, 3).Draw(t, "members")] {
			parts = append(parts, strconv.Quote(key)+":"+value(depth-1).Draw(t, "value"))
		}
		return "{" + strings.Join(parts, ",") + "}"
	})
}
