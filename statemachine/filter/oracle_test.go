package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

// The oracle is the slow and obvious matcher: it decodes everything, collects
// all values that a path leads to, and then looks whether one is equal.

// member and list make decoded objects and arrays different types; objects keep
// their order.
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
		r, _ := new(big.Rat).SetString(x.String())
		return number(r.RatString())
	}
	return token
}

// oracle says what a matcher does; the controls set one of the bugs.
type oracle struct {
	// expandPositions takes an array apart although it was named by position.
	expandPositions bool
	// missingInArrays has scalars in arrays give missing.
	missingInArrays bool
	// unordered ignores the order of members.
	unordered bool
}

// reach returns all values that path leads to from v.
func (o oracle) reach(v any, path []string) []any {
	if l, ok := v.(list); ok {
		return o.reachInList(l, path)
	}
	if len(path) == 0 {
		return []any{v}
	}
	if obj, ok := v.(object); ok {
		for _, m := range obj {
			if m.key == path[0] {
				return o.reach(m.value, path[1:])
			}
		}
	}
	return []any{missing{}}
}

func (o oracle) reachInList(l list, path []string) (all []any) {
	if len(path) == 0 {
		return append(append(all, l...), l)
	}
	for i, e := range l {
		_, isObject := e.(object)
		_, isList := e.(list)
		if isObject {
			all = append(all, o.reach(e, path)...)
		}
		if strconv.Itoa(i) == path[0] {
			switch {
			case len(path) == 1 && !o.expandPositions:
				all = append(all, e)
			case len(path) == 1 || isObject || isList:
				all = append(all, o.reach(e, path[1:])...)
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
		found := false
		for _, v := range o.reach(doc, strings.Split(m.key.(string), ".")) {
			found = found || o.equal(v, m.value)
		}
		if !found {
			return false
		}
	}
	return true
}

func (o oracle) equal(v, want any) bool {
	if want == nil {
		return v == nil || v == missing{}
	}
	if a, ok := v.(object); ok && o.unordered {
		b, ok := want.(object)
		return ok && reflect.DeepEqual(asMap(a), asMap(b))
	}
	return reflect.DeepEqual(v, want)
}

func asMap(o object) map[any]any {
	m := map[any]any{}
	for _, x := range o {
		m[x.key] = x.value
	}
	return m
}

// question is a filter and an instance that may or may not match it.
type question struct {
	Filter, Public, States, History string
}

// decoded is the instance as the oracle sees it.
func (q question) decoded() any {
	return decode(fmt.Sprintf(`{"_id":"i1","workflowId":"w","states":%s,"svcPublic":%s,"svcPrivate":{"a":1},"svcHistory":%s}`, q.States, q.Public, q.History))
}

func (q question) match(t interface{ Fatalf(string, ...any) }) bool {
	f, err := Parse([]byte(q.Filter), Options{Private: true})
	if err != nil {
		t.Fatalf("Parse(%s): %v", q.Filter, err)
	}
	return f.Match(Document{
		ID: "i1", WorkflowID: "w",
		States: data.Value(q.States), Public: data.Value(q.Public), Private: data.Value(`{"a":1}`),
		History: func() data.Value { return data.Value(q.History) },
	})
}

// questions draws an instance and a filter for it. Half of the conditions ask
// for something that the instance has.
func questions() *rapid.Generator[question] {
	return rapid.Custom(func(t *rapid.T) question {
		q := question{
			Public:  members(3).Draw(t, "public"),
			States:  elements(3).Draw(t, "states"),
			History: elements(2).Draw(t, "history"),
		}
		var conditions []string
		used := map[string]bool{}
		for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "conditions") {
			path := rapid.SampledFrom([]string{"svcPublic", "svcPublic", "svcPublic", "states", "svcHistory", "_id", "workflowId", "svcPrivate"}).Draw(t, "root")
			for _, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "0", "1"}), 0, 4).Draw(t, "path") {
				path += "." + key
			}
			want := value(1).Draw(t, "want")
			there := oracle{}.reach(q.decoded(), strings.Split(path, "."))
			if len(there) > 0 && rapid.Bool().Draw(t, "there") {
				want = encode(rapid.SampledFrom(there).Draw(t, "value"), rapid.Bool().Draw(t, "backward"))
			}
			if !used[path] {
				conditions = append(conditions, strconv.Quote(path)+":"+want)
			}
			used[path] = true
		}
		q.Filter = "{" + strings.Join(conditions, ",") + "}"
		return q
	})
}

