package filter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/data"
)

// TestHostile has filters and instances that were made for each other. Each takes milliseconds; where a limit did not hold, it
// would take hours, which is how this test fails.
func TestHostile(t *testing.T) {
	// ways is nested so that a position can be taken as a key and as a place at every level.
	ways := strings.Repeat(`[{"0":`, 30) + `[]` + strings.Repeat(`}]`, 30)
	many := "[0" + strings.Repeat(",0", 100_000) + "]"
	long := strings.Repeat("x", 50_000)
	inside := func(path, innermost string) string { // as many $elemMatch as there may be
		return strings.Repeat(`{"`+path+`":{"$elemMatch":`, 8) + innermost + strings.Repeat(`}}`, 8)
	}
	for _, c := range []struct{ name, filter, public string }{
		{"four positions", `{"svcPublic.a.0.0.0.0":7}`, `{"a":` + ways + `}`},
		{"four positions through $elemMatch", `{"svcPublic.a":{"$elemMatch":{"0.0":{"$elemMatch":{"0.0":{"$elemMatch":{"x":1}}}}}}}`, `{"a":` + ways + `}`},
		{"$elemMatch in each other", `{"svcPublic.a":{"$elemMatch":` + inside("a", `{"b":1}`) + `}}`, `{"a":` + strings.Repeat(`[{"a":`, 30) + `[]` + strings.Repeat(`}]`, 30) + `}`},
		{"$elemMatch on values in each other", `{"svcPublic.a":{` + strings.Repeat(`"$elemMatch":{`, 17) + `"$gt":1` + strings.Repeat(`}`, 17) + `}}`, `{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`},
		{"a long list and a large array", `{"svcPublic.a":{"$in":[1` + strings.Repeat(",1e9", 4000) + `]}}`, `{"a":` + many + `}`},
		{"a list of all $in over a large array", `{"svcPublic.a":{"$all":[7` + strings.Repeat(",8", 63) + `]}}`, `{"a":` + many + `}`},
		{"long numbers", `{"svcPublic.a":{"$in":[` + strings.Repeat("1", 8000) + `,1e99999999999999999,-1e-99999999999999999]}}`, `{"a":[` + strings.Repeat("1", 1<<20) + `,1e99999999999999998]}`},
		{"nested repetitions", `{"svcPublic.a":{"$regex":"^(((x+)+)+)+$"}}`, `{"a":"` + long + `y"}`},
		{"alternatives that overlap", `{"svcPublic.a":{"$regex":"(x|xx|x?)+y$"}}`, `{"a":"` + long + `"}`},
		{"optional letters", `{"svcPublic.a":{"$regex":"(x?){250}x{250}y"}}`, `{"a":"` + long[:2000] + `"}`},
		{"as many steps as there may be", `{"svcPublic.a":{"$regex":"[a-z]{1,540}9"}}`, `{"a":"` + long[:5000] + `"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := mustParse(t, c.filter)
			d := Document{Public: mustClean(t, c.public)}
			assert.False(t, f.Match(d), "%.100s matches, want it not to", c.filter)
			field := mustField(t, "svcPublic.a")
			field.Keys(d)
			f.Bounds(field, false)
			f.Bounds(field, true)
		})
	}
}

// TestOtherBytes: what is no Value gets nonsense, but no panic.
func TestOtherBytes(t *testing.T) {
	filters := []string{
		`{"svcPublic.a":1}`, `{"svcPublic.a.0.b":{"$gt":"x","$in":[1,null]}}`, `{"svcPublic":{"$elemMatch":{"0.a":1}}}`,
		`{"svcPublic.a":{"$regex":"x","$type":"int","$size":1,"$mod":[2,0],"$bitsAnySet":1}}`,
	}
	for _, s := range []string{`{"a"`, `{"a":`, `{"a":[`, `{"a":"`, `{"a":-`, `[[[`, `[{"0":`, `]`, `:`, "\xff", `{"a":"\`, strings.Repeat("[", 100_000)} {
		d := Document{Public: data.Value(s), States: data.Value(s), Private: data.Value(s)}
		for _, filter := range filters {
			mustParse(t, filter).Match(d)
		}
		mustField(t, "svcPublic.a.0").Keys(d)
	}
}
