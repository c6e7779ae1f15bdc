package expr

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

func TestSortIsStableAndSorts(t *testing.T) {
	e := newEnv(t)
	p, err := e.Compile(`svcPublic.l.sortBy(x, x.k)`)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{"1", "1.5", "2.0", "-3", "2"}), 0, 12).Draw(t, "keys")
		var items []string
		for i, k := range keys {
			items = append(items, fmt.Sprintf(`{"k":%s,"i":%d}`, k, i))
		}
		sorted := slices.Clone(items)
		slices.SortStableFunc(sorted, func(a, b string) int {
			x, _ := data.Value(a).Lookup("k")
			y, _ := data.Value(b).Lookup("k")
			return data.Compare(x, y)
		})
		got, err := p.Value(&Scope{Public: data.Value(`{"l":[` + strings.Join(items, ",") + `]}`)})
		want := "[" + strings.Join(sorted, ",") + "]"
		require.True(t, string(got) == want && err == nil, "got %s, %v, want %s", got, err, want)
	})
}
