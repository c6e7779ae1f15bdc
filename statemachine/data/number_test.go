package data

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"troupe/statemachine/cputest"
)

func TestHugeNumbersCostLittle(t *testing.T) {
	digits := strings.Repeat("1", 1<<20)
	for _, c := range []struct{ a, b string }{
		{"1e99999999999999999", "1e-99999999999999999"},
		{digits, digits + ".1"},
		{"0." + digits, "0." + digits + "0"},
		{"0." + strings.Repeat("0", 1<<20) + "1", strings.Repeat("1", 1<<20) + "e-2000000"},
	} {
		a, b := Value(c.a), Value(c.b)
		watched := cputest.Watch()
		Compare(a, b)
		Equal(a, b)
		a.Int64()
		b.Int64()
		a.Float64()
		assert.LessOrEqual(t, watched(), tooLong, "comparing %.20s… with %.20s… took", a, b)
		assert.Zero(t, testing.AllocsPerRun(1, func() { Compare(a, b) }), "Compare(%.20s…, %.20s…) allocates", a, b)
	}
}

// TestWholeNumbers holds Truncate, and Int64 where there is no fraction.
func TestWholeNumbers(t *testing.T) {
	for _, c := range []struct {
		src      string
		want     int64
		fits     bool
		integral bool
	}{
		{"0", 0, true, true},
		{"-0", 0, true, true},
		{"-0.0e9", 0, true, true},
		{"7", 7, true, true},
		{"-7", -7, true, true},
		{"1.0", 1, true, true},
		{"1e2", 100, true, true},
		{"1.50e1", 15, true, true},
		{"100e-2", 1, true, true},
		{"1e18", 1e18, true, true},
		{"9007199254740993", 9007199254740993, true, true},
		{"9223372036854775807", math.MaxInt64, true, true},
		{"-9223372036854775808", math.MinInt64, true, true},
		{"1.5", 1, true, false},
		{"-2.9", -2, true, false},
		{"0.99", 0, true, false},
		{"-0.5", 0, true, false},
		{"25e-1", 2, true, false},
		{"1e-99999999999999999", 0, true, false},
		{"9007199254740993.5", 9007199254740993, true, false},
		{"9223372036854775807.9", math.MaxInt64, true, false},
		{"-9223372036854775808.9", math.MinInt64, true, false},
		{"9223372036854775808", 0, false, false},
		{"-9223372036854775809", 0, false, false},
		{"18446744073709551616", 0, false, false},
		{"99999999999999999999", 0, false, false},
		{"1e19", 0, false, false},
		{"1e99999999999999999", 0, false, false},
		{`"1"`, 0, false, false},
		{"true", 0, false, false},
		{"null", 0, false, false},
		{"", 0, false, false},
	} {
		got, ok := Value(c.src).Truncate()
		assert.True(t, ok == c.fits && (!ok || got == c.want), "Truncate of %q = %d, %v, want %d, %v", c.src, got, ok, c.want, c.fits)
		got, ok = Value(c.src).Int64()
		assert.True(t, ok == c.integral && (!ok || got == c.want), "Int64 of %q = %d, %v, want %d, %v", c.src, got, ok, c.want, c.integral)
	}
}

func TestFloat64(t *testing.T) {
	for src, want := range map[string]float64{
		"0": 0, "1.5": 1.5, "-1e3": -1000, "9007199254740993": 9007199254740992, "1e400": math.Inf(1), "-1e400": math.Inf(-1), "1e-400": 0, `"1"`: 0, "": 0,
	} {
		assert.Equal(t, want, Value(src).Float64(), "Float64 of %q", src)
	}
}

func TestNumbersAgreeWithExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := numberText().Draw(t, "a")
		b := rapid.OneOf(numberText(), respelled(a)).Draw(t, "b")
		checkNumbers(t, a, b)
	})
}

// respelled draws another spelling of the number s that has no exponent yet,
// by moving its point.
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
			if v, err := Clean([]byte(s)); err != nil || v.Kind() != Number {
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
	n := parseExponent([]byte(strings.TrimSpace(s[e+1:])))
	return -2000 < n && n < 2000
}

func checkNumbers(t interface{ Errorf(string, ...any) }, a, b string) {
	x, ok := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	if !assert.True(t, ok && okY, "math/big does not read %q or %q", a, b) {
		return
	}
	checkPair(t, Value(a), Value(b), x.Cmp(y))
	whole := new(big.Int).Quo(x.Num(), x.Denom())
	n, fits := Value(a).Truncate()
	assert.True(t, fits == whole.IsInt64() && (!fits || n == whole.Int64()), "Truncate of %s = %d, %v, want %v", a, n, fits, whole)
	if n, fits := Value(a).Int64(); fits != (x.IsInt() && whole.IsInt64()) || fits && n != whole.Int64() {
		t.Errorf("Int64 of %s = %d, %v, want %s", a, n, fits, x.RatString())
	}
}
