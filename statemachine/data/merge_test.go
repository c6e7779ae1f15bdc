package data_test

import (
	"bytes"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

func TestMergeAgreesWithTheObviousOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkMerge(t, value(3).Draw(t, "target"), value(3).Draw(t, "patch"))
	})
}

func TestMergeOfManyKeys(t *testing.T) {
	const fewKeys = 32 // up to here each key is compared with all before it
	rapid.Check(t, func(t *rapid.T) {
		many := func(name string) data.Value {
			numbers := rapid.SliceOfNDistinct(rapid.IntRange(0, 3*fewKeys), fewKeys-1, 2*fewKeys, rapid.ID[int]).Draw(t, name)
			var parts []string
			for _, n := range numbers {
				key := "k" + strconv.Itoa(n)
				if rapid.Bool().Draw(t, "escaped") {
					key = `\u006b` + key[1:]
				}
				parts = append(parts, `"`+key+`":`+rapid.SampledFrom([]string{"null", "1", `{"a":null}`, `{"b":2}`}).Draw(t, "value"))
			}
			return data.Value("{" + strings.Join(parts, ",") + "}")
		}
		checkMerge(t, many("target"), many("patch"))
	})
}

// FuzzMerge holds Merge and Overlay against maps.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1},"c":[1]}`), []byte(`{"a":{"b":null,"d":{"e":null}},"c":null,"f":[null]}`))
	f.Add([]byte(`{"\u0061":1}`), []byte(`{"a":{}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		target, err := data.Clean(a)
		if err != nil {
			t.Skip()
		}
		patch, err := data.Clean(b)
		if err != nil {
			t.Skip()
		}
		checkMerge(t, target, patch)
	})
}

func checkMerge(t rapid.TB, target, patch data.Value) {
	targetBefore, patchBefore := target.String(), patch.String()
	got := data.Merge(target, patch)
	over := data.Overlay(target, patch)
	require.True(t, target.String() == targetBefore && patch.String() == patchBefore, "%v %v %v %v", targetBefore, target, patchBefore, patch)
	for _, v := range []data.Value{got, over} {
		clean, err := data.Clean(v)
		require.True(t, err == nil && bytes.Equal(clean, v), "merging %s and %s gives %s, which is not clean: %v", target, patch, v, err)
	}
	require.Equal(t, mergeMaps(target.Any(), patch.Any(), true), got.Any(), "Merge(%s, %s)", target, patch)
	keys, want := keysOf(got), mergedKeys(target, patch, got)
	require.True(t, slices.Equal(keys, want), "Merge(%s, %s) = %s with keys %q, want the order %q", target, patch, got, keys, want)
	if patch.Kind() == data.Object || target.Kind() != data.Object {
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

func mergedKeys(target, patch, got data.Value) []string {
	if patch.Kind() != data.Object {
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

func ratOf(v data.Value) string {
	r, _ := new(big.Rat).SetString(v.String())
	return r.String()
}
