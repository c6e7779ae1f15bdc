package decimal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
)

func exactly(f float64) *big.Rat {
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', -1, 64))
	if !ok {
		panic(f)
	}
	return r
}

func nearest(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

func amount(t *rapid.T, label string, n int) float64 {
	most := int64(powers[n]) - 1
	c := rapid.Int64Range(-most, most).Draw(t, label)
	places := rapid.IntRange(0, 6).Draw(t, label+" places")
	f, err := strconv.ParseFloat(fmt.Sprintf("%de-%d", c, places), 64)
	require.NoError(t, err)
	return f
}

func anyDouble(t *rapid.T, label string) float64 {
	return rapid.Custom(func(t *rapid.T) float64 { return math.Float64frombits(rapid.Uint64().Draw(t, "bits")) }).
		Filter(func(f float64) bool { return f-f == 0 && f != 0 }).Draw(t, label)
}

// TestWhatFitsFifteenDigitsIsExact is the promise: a sum, a difference or a product
// that fits 15 digits is read as the very decimal that a person calculates.
func TestWhatFitsFifteenDigitsIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := amount(t, "a", 8), amount(t, "b", 7)
		for name, c := range map[string]struct {
			got  float64
			want *big.Rat
		}{
			"+": {Add(a, b), new(big.Rat).Add(exactly(a), exactly(b))},
			"-": {Sub(a, b), new(big.Rat).Sub(exactly(a), exactly(b))},
			"*": {Mul(a, b), new(big.Rat).Mul(exactly(a), exactly(b))},
		} {
			if exactly(c.got).Cmp(c.want) != 0 {
				t.Fatalf("%v %s %v: got %v, want %s", a, name, b, c.got, c.want.FloatString(20))
			}
		}
		if b != 0 {
			require.Equal(t, a, Div(Mul(a, b), b), "%v %v", b, b)
		}
	})
}

// TestResultsAreRoundedOnce compares with fractions of any size.
func TestResultsAreRoundedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyDouble(t, "a")
		// Half of the time the other one is near, so that their digits overlap.
		b := anyDouble(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = a * amount(t, "factor", 5)
		}
		if !ordinary(a, b) {
			t.Skip("the factor was 0 or too much")
		}
		x, y := exactly(a), exactly(b)
		require.Equal(t, nearest(new(big.Rat).Mul(x, y)), Mul(a, b), "%v %v", a, b)
		exact := nearest(new(big.Rat).Add(x, y))
		_, _, _, near := aligned(numberOf(a), numberOf(b))
		if !near {
			exact = a + b
		}
		require.Equal(t, exact, Add(a, b), "%v %v", a, b)
		quotient, err := strconv.ParseFloat(new(big.Float).SetPrec(2000).Quo(new(big.Float).SetPrec(2000).SetRat(x), new(big.Float).SetPrec(2000).SetRat(y)).Text('e', 16), 64)
		got := Div(a, b)
		require.False(t, got != quotient && err == nil, "%v / %v: got %v, want %v", a, b, got, quotient)
		root, _ := strconv.ParseFloat(new(big.Float).SetPrec(2000).Sqrt(new(big.Float).SetPrec(2000).SetRat(new(big.Rat).Abs(x))).Text('e', 16), 64)
		if got := Sqrt(math.Abs(a)); got != root {
			t.Fatalf("root of %v: got %v, want %v", math.Abs(a), got, root)
		}
		if near {
			whole := new(big.Rat).Quo(x, y)
			times := new(big.Int).Quo(whole.Num(), whole.Denom())
			want := nearest(new(big.Rat).Sub(x, new(big.Rat).Mul(y, new(big.Rat).SetInt(times))))
			require.Equal(t, want, Mod(a, b), "%v %v", a, b)
		}
	})
}

// TestATotalIsExactAtAnyDistance adds doubles of all sizes; a sum of amounts that fits 15 digits is then the very decimal, too.
func TestATotalIsExactAtAnyDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var total Total
		sum := new(big.Rat)
		for range rapid.IntRange(0, 20).Draw(t, "count") {
			f := anyDouble(t, "item")
			if rapid.Bool().Draw(t, "an amount") {
				f = amount(t, "amount", 15)
			}
			total.Add(f)
			sum.Add(sum, exactly(f))
		}
		require.Equal(t, nearest(sum), total.Float())
	})
}

