package data

import (
	"bytes"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/cputest"
)

func TestMerge(t *testing.T) {
	type row struct{ name, target, patch, want string }
	check := func(function string, merge func(target, patch Value) Value, rows []row) {
		for _, c := range rows {
			assert.Equal(t, c.want, string(merge(Value(c.target), Value(c.patch))), "%v %v %v %v", c.name, function, c.target, c.patch)
		}
	}
	check("Merge", Merge, []row{
		{"RFC 7396, appendix A", `{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{"RFC 7396, appendix A", `{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{"RFC 7396, appendix A", `{"a":"b"}`, `{"a":null}`, `{}`},
		{"RFC 7396, appendix A", `{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{"RFC 7396, appendix A", `{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{"RFC 7396, appendix A", `{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{"RFC 7396, appendix A", `{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{"RFC 7396, appendix A", `{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{"RFC 7396, appendix A", `["a","b"]`, `["c","d"]`, `["c","d"]`},
		{"RFC 7396, appendix A", `{"a":"b"}`, `["c"]`, `["c"]`},
		{"RFC 7396, appendix A", `{"a":"foo"}`, `null`, `null`},
		{"RFC 7396, appendix A", `{"a":"foo"}`, `"bar"`, `"bar"`},
		{"RFC 7396, appendix A", `{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{"RFC 7396, appendix A", `[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{"RFC 7396, appendix A", `{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{"keys of the target keep their place, new ones follow in the patch's order", `{"b":1,"a":2}`, `{"z":0,"a":3,"c":4}`, `{"b":1,"a":3,"z":0,"c":4}`},
		{"keys meet however they are spelled", `{"\u0061":1}`, `{"a":2}`, `{"\u0061":2}`},
		{"numbers keep their spelling", `{"a":1.0}`, `{"b":1e400}`, `{"a":1.0,"b":1e400}`},
		{"nulls in arrays stay", `{}`, `{"a":[null,{"b":null}]}`, `{"a":[null,{"b":null}]}`},
		{"nulls of the target stay", `{"a":{"x":null}}`, `{"a":{"y":1}}`, `{"a":{"x":null,"y":1}}`},
		{"an object replaces a scalar, without its nulls", `{"a":1}`, `{"a":{"b":null,"c":2}}`, `{"a":{"c":2}}`},
		{"a member is removed between others", `{"a":1,"b":2,"c":3}`, `{"b":null}`, `{"a":1,"c":3}`},
		{"a null for what is not there does nothing", `{"a":1}`, `{"b":null}`, `{"a":1}`},
		{"everything is removed", `{"a":1,"b":{}}`, `{"a":null,"b":null}`, `{}`},
		{"an absent target is an empty object", ``, `{"a":1,"b":null}`, `{"a":1}`},
		{"an absent patch changes nothing", `{"a":1}`, ``, `{"a":1}`},
		{"an empty patch changes nothing", `{"a":1}`, `{}`, `{"a":1}`},
		{"an empty patch makes an object of a scalar", `1`, `{}`, `{}`},
	})
	check("Overlay", Overlay, []row{
		{"a given member replaces the whole default", `{"a":{"x":1},"b":2}`, `{"a":{"y":1}}`, `{"a":{"y":1},"b":2}`},
		{"null is a value", `{"a":1}`, `{"a":null,"b":null}`, `{"a":null,"b":null}`},
		{"nulls deep inside stay", `{}`, `{"a":{"b":null}}`, `{"a":{"b":null}}`},
		{"defaults keep their place", `{"b":1,"a":2}`, `{"c":3,"a":4}`, `{"b":1,"a":4,"c":3}`},
		{"nothing given", `{"a":1}`, ``, `{"a":1}`},
		{"no defaults", ``, `{"a":null}`, `{"a":null}`},
		{"neither", ``, ``, ``},
		{"given is no object", `{"a":1}`, `7`, `{"a":1}`},
		{"defaults are no object", `7`, `{"a":1}`, `{"a":1}`},
		{"neither is an object", `7`, `8`, `8`},
	})
}

func TestMergeAgreesWithTheObviousOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkMerge(t, value(3).Draw(t, "target"), value(3).Draw(t, "patch"))
	})
}

func TestMergeOfManyKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		many := func(name string) Value {
			numbers := rapid.SliceOfNDistinct(rapid.IntRange(0, 3*fewKeys), fewKeys-1, 2*fewKeys, rapid.ID[int]).Draw(t, name)
			var parts []string
			for _, n := range numbers {
				key := "k" + strconv.Itoa(n)
				if rapid.Bool().Draw(t, "escaped") {
					key = `\u006b` + key[1:]
				}
				parts = append(parts, `"`+key+`":`+rapid.SampledFrom([]string{"null", "1", `{"a":null}`, `{"b":2}`}).Draw(t, "value"))
			}
			return Value("{" + strings.Join(parts, ",") + "}")
		}
		checkMerge(t, many("target"), many("patch"))
	})
}

// FuzzMerge holds Merge and Overlay against maps.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1},"c":[1]}`), []byte(`{"a":{"b":null,"d":{"e":null}},"c":null,"f":[null]}`))
	f.Add([]byte(`{"\u0061":1}`), []byte(`{"a":{}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		target, err := Clean(a)
		if err != nil {
			t.Skip()
		}
		patch, err := Clean(b)
		if err != nil {
			t.Skip()
		}
		checkMerge(t, target, patch)
	})
}

func checkMerge(t rapid.TB, target, patch Value) {
	targetBefore, patchBefore := target.String(), patch.String()
	got := Merge(target, patch)
	over := Overlay(target, patch)
	require.True(t, target.String() == targetBefore && patch.String() == patchBefore, "%v %v %v %v", targetBefore, target, patchBefore, patch)
	for _, v := range []Value{got, over} {
		clean, err := Clean(v)
		require.True(t, err == nil && bytes.Equal(clean, v), "merging %s and %s gives %s, which is not clean: %v", target, patch, v, err)
	}
	require.Equal(t, mergeMaps(target.Any(), patch.Any(), true), got.Any(), "Merge(%s, %s)", target, patch)
	keys, want := keysOf(got), mergedKeys(target, patch, got)
	require.True(t, slices.Equal(keys, want), "Merge(%s, %s) = %s with keys %q, want the order %q", target, patch, got, keys, want)
	if patch.Kind() == Object || target.Kind() != Object {
		require.Equal(t, mergeMaps(target.Any(), patch.Any(), false), over.Any(), "Overlay(%s, %s)", target, patch)
	}
	require.False(t, len(got) > 0 && len(target) > 0 && &got[0] == &target[0], "Merge(%s, %s) returns the target's bytes, want new storage", target, patch)
}

// mergeMaps is the pseudo code of RFC 7396, section 2. When it is not deep, null is a
// value and members replace each other whole.
func mergeMaps(target, patch any, deep bool) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	result := map[string]any{}
	if m, ok := target.(map[string]any); ok {
		maps.Copy(result, m)
	}
	for k, v := range p {
		switch {
		case !deep:
			result[k] = v
		case v == nil:
			delete(result, k)
		default:
			result[k] = mergeMaps(result[k], v, true)
		}
	}
	return result
}

// mergedKeys returns the keys that got should have, in their order, given that
// it has the right ones.
func mergedKeys(target, patch, got Value) []string {
	if patch.Kind() != Object {
		return keysOf(patch)
	}
	var keys []string
	for _, k := range append(keysOf(target), keysOf(patch)...) {
		if _, ok := got.Lookup(k); ok && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func TestMergeIsLinear(t *testing.T) {
	deep := func(inside string) Value {
		return Value(strings.Repeat(`{"a":`, 63) + inside + strings.Repeat("}", 63))
	}
	var b strings.Builder
	for i := range 200_000 {
		b.WriteString(`"k` + strconv.Itoa(i) + `":null,`)
	}
	wide := Value("{" + b.String() + `"z":1}`)
	numbers := "[" + strings.Repeat("1,", 1<<19) + "1]"
	for _, c := range []struct {
		name          string
		target, patch Value
	}{
		{"both deep and long", deep(numbers), deep(numbers)},
		{"both wide", wide, wide},
		{"a deep patch for nothing", Value(`{}`), deep(numbers)},
		{"a deep patch with a null inside", Value(`{}`), deep(`{"x":` + numbers + `,"y":null}`)},
		{"wide in deep", deep(string(wide)), deep(string(wide))},
	} {
		t.Run(c.name, func(t *testing.T) {
			watched := cputest.Watch()
			Merge(c.target, c.patch)
			Overlay(c.target, c.patch)
			Equal(c.target, c.patch)
			assert.LessOrEqual(t, watched(), tooLong, "merging %d and %d bytes took", len(c.target), len(c.patch))
		})
	}
}

func ratOf(v Value) string {
	r, _ := new(big.Rat).SetString(v.String())
	return r.String()
}
