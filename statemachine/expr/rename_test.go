package expr

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestOnlyVariablesAreRenamed renames n, list and user; x stays.
func TestOnlyVariablesAreRenamed(t *testing.T) {
	to := map[string]string{"n": "svcPublic.n", "list": "svcPublic.list", "user": "svcPublic.user", "lists": "svcPublic.lists", "math": "svcPublic.math"}
	for src, want := range map[string]string{
		`n < 2`:                                      `svcPublic.n < 2`,
		` ( n+n ) * x`:                               ` ( svcPublic.n+svcPublic.n ) * x`,
		`a.n + n.n + n["n"] + a["n"]`:                `a.n + svcPublic.n.n + svcPublic.n["n"] + a["n"]`,
		`"n" + 'n' // n`:                             `"n" + 'n' // n`,
		`"ä" + n + "𝄞" + n`:                          `"ä" + svcPublic.n + "𝄞" + svcPublic.n`,
		`{"n": n, n: 1}`:                             `{"n": svcPublic.n, svcPublic.n: 1}`,
		`[n, x, n]`:                                  `[svcPublic.n, x, svcPublic.n]`,
		`has(n.x) && has(x.n)`:                       `has(svcPublic.n.x) && has(x.n)`,
		`list.exists(n, n > 1) && n > 1`:             `svcPublic.list.exists(n, n > 1) && svcPublic.n > 1`,
		`list.map(i, i > n, i + n)`:                  `svcPublic.list.map(i, i > svcPublic.n, i + svcPublic.n)`,
		`n.map(n, n.filter(x, x == n))`:              `svcPublic.n.map(n, n.filter(x, x == n))`,
		`list.all(i, list.all(n, n == i) || n == i)`: `svcPublic.list.all(i, svcPublic.list.all(n, n == i) || svcPublic.n == i)`,
		`cel.bind(n, n + 1, n * n) + n`:              `cel.bind(n, svcPublic.n + 1, n * n) + svcPublic.n`,
		`x.?n.orValue(n)`:                            `x.?n.orValue(svcPublic.n)`,
		`n.?x.optMap(v, v + n)`:                      `svcPublic.n.?x.optMap(v, v + svcPublic.n)`,
		`list.sortBy(n, n)`:                          `svcPublic.list.sortBy(n, n)`,
		`math.ceil(n) + lists.range(n).size()`:       `math.ceil(svcPublic.n) + lists.range(svcPublic.n).size()`,
		`lists.size() + size(lists)`:                 `svcPublic.lists.size() + size(svcPublic.lists)`,
		`user.id == n ? In("n") : n(n)`:              `svcPublic.user.id == svcPublic.n ? In("n") : n(svcPublic.n)`,
		"n\n  < list[n]":                             "svcPublic.n\n  < svcPublic.list[svcPublic.n]",
		`list.exists(n, .n > n)`:                     `svcPublic.list.exists(n, .svcPublic.n > n)`,
		`-n + !n`:                                    `-svcPublic.n + !svcPublic.n`,
	} {
		got, err := Rename(src, func(name string) string { return to[name] })
		assert.True(t, err == nil && got == want, "%s:\n got %s, %v\nwant %s", src, got, err, want)
	}
	_, err := Rename("n <", func(string) string { return "" })
	assert.Error(t, err, "no expression: got no error")
}
