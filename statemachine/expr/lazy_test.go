package expr

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
	"troupe/statemachine/expr/internal/values"
)

// eager decodes v into Go maps and slices, which cel-go then reads with its own code: the slow obvious way to give JSON to CEL.
func eager(v data.Value) any {
	switch v.Kind() {
	case data.Object:
		m := make(map[string]any)
		var order []ref.Val // cel-go has none
		for key, x := range v.Members() {
			m[key] = eager(x)
			order = append(order, types.String(key))
		}
		return &values.Mapping{Mapper: types.NewStringInterfaceMap(types.DefaultTypeAdapter, m), Keys: order}
	case data.Array:
		l := []any{}
		for _, x := range v.Elements() {
			l = append(l, eager(x))
		}
		return l
	case data.String:
		return v.Text()
	case data.Number:
		if n, ok := v.Int64(); ok {
			return n
		}
		return v.Float64()
	case data.Bool:
		return string(v) == "true"
	}
	return nil
}

// normal is what two ways to the same result agree on: not the order of keys, nor the spelling of numbers.
func normal(v data.Value) any {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var x any
	if err := json.Unmarshal(b, &x); err != nil {
		return err.Error() // a number beyond float64
	}
	return x
}

var lookups = []string{
	`svcPublic`, `svcPublic.a`, `svcPublic.a.b`, `svcPublic.l[0]`, `svcPublic["a"]["b"]`,
	`has(svcPublic.a)`, `has(svcPublic.a.b)`, `svcPublic.?a.?b`, `svcPublic.?a.b.orValue(7)`, `svcPublic.l[?1].orValue("x")`,
	`svcPublic.a == svcPublic.b`, `svcPublic.a != svcPublic.l`, `svcPublic.a < svcPublic.b`, `svcPublic.a >= 1.5`,
	`svcPublic.a + svcPublic.b`, `svcPublic.a * 2 - svcPublic.b / 2.0`, `-svcPublic.a`, `svcPublic.l + svcPublic.l`,
	`size(svcPublic)`, `size(svcPublic.l)`, `size(svcPublic.a)`, `svcPublic.l.size() == svcPublic.size()`,
	`svcPublic.l.map(x, x)`, `svcPublic.l.filter(x, x > 1)`, `svcPublic.l.exists(x, x == svcPublic.a)`, `svcPublic.l.all(x, x in svcPublic)`,
	`svcPublic.l.map(x, x + svcPublic.a)`, `svcPublic.l.exists_one(x, x == 1)`,
	`svcPublic.map(k, svcPublic[k]).size()`, `svcPublic.exists(k, svcPublic[k] == 1)`, `svcPublic.all(k, k != "zz")`,
	`svcPublic.a in svcPublic.l`, `"a" in svcPublic`, `1 in svcPublic.l`, `svcPublic.l.distinct()`, `svcPublic.l.sort()`,
	`sets.contains(svcPublic.l, [svcPublic.a])`, `svcPublic.l.hasAny([1, "x", svcPublic.b])`, `svcPublic.l.reverse()`, `svcPublic.l.slice(0, 1)`,
	`svcPublic.l.flatten()`, `svcPublic.l.first()`, `svcPublic.l.last().orValue(0)`, `svcPublic.l.join(",")`,
	`{"x": svcPublic.a, "y": [svcPublic]}`, `[svcPublic.a, svcPublic.b] == svcPublic.l`, `svcPublic == {"a": svcPublic.a, "b": svcPublic.b}`,
	`type(svcPublic.a) == int || type(svcPublic.a) == double`, `type(svcPublic) == map`, `string(svcPublic.a)`, `svcPublic.a ? 1 : 2`,
	`optional.ofNonZeroValue(svcPublic.a)`, `cel.bind(x, svcPublic.a, x == x)`, `svcPublic.l == svcPublic.l.map(x, x)`,
	// An object or a list that is read more often than eagerUses gets an index.
	`lists.range(20).map(i, svcPublic.a)[19]`, `lists.range(20).map(i, svcPublic.l[0])[19]`, `lists.range(20).map(i, svcPublic.l[?(19 - i)])`,
	`lists.range(20).map(i, svcPublic.?b)[19]`, `lists.range(20).map(i, svcPublic[["a", "b", "zz"][i % 2]])[19]`, `lists.range(20).all(i, "b" in svcPublic)`,
	`lists.range(20).map(i, svcPublic.map(k, k))[19]`, `lists.range(20).map(i, svcPublic.l.map(x, x))[19]`, `lists.range(20).map(i, svcPublic.l + [i])[19]`,
	`lists.range(20).exists(i, svcPublic.l.exists(x, x == svcPublic.a))`, `lists.range(20).map(i, svcPublic.l.distinct())[19]`,
	`lists.range(20).map(i, svcPublic.l == [svcPublic.a])[19]`, `lists.range(20).all(i, svcPublic.size() == svcPublic.map(k, k).size())`,
}