func TestWhatIsNoDecimalIsAsInFloat64(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	var mixed, infinite, wide Total
	for _, f := range []float64{1, inf, 2, -inf} {
		mixed.Add(f)
	}
	for _, f := range []float64{1e300, 1, -inf} {
		infinite.Add(f)
	}
	for _, f := range []float64{1e308, 1e308, 5e-324} {
		wide.Add(f)
	}
	for name, c := range map[string]struct{ got, want float64 }{
		"0 + 5": {Add(0, 5.5), 5.5}, "5 * 0": {Mul(5.5, 0), 0}, "1 / 0": {Div(1.5, 0), inf}, "-1 / 0": {Div(-1.5, 0), -inf},
		"0 / 0": {Div(0, 0), nan}, "1 % 0": {Mod(1.5, 0), nan}, "inf + 1": {Add(inf, 1), inf}, "inf - inf": {Sub(inf, inf), nan},
		"5 % inf": {Mod(5, inf), 5}, "too large": {Mul(1e200, 1e200), inf}, "too small": {Mul(1e-200, -1e-200), math.Copysign(0, -1)},
		"root of -1": {Sqrt(-1), nan}, "root of 0": {Sqrt(0), 0}, "far apart": {Add(1e23, 1e-300), 1e23},
		"a total of both infinities": {mixed.Float(), nan}, "a total with one": {infinite.Float(), -inf}, "a total that is too large": {wide.Float(), inf},
		"the remainder": {Mod(0.3, 0.1), 0}, "its sign": {Mod(-7.5, 2), -1.5}, "of many digits": {Mod(1e22, 0.03), 0.01}, "a root": {Sqrt(1.21), 1.1},
		"a third": {Div(1, 3), 1.0 / 3}, "a seventh": {Div(3071.32, 7), 438.76},
	} {
		assert.False(t, c.got != c.want && !(math.IsNaN(c.got) && math.IsNaN(c.want)), "%s: got %v, want %v", name, c.got, c.want)
	}
}

// TestCases holds the table that the pages are held to as well.
func TestCases(t *testing.T) {
	text, err := os.ReadFile("testdata/cases.json")
	require.NoError(t, err)
	var cases struct {
		About        string
		Sum, Product []struct {
			Of []float64
			Is float64
		}
		Lines []struct {
			Of [][]float64
			Is float64
		}
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	require.NoError(t, strict.Decode(&cases))
	product := func(of []float64) float64 {
		p := 1.0
		for _, f := range of {
			p = Mul(p, f)
		}
		return p
	}
	sum := func(of []float64) float64 {
		var total Total
		for _, f := range of {
			total.Add(f)
		}
		return total.Float()
	}
	for _, c := range cases.Sum {
		assert.Equal(t, c.Is, sum(c.Of), "sum of %v", c.Of)
	}
	for _, c := range cases.Product {
		assert.Equal(t, c.Is, product(c.Of), "product of %v", c.Of)
	}
	for _, c := range cases.Lines {
		var products []float64
		for _, line := range c.Of {
			products = append(products, product(line))
		}
		assert.Equal(t, c.Is, sum(products), "lines of %v", c.Of)
	}
	assert.True(t, len(cases.Sum) != 0 && len(cases.Product) != 0 && len(cases.Lines) != 0, "the table is empty")
}

// TestTheUsualAllocatesNothing holds what arithmetic costs: guards run it for each event.
func TestTheUsualAllocatesNothing(t *testing.T) {
	for _, pair := range [][2]float64{{438.76, 7}, {0.1, 0.2}, {1234.5678901234, 1e-9}, {2.0 / 3, 0.07}} {
		got := testing.AllocsPerRun(100, func() {
			var total Total
			total.Add(pair[0])
			total.Add(pair[1])
			sink = Add(pair[0], pair[1]) + Mul(pair[0], pair[1]) + Div(pair[0], pair[1]) + total.Float()
		})
		assert.Zero(t, got, pair)
	}
}

var sink float64

// TestADifferenceThatIsNothingIsZero, and not -0, which JSON would show.
func TestADifferenceThatIsNothingIsZero(t *testing.T) {
	var total Total
	total.Add(-0.3)
	total.Add(0.3)
	for what, got := range map[string]float64{"Add": Add(-0.3, 0.3), "Sub": Sub(-0.3, -0.3), "Total": total.Float()} {
		assert.Zero(t, math.Float64bits(got), "%s: got %v", what, got)
	}
}
