package filter

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

func TestParseField(t *testing.T) {
	for _, c := range []struct {
		path    string
		private bool
		want    error
	}{
		{"svcPublic.customerId", false, nil},
		{"svcPublic.lines.sku", false, nil},
		{"svcPublic.lines.0.sku", false, nil},
		{"svcPrivate.x", true, nil},
		{"svcPublic", false, ErrSyntax},
		{"svcPrivate", false, ErrSyntax},
		{"states.nodeId", false, ErrRoot},
		{"svcHistory.user", false, ErrRoot},
		{"_id", false, ErrRoot},
		{"secret", false, ErrRoot},
		{"", false, ErrRoot},
		{"svcPublic..a", false, ErrSyntax},
		{"svcPublic.0.1.2.3.4", false, ErrTooLarge},
		{"svcPublic" + strings.Repeat(".a", 20), false, ErrTooLarge},
	} {
		f, err := ParseField(strings.Split(c.path, "."))
		if !assert.True(t, errors.Is(err, c.want) && (f == nil) == (c.want != nil), "ParseField(%.50s) = %v, %v, want %v", c.path, f, err, c.want) {
			continue
		}
		if f != nil && (f.Path() != c.path || f.Private() != c.private) {
			t.Errorf("ParseField(%s) has path %s and private %v, want %v", c.path, f.Path(), f.Private(), c.private)
		}
	}
	_, err := ParseField(nil)
	assert.ErrorIs(t, err, ErrRoot, "ParseField(nil)")
}