type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

func compareWithEager(tb reporter, programs []*Program, v data.Value, decoded any) {
	tb.Helper()
	vars := map[string]any{"svcPublic": decoded}
	for i, p := range programs {
		got, err := p.Value(&Scope{Public: v})
		var want data.Value
		plain, _, wantErr := p.program.Eval(vars)
		if wantErr == nil {
			want, wantErr = encode(plain)
		}
		if err == nil && wantErr != nil && strings.Contains(wantErr.Error(), "no JSON form: ") && strings.Contains(wantErr.Error(), "Inf") {
			continue // bytes hold numbers that no float64 holds
		}
		if (err == nil) != (wantErr == nil) {
			tb.Errorf("%s on %.200s\n got %s, %v\nwant %s, %v", lookups[i], v, got, err, want, wantErr)
			continue
		}
		if err == nil && !reflect.DeepEqual(normal(got), normal(want)) {
			tb.Errorf("%s on %.200s\n got %s\nwant %s", lookups[i], v, got, want)
		}
	}
}

func compileLookups(tb testing.TB) []*Program {
	e := newEnv(tb)
	programs := make([]*Program, len(lookups))
	for i, src := range lookups {
		p, err := e.Compile(src)
		require.NoError(tb, err, src)
		programs[i] = p
	}
	return programs
}

// Scalars and keys are few, so that they meet.
var (
	fewScalars = rapid.SampledFrom([]string{
		"1", "1.0", "0", "-0", "1.5", "2", "1e2", "-3", "9007199254740993", "9223372036854775807", "9223372036854775808",
		"12345678901234567890", "1e400", "0.1", "true", "false", "null", `""`, `"a"`, `"b"`, `"1"`, `"Grüße"`, `"\u0041\n"`,
	})
	scalars = rapid.OneOf(fewScalars, rapid.Map(rapid.Float64Range(-1e6, 1e6), func(f float64) string { return fmt.Sprint(f) }))
	keys    = rapid.SampledFrom([]string{"a", "b", "l", "k1", "k2", "k3", "\\u0061a"})
)

func jsonTexts(scalars *rapid.Generator[string], depth int) *rapid.Generator[string] {
	if depth == 0 {
		return scalars
	}
	inner := jsonTexts(scalars, depth-1)
	list := rapid.Custom(func(t *rapid.T) string {
		return "[" + strings.Join(rapid.SliceOfN(inner, 0, 6).Draw(t, "elements"), ",") + "]"
	})
	object := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for _, key := range rapid.SliceOfNDistinct(keys, 0, 5, rapid.ID[string]).Draw(t, "keys") {
			fmt.Fprintf(&b, `,"%s":%s`, key, inner.Draw(t, "member"))
		}
		return "{" + strings.TrimPrefix(b.String(), ",") + "}"
	})
	return rapid.OneOf(scalars, list, object)
}