// encode is the inverse of decode; missing becomes null. With backward set the
// members of objects change their order.
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
		return string(x) // the numbers drawn are integral
	case missing:
		return "null"
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func value(depth int) *rapid.Generator[string] {
	scalar := rapid.SampledFrom([]string{"null", "null", "1", "1.0", "10e-1", "2", `"1"`, `"a"`, `"\u0061"`, `"i1"`, "true", "false"})
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

func TestMatchAgreesWithTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := questions().Draw(t, "question")
		if got, want := q.match(t), (oracle{}).match(decode(q.Filter), q.decoded()); got != want {
			t.Fatalf("%s matches %+v: %v, want %v", q.Filter, q, got, want)
		}
	})
}

// TestTheOracleTellsBugs is the control: an oracle with a bug disagrees with
// the matcher somewhere, so a matcher with that bug would be found.
func TestTheOracleTellsBugs(t *testing.T) {
	bugs := map[string]oracle{
		"arrays at a position are expanded": {expandPositions: true},
		"scalars in arrays give missing":    {missingInArrays: true},
		"the order of members is ignored":   {unordered: true},
	}
	const tries = 5_000
	found, matches := map[string]int{}, 0
	for seed := range tries {
		q := questions().Example(seed)
		got := q.match(t)
		if got {
			matches++
		}
		filter, doc := decode(q.Filter), q.decoded()
		if want := (oracle{}).match(filter, doc); got != want {
			t.Fatalf("%s matches %+v: %v, want %v", q.Filter, q, got, want)
		}
		for name, o := range bugs {
			if o.match(filter, doc) != got {
				found[name]++
			}
		}
	}
	for name := range bugs {
		if found[name] == 0 {
			t.Errorf("bug %q is not found in %d tries, want it found", name, tries)
		}
	}
	if matches < tries/20 || matches > tries*19/20 {
		t.Errorf("%d of %d questions match, want some of both", matches, tries)
	}
}

// FuzzParse gives Parse any text, and what it takes to Match.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"states.nodeId":"review"}`, `{"svcPublic.a.0":{"$oid":"x"},"_id":null}`, `{"$and":[{}]}`, `{"a":{"$gt":1}}`,
		`{"svcHistory":[{"x":1e400}]}`, `{"svcPublic..a":1}`, "", `{"svcPublic.a":{"b":{"\u0024oid":"\ud83d\ude00"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		filter, err := Parse(src, Options{})
		if err != nil {
			known := []error{ErrSyntax, ErrUnsupported, ErrRoot, ErrTooLarge}
			for _, k := range known {
				if errors.Is(err, k) {
					return
				}
			}
			t.Fatalf("Parse(%q): %v, want one of %v", src, err, known)
		}
		for i := range filter.clauses {
			c := &filter.clauses[i]
			if clean, err := data.Clean(c.want); err != nil || clean.String() != c.want.String() {
				t.Fatalf("Parse(%q) compares with %s, which is not clean: %v", src, c.want, err)
			}
			if c.root == rootPrivate {
				t.Fatalf("Parse(%q) looks at private data", src)
			}
		}
		filter.Match(Document{Public: data.Value(`{"a":[{"b":[1,null,{"c":"x"}]},[[]]]}`), States: data.Value(`[{"nodeId":"a"}]`)})
		filter.Nodes()
	})
}
