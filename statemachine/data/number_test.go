package data_test

import (
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"troupe/statemachine/cputest"
	"troupe/statemachine/data"
)

func TestHugeNumbersCostLittle(t *testing.T) {
	digits := strings.Repeat("1", 1<<20)
	for _, c := range []struct{ a, b string }{
		{"1e99999999999999999", "1e-99999999999999999"},
		{digits, digits + ".1"},
		{"0." + digits, "0." + digits + "0"},
		{"0." + strings.Repeat("0", 1<<20) + "1", strings.Repeat("1", 1<<20) + "e-2000000"},
	} {
		a, b := data.Value(c.a), data.Value(c.b)
		watched := cputest.Watch()
		data.Compare(a, b)
		data.Equal(a, b)
		a.Int64()
		b.Int64()
		a.Float64()
		assert.LessOrEqual(t, watched(), tooLong, "comparing %.20s… with %.20s… took", a, b)
		assert.Zero(t, testing.AllocsPerRun(4, func() { data.Compare(a, b) }), "Compare(%.20s…, %.20s…) allocates", a, b)
	}
}

func TestNumbersAgreeWithExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := numberText().Draw(t, "a")
		b := rapid.OneOf(numberText(), respelled(a)).Draw(t, "b")
		checkNumbers(t, a, b)
	})
}

// respelled draws another spelling of the number s that has no exponent yet, by moving its point.
func respelled(s string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		zeros := rapid.IntRange(0, 5).Draw(t, "zeros")
		if strings.ContainsAny(s, ".eE") {
			return s
		}
		if strings.Trim(s, "-") == "0" {
			return s + "e" + strings.Repeat("1", zeros+1)
		}
		return s + strings.Repeat("0", zeros) + "e-" + string(rune('0'+zeros))
	})
}

// FuzzCompare holds comparisons, Int64 and Truncate against math/big.
func FuzzCompare(f *testing.F) {
	f.Add("1", "1.0")
	f.Add("-0", "0e5")
	f.Add("9007199254740993", "9007199254740992.0")
	f.Add("0.001230e+7", "12300")
	f.Add("1e400", "10E399")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []string{a, b} {
			if v, err := data.Clean([]byte(s)); err != nil || v.Kind() != data.Number {
				t.Skip()
			}
			if !exactIsCheap(s) {
				t.Skip() // math/big would write out all the zeros
			}
		}
		checkNumbers(t, strings.TrimSpace(a), strings.TrimSpace(b))
	})
}

func exactIsCheap(s string) bool {
	e := strings.IndexAny(s, "eE")
	if e < 0 {
		return true
	}
	n, err := strconv.Atoi(strings.TrimSpace(s[e+1:]))
	return err == nil && -2000 < n && n < 2000
}

func checkNumbers(t interface{ Errorf(string, ...any) }, a, b string) {
	x, ok := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	if !assert.True(t, ok && okY, "math/big does not read %q or %q", a, b) {
		return
	}
	checkPair(t, data.Value(a), data.Value(b), x.Cmp(y))
	whole := new(big.Int).Quo(x.Num(), x.Denom())
	n, fits := data.Value(a).Truncate()
	assert.True(t, fits == whole.IsInt64() && (!fits || n == whole.Int64()), "Truncate of %s = %d, %v, want %v", a, n, fits, whole)
	if n, fits := data.Value(a).Int64(); fits != (x.IsInt() && whole.IsInt64()) || fits && n != whole.Int64() {
		t.Errorf("Int64 of %s = %d, %v, want %s", a, n, fits, x.RatString())
	}
}