func drawValue(t *rapid.T) data.Value {
	v, err := data.Clean([]byte(jsonTexts(scalars, 3).Draw(t, "value")))
	require.NoError(t, err)
	return v
}

func TestReadingInPlaceIsAsGoodAsDecoding(t *testing.T) {
	programs := compileLookups(t)
	rapid.Check(t, func(t *rapid.T) {
		members := []string{
			`"a":` + string(drawValue(t)), `"b":` + string(drawValue(t)), `"l":` + string(drawValue(t)), `"k1":` + string(drawValue(t)),
		}
		kept := rapid.SliceOfNDistinct(rapid.SampledFrom(members), 0, 4, rapid.ID[string]).Draw(t, "kept")
		v, err := data.Clean([]byte("{" + strings.Join(kept, ",") + "}"))
		require.NoError(t, err)
		compareWithEager(t, programs, v, eager(v))
	})
}

type complaints int

func (c *complaints) Helper()               {}
func (c *complaints) Errorf(string, ...any) { *c++ }

func TestAWrongValueIsNoticed(t *testing.T) {
	programs := compileLookups(t)
	v := mustData(t, `{"a":{"b":1},"b":2,"l":[1,2.5,"x"]}`)
	for sentence, wrong := range map[string]string{
		"a missing member":          `{"a":{"b":1},"l":[1,2.5,"x"]}`,
		"a missing member deep in":  `{"a":{},"b":2,"l":[1,2.5,"x"]}`,
		"another number":            `{"a":{"b":1},"b":2,"l":[1,2,"x"]}`,
		"another order of elements": `{"a":{"b":1},"b":2,"l":["x",2.5,1]}`,
		"a text for a number":       `{"a":{"b":"1"},"b":2,"l":[1,2.5,"x"]}`,
	} {
		var found complaints
		if compareWithEager(&found, programs, v, eager(mustData(t, wrong))); found == 0 {
			t.Errorf("%s: nothing was reported", sentence)
		}
	}
}

func FuzzEval(f *testing.F) {
	f.Add(samplePublic)
	f.Add(`{"a":{"b":1},"b":1.0,"l":[1,1.5,"x",[1],{"a":1}]}`)
	f.Add(`{"a":12345678901234567890,"b":1e400,"l":[]}`)
	f.Add(`{"a":"\u0000","b":"\ud83d\ude00","l":["a","b"],"":""}`)
	f.Add(`[1]`)
	programs := compileLookups(f)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := data.Clean([]byte(text))
		if err != nil || v.Kind() != data.Object {
			return
		}
		compareWithEager(t, programs, v, eager(v))
	})
}

func FuzzCompile(f *testing.F) {
	for _, src := range lookups {
		f.Add(src)
	}
	f.Add(`svcPublic.items.sortBy(i, i.qty).map(i, {"q": i.qty, ?"n": i.?name}).filter(i, In("a.b") || event.name == "x")`)
	f.Add(`"%s %d".format([user, now]) + string(instance.createdAt) + b"x"`)
	f.Add(`cel.bind(x, 1, x == 1.0) ? timestamp("2026-01-01T00:00:00Z").getHours("UTC") : duration("1h")`)
	f.Add("\"\\u0000\" + '''\n''' // comment")
	e, err := newEnv(f).With("item")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, src string) {
		p, err := e.Compile(src)
		if err != nil {
			var fault *CompileError
			require.ErrorAs(t, err, &fault, src)
			return
		}
		s := sample(t)
		first, err1 := p.Value(s)
		second, err2 := p.Value(s)
		require.True(t, string(first) == string(second) && fmt.Sprint(err1) == fmt.Sprint(err2), "%q: got %s, %v and then %s, %v", src, first, err1, second, err2)
		if err1 != nil {
			return
		}
		clean, err := data.Clean(first)
		require.True(t, err == nil && string(clean) == string(first), "%q: the result is no data.Value: %s: %v", src, first, err)
	})
}
