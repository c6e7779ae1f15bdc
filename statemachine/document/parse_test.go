package document_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/cputest"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

func dataOf(t rapid.TB, file, src string) string {
	t.Helper()
	n, err := document.Parse(file, []byte(src))
	require.NoError(t, err, "Parse(%s, %.200q)", file, src)
	v, err := n.Data()
	require.NoError(t, err, "Data of %.200q", src)
	return v.String()
}

func TestJSONMeansTheSameAsYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := tree(3).Draw(t, "tree")
		text, err := json.Marshal(x)
		require.NoError(t, err)
		yaml := dataOf(t, "a.yaml", string(text))
		asJSON := dataOf(t, "a.json", string(text))
		require.True(t, data.Equal(data.Value(asJSON), text) && yaml == asJSON, "%s is %s as JSON, %s as YAML", text, asJSON, yaml)
	})
}

// tree draws what encoding/json writes; no characters that YAML wants escaped differently.
func tree(depth int) *rapid.Generator[any] {
	text := rapid.StringMatching(`[a-zé0-9 :#'"\[\]{},&*!|>%@~-]{0,8}`)
	leaf := rapid.OneOf(
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.SampledFrom([]any{nil, true, false, "on", "yes", "2026-11-21", "1", "01", "<<"}),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(tree(depth-1), 0, 4), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(text, tree(depth-1), 0, 4), func(m map[string]any) any { return m }),
	)
}

func FuzzParseYAML(f *testing.F) {
	for _, s := range []string{"a: [1, {b: 'x'}]\n", "a: &x 1\nb: *x\n", "? a\n: b\n", "a: |\n x\n", "%TAG ! x\n---\n!y z", "- - 0x1\n- 1_0\n", "\xff\xfea\x00", "{a: 1, <<: {b: 2}}", "a: \"\\ud83d\"", "'a': .inf"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) { checkParse(t, "a.yaml", src) })
}

func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\ud83d\ude00"}]}`, ` [ ] `, `{"a":1,"a":2}`, "\"\xff\"", "1e400", "{\n\"é\" : \r\n null }"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		n := checkParse(t, "a.json", src)
		want, err := data.Clean(src)
		require.Equal(t, err != nil, n == nil, "Parse takes %q: %v, Clean: %v", src, n != nil, err)
		if n == nil {
			return
		}
		got, _ := n.Data()
		require.True(t, data.Equal(got, want), "Data of %q is %s, want %s", src, got, want)
	})
}

func checkParse(t *testing.T, file string, src []byte) *document.Node {
	watched := cputest.Watch()
	n, err := document.Parse(file, src)
	require.LessOrEqual(t, watched(), 20*time.Second, "Parse(%.100q) took, %d", src, len(src))
	if err != nil {
		var faults document.Faults
		require.True(t, errors.As(err, &faults) && len(faults) != 0 && n == nil, "Parse(%q) = %v, %v, want only Faults", src, n, err)
		for _, fault := range faults {
			require.True(t, fault.Reason != "" && !strings.Contains(fault.Reason, "gave up"), "Parse(%q): %+v, want a reason of the file's own", src, fault)
		}
		return nil
	}
	v, err := n.Data()
	require.NoError(t, err, "Data of %q", src)
	clean, err := data.Clean(v)
	require.True(t, err == nil && clean.String() == v.String(), "Data of %q is %s, which is not clean: %v", src, v, err)
	again, err := document.Parse("a.json", v)
	require.NoError(t, err, "Data of %q is %s, which does not parse", src, v)
	w, _ := again.Data()
	require.Equal(t, v.String(), w.String(), "reads back")
	checkPlaces(t, src, n)
	return n
}

func checkPlaces(t *testing.T, src []byte, n *document.Node) {
	require.True(t, n.Line >= 1 && n.Column >= 1 && n.Line <= len(src)+2, "a node of %q is at %d:%d", src, n.Line, n.Column)
	for _, item := range n.Items {
		checkPlaces(t, src, item)
	}
	for _, f := range n.Fields {
		checkPlaces(t, src, f.Key)
		checkPlaces(t, src, f.Value)
	}
}