// keysOf returns the keys of values.
func keysOf(values ...string) [][]byte {
	keys := make([][]byte, 0, len(values))
	for _, v := range values {
		keys = append(keys, data.AppendOrderedPrefix(nil, data.Value(v), KeyBytesMax))
	}
	return keys
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, path, public string
		want               []string
	}{
		{"a scalar", "svcPublic.a", `{"a":"x"}`, []string{`"x"`}},
		{"a number has the key of its value", "svcPublic.a", `{"a":10e-1}`, []string{`1`}},
		{"null", "svcPublic.a", `{"a":null}`, []string{`null`}},
		{"missing", "svcPublic.a", `{}`, []string{``}},
		{"an object", "svcPublic.a", `{"a":{"b":1}}`, []string{`{"b":1}`}},
		{"an array: its elements and the whole", "svcPublic.a", `{"a":[3,"x",3,null]}`, []string{`null`, `3`, `"x"`, `[3,"x",3,null]`}},
		{"an empty array", "svcPublic.a", `{"a":[]}`, []string{`[]`}},
		{"an array in an array", "svcPublic.a", `{"a":[[1]]}`, []string{`[1]`, `[[1]]`}},
		{"objects in an array", "svcPublic.a.b", `{"a":[{"b":2},{"b":1},{"c":3}]}`, []string{``, `1`, `2`}},
		{"arrays in objects in an array", "svcPublic.a.b", `{"a":[{"b":[1,2]}]}`, []string{`1`, `2`, `[1,2]`}},
		{"scalars in an array lead to nothing", "svcPublic.a.b", `{"a":[1]}`, []string{``}},
		{"inside a scalar", "svcPublic.a.b", `{"a":1}`, []string{``}},
		{"a position", "svcPublic.a.1", `{"a":[7,[8]]}`, []string{`[8]`}},
		{"private data", "svcPrivate.a", `{"a":1}`, []string{`"secret"`}},
		{"a long text is cut", "svcPublic.a", `{"a":"` + longText + `a"}`, []string{`"` + longText + `b"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Document{Public: mustClean(t, c.public), Private: data.Value(`{"a":"secret"}`)}
			got, want := mustField(t, c.path).Keys(d), keysOf(c.want...)
			assert.True(t, slices.EqualFunc(got, want, bytes.Equal), "the keys of %s are %x, want %x", c.public, got, want)
			for _, k := range got {
				assert.LessOrEqual(t, len(k), KeyBytesMax, "a key")
			}
		})
	}
	got := mustField(t, "svcPublic.a").Keys(Document{})
	assert.True(t, slices.EqualFunc(got, keysOf(``), bytes.Equal), "the keys of the empty document are %x, want that of what is missing", got)
}

func TestKeysOverflow(t *testing.T) {
	array := func(n int) Document {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ",%d", i)
		}
		return Document{Public: data.Value(`{"a":[` + b.String()[1:] + `]}`)}
	}
	field := mustField(t, "svcPublic.a")
	assert.Len(t, field.Keys(array(KeysMax-1)), KeysMax, "an array of %d elements", KeysMax-1)
	d := array(KeysMax)
	got := field.Keys(d)
	require.True(t, len(got) == 3 && bytes.Equal(got[0], keysOf(`0`)[0]) && got[1][0] == keysOf(`[]`)[0][0] && bytes.Equal(got[2], OverflowKey), got)
	// NB: none of the three is the key of 500.
	for _, filter := range []string{`{"svcPublic.a":500}`, `{"svcPublic.a":{"$gt":998}}`, `{"svcPublic.a":{"$elemMatch":{"$gt":500,"$lt":502}}}`} {
		f := mustParse(t, filter)
		require.True(t, f.Match(d), "%s does not match, want it to", filter)
		fault, used := indexFault(f, field, got)
		assert.True(t, fault == "" && used, "%s: %s (uses the index: %v), want it found", filter, fault, used)
	}
	for _, v := range []string{``, `null`, `1e99999999999999999`, `"\udbff\udfff"`, `[true]`, `true`} {
		k := keysOf(v)[0]
		assert.True(t, bytes.Compare(k, OverflowKey) < 0 && !bytes.HasPrefix(k, OverflowKey), "the key %x of %s is not in front of OverflowKey", k, v)
	}
}

// TestBounds writes keys as the values they encode; a kind's first and last key
// by its name.
func TestBounds(t *testing.T) {
	key := func(v string) []byte { return data.AppendOrdered(nil, data.Value(v)) }
	point := func(v string) Range { return Range{From: cut(key(v)), Point: true} }
	first := func(v string) []byte { return key(v)[:1] }
	last := func(v string) []byte { return []byte{key(v)[0] + 1} }
	prefix := func(text string) []byte { k := key(`"` + text + `"`); return k[:len(k)-1] }
	next := func(k []byte) []byte { k = bytes.Clone(k); k[len(k)-1]++; return k }
	list := func(r ...Range) []Range { return append([]Range{}, r...) }
	for _, c := range []struct {
		name, filter string
		want         []Range // nil: nothing is said
	}{
		{"equality", `{"svcPublic.a":"x"}`, list(point(`"x"`))},
		{"$eq", `{"svcPublic.a":{"$eq":1.0}}`, list(point(`1`))},
		{"equality with an array", `{"svcPublic.a":[1]}`, list(point(`[1]`))},
		{"null stands for missing", `{"svcPublic.a":null}`, list(point(``), point(`null`))},
		{"$gte null stands for missing", `{"svcPublic.a":{"$gte":null}}`, list(point(``), point(`null`))},
		{"$lt null matches nothing", `{"svcPublic.a":{"$lt":null}}`, list()},
		{"$in is sorted, each once", `{"svcPublic.a":{"$in":["x",2,1.0,"x",1,null]}}`, list(point(``), point(`null`), point(`1`), point(`2`), point(`"x"`))},
		{"$in of nothing", `{"svcPublic.a":{"$in":[]}}`, list()},
		{"$gt is behind its operand", `{"svcPublic.a":{"$gt":5}}`, list(Range{From: behind(key(`5`)), To: last(`5`)})},
		{"$gte begins with its operand", `{"svcPublic.a":{"$gte":5}}`, list(Range{From: key(`5`), To: last(`5`)})},
		{"$lt ends in front of its operand", `{"svcPublic.a":{"$lt":"m"}}`, list(Range{From: first(`""`), To: key(`"m"`)})},
		{"$lte ends behind its operand", `{"svcPublic.a":{"$lte":"m"}}`, list(Range{From: first(`""`), To: behind(key(`"m"`))})},
		{"a range of bools ends with the kind", `{"svcPublic.a":{"$gt":false}}`, list(Range{From: behind(key(`false`)), To: last(`true`)})},
		{"equality with a long text is cut", `{"svcPublic.a":"` + longText + `a"}`, list(point(`"` + longText + `b"`))},
		{"$in of long texts has one point", `{"svcPublic.a":{"$in":["` + longText + `a","` + longText + `b"]}}`, list(point(`"` + longText + `b"`))},
		{"$gt of a long text keeps the cut key", `{"svcPublic.a":{"$gt":"` + longText + `"}}`, list(Range{From: cut(key(`"` + longText + `"`)), To: last(`""`)})},
		{"$lt of a long text has the cut key", `{"svcPublic.a":{"$lt":"` + longText + `"}}`, list(Range{From: first(`""`), To: behind(cut(key(`"` + longText + `"`)))})},
		{"a prefix", `{"svcPublic.a":{"$regex":"^ab"}}`, list(Range{From: prefix("ab"), To: next(prefix("ab"))})},
		{"a prefix with more behind it", `{"svcPublic.a":{"$regex":"^ab[0-9]+$"}}`, list(Range{From: prefix("ab"), To: next(prefix("ab"))})},
		{"a prefix whose last letter may be missing", `{"svcPublic.a":{"$regex":"^abc?"}}`, list(Range{From: prefix("ab"), To: next(prefix("ab"))})},
		{"a prefix with an escape", `{"svcPublic.a":{"$regex":"^a\\.b"}}`, list(Range{From: prefix("a.b"), To: next(prefix("a.b"))})},
		{"a prefix with s", `{"svcPublic.a":{"$regex":"^ab.","$options":"s"}}`, list(Range{From: prefix("ab"), To: next(prefix("ab"))})},
		{"a prefix of NUL", `{"svcPublic.a":{"$regex":"^\\x00"}}`, list(Range{From: prefix(`\u0000`), To: next(prefix(`\u0000`))})},
		{"a prefix of the last code point", `{"svcPublic.a":{"$regex":"^\\x{10FFFF}"}}`, list(Range{From: prefix(`\udbff\udfff`), To: next(prefix(`\udbff\udfff`))})},
		{"a prefix that ends in byte 0xBF", `{"svcPublic.a":{"$regex":"^\u00ff"}}`, list(Range{From: prefix("ÿ"), To: next(prefix("ÿ"))})},
		{"a long prefix is cut", `{"svcPublic.a":{"$regex":"^` + longText + `"}}`, list(Range{From: prefix(longText)[:KeyBytesMax], To: next(prefix(longText)[:KeyBytesMax])})},
		{"a prefix with i says nothing", `{"svcPublic.a":{"$regex":"^ab","$options":"i"}}`, nil},
		{"a prefix with its own i says nothing", `{"svcPublic.a":{"$regex":"(?i)^ab"}}`, nil},
		{"a prefix with m says nothing", `{"svcPublic.a":{"$regex":"^ab","$options":"m"}}`, nil},
		{"one of two prefixes says nothing", `{"svcPublic.a":{"$regex":"^ab|c"}}`, nil},
		{"no prefix says nothing", `{"svcPublic.a":{"$regex":"ab"}}`, nil},
		{"only a beginning says nothing", `{"svcPublic.a":{"$regex":"^"}}`, nil},
		{"a prefix that may be missing says nothing", `{"svcPublic.a":{"$regex":"^(ab)?"}}`, nil},
		{"$all has one of its values", `{"svcPublic.a":{"$all":["x","y"]}}`, list(point(`"x"`))},
		{"$all of nothing", `{"svcPublic.a":{"$all":[]}}`, list()},
		{"of two bounds one is used", `{"svcPublic.a":{"$gte":1,"$lt":5}}`, list(Range{From: key(`1`), To: last(`1`)})},
		{"of an equality and a bound the equality is used", `{"svcPublic.a":{"$gte":1,"$eq":5}}`, list(point(`5`))},
		{"of two lists the shorter is used", `{"$and":[{"svcPublic.a":{"$in":[1,2,3]}},{"svcPublic.a":{"$in":[7,8]}}]}`, list(point(`7`), point(`8`))},
		{"a prefix is used before a bound", `{"svcPublic.a":{"$gte":"a","$regex":"^ab"}}`, list(Range{From: prefix("ab"), To: next(prefix("ab"))})},
		{"of one element two bounds are used", `{"svcPublic.a":{"$elemMatch":{"$gte":1,"$lt":5}}}`, list(Range{From: key(`1`), To: key(`5`)})},
		{"of one element all lists are used", `{"svcPublic.a":{"$elemMatch":{"$in":[1,2,3,7],"$gt":1,"$lte":3}}}`, list(point(`2`), point(`3`))},
		{"of one element nothing may be left", `{"svcPublic.a":{"$elemMatch":{"$gt":5,"$lt":"x"}}}`, list()},
		{"of one element negations say nothing", `{"svcPublic.a":{"$elemMatch":{"$gt":5,"$ne":7}}}`, list(Range{From: behind(key(`5`)), To: last(`5`)})},
		{"of an element's element nothing is said", `{"svcPublic.a":{"$elemMatch":{"$elemMatch":{"$gt":5}}}}`, nil},
		{"a document of an $elemMatch above", `{"svcPublic":{"$elemMatch":{"a":5}}}`, list(point(`5`))},
		{"a document in $all", `{"svcPublic":{"$all":[{"$elemMatch":{"b":1}},{"$elemMatch":{"a":5}}]}}`, list(point(`5`))},
		{"null in a document of an $elemMatch says nothing", `{"svcPublic":{"$elemMatch":{"a":null}}}`, nil},
		{"$and nests", `{"$and":[{"$and":[{"svcPublic.a":5}]},{}]}`, list(point(`5`))},
		{"$or of one is that one", `{"$or":[{"svcPublic.a":5}]}`, list(point(`5`))},
		{"$or says nothing", `{"$or":[{"svcPublic.a":5},{"svcPublic.a":6}]}`, nil},
		{"$nor says nothing", `{"$nor":[{"svcPublic.a":5}]}`, nil},
		{"$ne says nothing", `{"svcPublic.a":{"$ne":5}}`, nil},
		{"$nin says nothing", `{"svcPublic.a":{"$nin":[5]}}`, nil},
		{"$not says nothing", `{"svcPublic.a":{"$not":{"$eq":5}}}`, nil},
		{"$not of $not says nothing new", `{"svcPublic.a":{"$not":{"$not":{"$eq":5}}}}`, list(point(`5`))},
		{"$not of $ne is equality", `{"svcPublic.a":{"$not":{"$ne":5}}}`, list(point(`5`))},
		{"$exists says nothing", `{"svcPublic.a":{"$exists":true}}`, nil},
		{"$type says nothing", `{"svcPublic.a":{"$type":"int"}}`, nil},
		{"$size says nothing", `{"svcPublic.a":{"$size":1}}`, nil},
		{"another path says nothing", `{"svcPublic.b":5}`, nil},
		{"a longer path says nothing", `{"svcPublic.a.b":5}`, nil},
		{"a shorter path says nothing", `{"svcPublic":{"a":5}}`, nil},
		{"another root says nothing", `{"svcPrivate.a":5}`, nil},
		{"{} says nothing", `{}`, nil},
	} {
		boundsAre(t, c.name, c.filter, false, c.want)
	}
}

// boundsAre demands the bounds of a filter on svcPublic.a, and OverflowKey behind them;
// nil: it says nothing.
func boundsAre(t *testing.T, name, filter string, single bool, want []Range) {
	t.Helper()
	said := want != nil
	if said {
		want = append(want, Range{From: OverflowKey, Point: true})
	}
	if got, ok := mustParse(t, filter).Bounds(mustField(t, "svcPublic.a"), single); ok != said || show(got) != show(want) {
		t.Errorf("%s: the bounds of %.100s are %s, %v, want %s", name, filter, show(got), ok, show(want))
	}
}

// TestBoundsOfOneKey: where every instance has one key, all conditions narrow.
func TestBoundsOfOneKey(t *testing.T) {
	key := func(text string) []byte { return keysOf(text)[0] }
	for _, c := range []struct {
		name, filter string
		want         []Range
	}{
		{"both ends of a range", `{"svcPublic.a":{"$gte":1,"$lt":9}}`, []Range{{From: key(`1`), To: key(`9`)}}},
		{"in two conditions", `{"svcPublic.a":{"$gte":1},"$and":[{"svcPublic.a":{"$lt":9}}]}`, []Range{{From: key(`1`), To: key(`9`)}}},
		{"a list and a range", `{"svcPublic.a":{"$in":[1,5,9],"$gt":3,"$lt":9}}`, []Range{{From: key(`5`), Point: true}}},
		{"what cannot be", `{"svcPublic.a":{"$gt":9,"$lt":1}}`, []Range{}},
		{"one condition", `{"svcPublic.a":5}`, []Range{{From: key(`5`), Point: true}}},
		{"another path", `{"svcPublic.b":5}`, nil},
	} {
		boundsAre(t, c.name, c.filter, true, c.want)
	}
}

// TestBoundsOfPaths has paths where what seems to follow does not.
func TestBoundsOfPaths(t *testing.T) {
	for _, c := range []struct {
		name, filter, path string
		want               bool
	}{
		{"$elemMatch on documents above the field", `{"svcPublic.lines":{"$elemMatch":{"sku":"x"}}}`, "svcPublic.lines.sku", true},
		{"$elemMatch in $elemMatch", `{"svcPublic.a":{"$elemMatch":{"b":{"$elemMatch":{"c.d":5}}}}}`, "svcPublic.a.b.c.d", true},
		{"$elemMatch on values in $elemMatch", `{"svcPublic.a":{"$elemMatch":{"b":{"$elemMatch":{"$gt":5}}}}}`, "svcPublic.a.b", true},
		{"a position in a nested array, which the longer path does not enter", `{"svcPublic.a":{"$elemMatch":{"0":5}}}`, "svcPublic.a.0", false},
		{"elements of an array at a position, which have no keys", `{"svcPublic.a.0":{"$elemMatch":{"$gt":5}}}`, "svcPublic.a.0", false},
		{"missing in a nested array, which the longer path does not enter", `{"svcPublic.a":{"$elemMatch":{"b":{"$in":[null,1]}}}}`, "svcPublic.a.b", false},
		{"a negated $elemMatch", `{"svcPublic.a":{"$not":{"$elemMatch":{"b":5}}}}`, "svcPublic.a.b", false},
		{"private data", `{"svcPrivate.a":5}`, "svcPrivate.a", true},
		{"a position", `{"svcPublic.a.0":5}`, "svcPublic.a.0", true},
	} {
		_, ok := mustParse(t, c.filter).Bounds(mustField(t, c.path), false)
		assert.Equal(t, c.want, ok, "%s: %s says something about %s", c.name, c.filter, c.path)
	}
}

func TestIDs(t *testing.T) {
	for _, c := range []struct {
		filter string
		want   []string
		ok     bool
	}{
		{`{}`, nil, false},
		{`{"_id":"b"}`, []string{"b"}, true},
		{`{"_id":{"$oid":"b"}}`, []string{"b"}, true},
		{`{"_id":{"$in":["b","a","b"]}}`, []string{"a", "b"}, true},
		{`{"_id":{"$in":["b",1,null]}}`, []string{"b"}, true},
		{`{"_id":{"$in":[]}}`, nil, true},
		{`{"_id":7}`, nil, true},
		{`{"_id":null}`, nil, true},
		{`{"_id":{"$all":["a"]}}`, []string{"a"}, true},
		{`{"$and":[{"_id":{"$in":["a","b","c"]}},{"svcPublic.a":1},{"$and":[{"_id":{"$in":["c","b","d"]}}]}]}`, []string{"b", "c"}, true},
		{`{"_id":{"$gt":"a"}}`, nil, false},
		{`{"_id":{"$ne":"a"}}`, nil, false},
		{`{"_id":{"$not":{"$eq":"a"}}}`, nil, false},
		{`{"_id.x":"a"}`, nil, false},
		{`{"workflowId":"a"}`, nil, false},
		{`{"$or":[{"_id":"a"},{"_id":"b"}]}`, nil, false},
		{`{"$nor":[{"_id":"a"}]}`, nil, false},
	} {
		got, ok := mustParse(t, c.filter).IDs()
		assert.True(t, ok == c.ok && slices.Equal(got, c.want), "IDs of %s = %q, %v, want %q, %v", c.filter, got, ok, c.want, c.ok)
	}
}

func TestPositions(t *testing.T) {
	at := func(machine string, nodes ...string) Positions { return Positions{Machine: machine, Nodes: nodes} }
	for _, c := range []struct {
		filter string
		want   []Positions
	}{
		{`{}`, nil},
		{`{"states.nodeId":"review"}`, []Positions{at("", "review")}},
		{`{"svcPublic.a":1,"states.nodeId":"r\u00e9view"}`, []Positions{at("", "réview")}},
		{`{"states.nodeId":{"$oid":"review"}}`, []Positions{at("", "review")}},
		{`{"states.nodeId":{"$in":["draft","review","draft"]}}`, []Positions{at("", "draft", "review")}},
		{`{"states.nodeId":{"$all":["draft","review"]}}`, []Positions{at("", "draft"), at("", "review")}},
		{`{"$and":[{"states.nodeId":"a"},{"$and":[{"states.nodeId":"b"}]}]}`, []Positions{at("", "a"), at("", "b")}},
		{`{"states":{"$elemMatch":{"stateMachineId":"main","nodeId":"review"}}}`, []Positions{at("main", "review")}},
		{`{"states":{"$elemMatch":{"nodeId":{"$in":["a","b"]},"stateMachineId":{"$eq":"main"}}}}`, []Positions{at("main", "a", "b")}},
		{`{"states":{"$elemMatch":{"nodeId":"a","stateMachineId":{"$in":["m","n"]}}}}`, []Positions{at("", "a")}},
		{`{"states":{"$elemMatch":{"$and":[{"nodeId":"a"},{"stateMachineId":"m"}]}}}`, []Positions{at("m", "a")}},
		{`{"states":{"$elemMatch":{"nodeId":"a"}}}`, []Positions{at("", "a")}},
		{`{"states":{"$all":[{"$elemMatch":{"nodeId":"a"}},{"$elemMatch":{"nodeId":"b"}}]}}`, []Positions{at("", "a"), at("", "b")}},
		{`{"states":{"stateMachineId":"main","nodeId":"review"}}`, []Positions{at("main", "review")}},
		{`{"states":{"$in":[{"stateMachineId":"m","nodeId":"a"},{"stateMachineId":"m","nodeId":"b"}]}}`, []Positions{at("m", "a", "b")}},
		{`{"states":{"$in":[{"stateMachineId":"m","nodeId":"a"},{"stateMachineId":"n","nodeId":"a"}]}}`, []Positions{at("", "a")}},
		{`{"states":{"$elemMatch":{"stateMachineId":"main"}}}`, nil},
		{`{"states":{"$elemMatch":{"nodeId":{"$ne":"a"}}}}`, nil},
		{`{"states":{"$elemMatch":{"nodeId":{"$in":["a",null]}}}}`, nil},
		{`{"states":{"$not":{"$elemMatch":{"nodeId":"a"}}}}`, nil},
		{`{"states":{"$elemMatch":{"$or":[{"nodeId":"a"},{"nodeId":"b"}]}}}`, nil},
		{`{"states":{"nodeId":"a"}}`, nil},
		{`{"states":[{"stateMachineId":"m","nodeId":"a"}]}`, nil},
		{`{"states.stateMachineId":"main"}`, nil},
		{`{"states.nodeId":1}`, nil},
		{`{"states.nodeId":null}`, nil},
		{`{"states.nodeId":["review"]}`, nil},
		{`{"states.nodeId":{"$in":["a",null]}}`, nil},
		{`{"states.nodeId":{"$in":[]}}`, nil},
		{`{"states.nodeId":{"$ne":"a"}}`, nil},
		{`{"states.nodeId":{"$gt":"a"}}`, nil},
		{`{"states.0.nodeId":"review"}`, nil},
		{`{"states.nodeId.x":"review"}`, nil},
		{`{"svcPublic.nodeId":"review"}`, nil},
		{`{"states":"review"}`, nil},
		{`{"$or":[{"states.nodeId":"a"},{"states.nodeId":"b"}]}`, nil},
		{`{"$nor":[{"states.nodeId":"a"}]}`, nil},
	} {
		got := mustParse(t, c.filter).Positions()
		assert.True(t, slices.EqualFunc(got, c.want, func(a, b Positions) bool { return a.Machine == b.Machine && slices.Equal(a.Nodes, b.Nodes) }),
			"Positions of %s = %q, want %q", c.filter, got, c.want)
	}
}

func TestUsesHistory(t *testing.T) {
	for filter, want := range map[string]bool{
		`{}`:                                    false,
		`{"svcPublic.a":1}`:                     false,
		`{"svcHistory.user":1}`:                 true,
		`{"svcPublic.a":1,"svcHistory.user":1}`: true,
		`{"$or":[{"svcPublic.a":1},{"$nor":[{"svcHistory.user":1}]}]}`:       true,
		`{"svcHistory":{"$not":{"$elemMatch":{"user":1}}}}`:                  true,
		`{"svcPublic":{"$elemMatch":{"svcHistory":1}}}`:                      false,
		`{"$and":[{"$and":[{"svcHistory":{"$gt":1,"$lt":2}}]},{"_id":"a"}]}`: true,
	} {
		assert.Equal(t, want, mustParse(t, filter).UsesHistory(), "UsesHistory of %s", filter)
	}
}
