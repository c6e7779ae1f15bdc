package data

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       int
	}{
		{"integers", "1", "2", -1},
		{"integers of different lengths", "10", "9", 1},
		{"negative integers", "-10", "-9", -1},
		{"a sign decides", "-1", "1", -1},
		{"zero and negative zero are equal", "-0", "0", 0},
		{"zero with any exponent is zero", "0e999999", "-0.000", 0},
		{"the same number in four spellings: a fraction", "1", "1.0", 0},
		{"the same number in four spellings: an exponent", "100", "1e2", 0},
		{"the same number in four spellings: a negative exponent", "0.001", "1E-3", 0},
		{"the same number in four spellings: all of it", "12300", "0.001230e+7", 0},
		{"2^53 and its successor differ", "9007199254740992", "9007199254740993", -1},
		{"the same beyond any integer", "123456789012345678901234567890", "123456789012345678901234567891", -1},
		{"numbers beyond float64", "1e400", "1e401", -1},
		{"numbers below float64", "1e-400", "0", 1},
		{"huge exponents", "1e1000000000", "1e999999999", 1},
		{"huge negative exponents", "-1e-1000000000", "-1e-999999999", 1},
		{"huge exponents that mean the same", "10e1000000000", "1e1000000001", 0},
		{"the largest exponents", "1e99999999999999999", "9e99999999999999998", 1},
		{"digits behind the end of the other", "1.5", "1.50000000000000000001", -1},
		{"a fraction against an integer", "18446744073709551615.5", "18446744073709551616", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := mustClean(t, c.a), mustClean(t, c.b)
			if got := sign(Compare(a, b)); got != c.want {
				t.Errorf("Compare(%s, %s) = %d, want %d", a, b, got, c.want)
			}
			if got := sign(Compare(b, a)); got != -c.want {
				t.Errorf("Compare(%s, %s) = %d, want %d", b, a, got, -c.want)
			}
			if got := Equal(a, b); got != (c.want == 0) {
				t.Errorf("Equal(%s, %s) = %v, want %v", a, b, got, c.want == 0)
			}
		})
	}
}

func TestCompareIsForTwoNumbers(t *testing.T) {
	for _, other := range []string{"", "null", `"2"`, "true", "[2]", `{"a":2}`} {
		if got := Compare(Value("1"), Value(other)); got != 0 {
			t.Errorf("Compare(1, %s) = %d, want 0", other, got)
		}
	}
}

func TestHugeNumbersCostLittle(t *testing.T) {
	digits := strings.Repeat("1", 1<<20)
	for _, c := range []struct{ a, b string }{
		{"1e99999999999999999", "1e-99999999999999999"},
		{digits, digits + ".1"},
		{"0." + digits, "0." + digits + "0"},
		{"0." + strings.Repeat("0", 1<<20) + "1", strings.Repeat("1", 1<<20) + "e-2000000"},
	} {
		a, b := Value(c.a), Value(c.b)
		began := time.Now()
		Compare(a, b)
		Equal(a, b)
		a.Int64()
		b.Int64()
		a.Float64()
		if took := time.Since(began); took > tooLong {
			t.Errorf("comparing %.20s… with %.20s… took %v, want milliseconds", a, b, took)
		}
		if n := testing.AllocsPerRun(1, func() { Compare(a, b) }); n != 0 {
			t.Errorf("Compare(%.20s…, %.20s…) allocates %v times, want 0", a, b, n)
		}
	}
}

func TestInt64(t *testing.T) {
	for _, c := range []struct {
		src  string
		want int64
		ok   bool
	}{
		{"0", 0, true},
		{"-0", 0, true},
		{"-0.0e9", 0, true},
		{"7", 7, true},
		{"-7", -7, true},
		{"1.0", 1, true},
		{"1e2", 100, true},
		{"1.50e1", 15, true},
		{"100e-2", 1, true},
		{"1e18", 1e18, true},
		{"9007199254740993", 9007199254740993, true},
		{"9223372036854775807", math.MaxInt64, true},
		{"-9223372036854775808", math.MinInt64, true},
		{"9223372036854775808", 0, false},
		{"-9223372036854775809", 0, false},
		{"18446744073709551616", 0, false},
		{"1e19", 0, false},
		{"1e1000000000", 0, false},
		{"1.5", 0, false},
		{"1e-1", 0, false},
		{"1e-1000000000", 0, false},
		{`"1"`, 0, false},
		{"true", 0, false},
		{"null", 0, false},
		{"", 0, false},
	} {
		got, ok := Value(c.src).Int64()
		if ok != c.ok || ok && got != c.want {
			t.Errorf("Int64 of %q = %d, %v, want %d, %v", c.src, got, ok, c.want, c.ok)
		}
	}
}

func TestFloat64(t *testing.T) {
	for _, c := range []struct {
		src  string
		want float64
	}{
		{"0", 0},
		{"1.5", 1.5},
		{"-1e3", -1000},
		{"9007199254740993", 9007199254740992},
		{"1e400", math.Inf(1)},
		{"-1e400", math.Inf(-1)},
		{"1e-400", 0},
		{`"1"`, 0},
		{"", 0},
	} {
		if got := Value(c.src).Float64(); got != c.want {
			t.Errorf("Float64 of %q = %v, want %v", c.src, got, c.want)
		}
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

// FuzzCompare holds Compare, Equal and Int64 against math/big.
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
	if !ok || !okY {
		t.Errorf("math/big does not read %q or %q", a, b)
		return
	}
	want := x.Cmp(y)
	if got := sign(Compare(Value(a), Value(b))); got != want {
		t.Errorf("Compare(%s, %s) = %d, want %d", a, b, got, want)
	}
	if got := Equal(Value(a), Value(b)); got != (want == 0) {
		t.Errorf("Equal(%s, %s) = %v, want %v", a, b, got, want == 0)
	}
	n, fits := Value(a).Int64()
	if want := x.IsInt() && x.Num().IsInt64(); fits != want || fits && n != x.Num().Int64() {
		t.Errorf("Int64 of %s = %d, %v, want %v, %v", a, n, fits, x.Num(), want)
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
