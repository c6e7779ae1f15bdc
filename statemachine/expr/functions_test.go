package expr

import (
	"slices"
	"testing"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
	"troupe/statemachine/expr/internal/values"
)

// slowIndex looks at every position, in characters.
func slowIndex(text, part []rune, from int, last bool) int {
	found := -1
	for i := 0; i+len(part) <= len(text); i++ {
		if !slices.Equal(text[i:i+len(part)], part) {
			continue
		}
		if last && i <= from {
			found = i
		}
		if !last && i >= from {
			return i
		}
	}
	return found
}

// calling returns what an expression of a, b and c gives for their values.
func calling(t *testing.T, src string) func(args ...ref.Val) ref.Val {
	env, err := newEnv(t).With("a", "b", "c")
	require.NoError(t, err)
	p, err := env.Compile(src)
	require.NoError(t, err, src)
	return func(args ...ref.Val) ref.Val {
		vars := map[string]any{}
		for i, v := range args {
			vars[string(rune('a'+i))] = v
		}
		got, _, err := p.program.Eval(vars)
		require.NoError(t, err, src)
		return got
	}
}

func TestSearchingCountsCharacters(t *testing.T) {
	texts := rapid.StringOfN(rapid.SampledFrom([]rune("abä€😀")), 0, 12, -1)
	indexOf, lastIndexOf := calling(t, "a.indexOf(b, c)"), calling(t, "a.lastIndexOf(b, c)")
	rapid.Check(t, func(t *rapid.T) {
		text, part := texts.Draw(t, "text"), rapid.StringOfN(rapid.SampledFrom([]rune("abä€")), 1, 3, -1).Draw(t, "part")
		runes := []rune(text)
		from := rapid.IntRange(0, len(runes)+2).Draw(t, "from")
		if got, want := indexOf(types.String(text), types.String(part), types.Int(from)), slowIndex(runes, []rune(part), from, false); got != types.Int(want) {
			t.Fatalf("indexOf(%q, %q, %d): got %v, want %d", text, part, from, got, want)
		}
		want := slowIndex(runes, []rune(part), from, true)
		if from >= len(runes) {
			want = -1 // as the library has it
		}
		require.Equal(t, types.Int(want), lastIndexOf(types.String(text), types.String(part), types.Int(from)), "lastIndexOf(%q, %q, %d), %d", text, part, from, want)
	})
}

// TestCollectionsAgreeWithComparingAllPairs is against the obvious way, with
// cel-go's equality: 1, 1.0 and 1u are the same, NaN is not itself.
func TestCollectionsAgreeWithComparingAllPairs(t *testing.T) {
	lists := rapid.Custom(func(t *rapid.T) []ref.Val {
		var l []ref.Val
		for _, text := range rapid.SliceOfN(jsonTexts(fewScalars, 1), 0, 8).Draw(t, "list") {
			v, err := data.Clean([]byte(text))
			require.NoError(t, err)
			l = append(l, values.FromData(v))
		}
		return append(l, rapid.SliceOfN(rapid.SampledFrom([]ref.Val{
			types.Uint(1), types.Double(1), types.Uint(1 << 63), types.Double(1 << 63), types.String("1"), types.Int(1<<53 + 1), types.Double(1 << 53),
		}), 0, 3).Draw(t, "more")...)
	})
	has := func(l []ref.Val, v ref.Val) bool {
		return slices.ContainsFunc(l, func(x ref.Val) bool { return types.Equal(v, x) == types.True })
	}
	containsAll, intersects, distinct := calling(t, "sets.contains(a, b)"), calling(t, "sets.intersects(a, b)"), calling(t, "a.distinct()")
	rapid.Check(t, func(t *rapid.T) {
		a, b := lists.Draw(t, "a"), lists.Draw(t, "b")
		all := !slices.ContainsFunc(b, func(v ref.Val) bool { return !has(a, v) })
		some := slices.ContainsFunc(a, func(v ref.Val) bool { return has(b, v) })
		require.Equal(t, types.Bool(all), containsAll(values.NewList(a), values.NewList(b)), "containsAll(%v, %v), %v", a, b, all)
		require.Equal(t, types.Bool(some), intersects(values.NewList(a), values.NewList(b)), "intersects(%v, %v), %v", a, b, some)
		var kept []ref.Val
		for _, v := range a {
			if !has(kept, v) {
				kept = append(kept, v)
			}
		}
		require.Equal(t, types.True, distinct(values.NewList(a)).Equal(values.NewList(kept)), "distinct(%v), %v", a, kept)
	})
}
