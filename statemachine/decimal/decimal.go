package decimal

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"sync"
)

// Add returns a + b.
func Add(a, b float64) float64 {
	if !ordinary(a, b) {
		return a + b
	}
	if sum, ok := numberOf(a).plus(numberOf(b)); ok {
		return sum.float()
	}
	return a + b // the larger one: the other is less than a part of its last digit
}

// Sub returns a - b.
func Sub(a, b float64) float64 { return Add(a, -b) }

// Mul returns a * b.
func Mul(a, b float64) float64 {
	if !ordinary(a, b) {
		return a * b
	}
	x, y := numberOf(a), numberOf(b)
	product := number{negative: x.negative != y.negative, exponent: x.exponent + y.exponent}
	product.high, product.low = bits.Mul64(x.low, y.low)
	return product.float()
}

// Div returns a / b. The quotient is rounded to 17 digits, half to even, on its way.
func Div(a, b float64) float64 {
	if !ordinary(a, b) {
		return a / b
	}
	x, y := numberOf(a), numberOf(b)
	// x becomes so long that the quotient has 18 or 19 digits, which fit 64 bits.
	longer, _ := x.lowered(x.exponent - (quotientDigits + 1 + digits(y.low) - digits(x.low)))
	quotient, rest := bits.Div64(longer.high, longer.low, y.low)
	q := number{negative: x.negative != y.negative, low: quotient, exponent: longer.exponent - y.exponent}
	return q.cut(rest != 0).float()
}

// cut rounds n, of one word and at least 18 digits, to 17 digits, half to even. more
// tells that further digits follow that are not all 0.
func (n number) cut(more bool) number {
	away := digits(n.low) - quotientDigits
	rest, half := n.low%powers[away], powers[away]/2
	n.low /= powers[away]
	n.exponent += away
	if rest > half || rest == half && (more || n.low%2 == 1) {
		n.low++
	}
	return n
}

// Mod returns what is left of a when b is taken away as often as it fits. It has the sign of a.
func Mod(a, b float64) float64 {
	if !ordinary(a, b) {
		return math.Mod(a, b)
	}
	x, y := numberOf(a), numberOf(b)
	exponent := min(x.exponent, y.exponent)
	x, ok1 := x.lowered(exponent)
	y, ok2 := y.lowered(exponent)
	if !ok1 || !ok2 {
		return math.Mod(a, b)
	}
	if x.high == 0 && y.high == 0 {
		x.low %= y.low
	} else {
		rest := new(big.Int).Rem(x.whole(), y.whole())
		x.low = rest.Uint64()
		x.high = rest.Rsh(rest, 64).Uint64()
	}
	return x.float()
}

// Sqrt returns the root of a, NaN when a is negative. It is rounded to 17 digits on its way, as a quotient is.
func Sqrt(a float64) float64 {
	if !ordinary(a, a) || a < 0 {
		return math.Sqrt(a)
	}
	x := numberOf(a)
	// x gets an even exponent and 35 or 36 digits, so that its root has 18.
	longer := 2*(quotientDigits+1) - digits(x.low)
	if (x.exponent-longer)%2 != 0 {
		longer--
	}
	x, _ = x.lowered(x.exponent - longer)
	square := x.whole()
	root := new(big.Int).Sqrt(square)
	exact := new(big.Int).Mul(root, root).Cmp(square) == 0
	return number{low: root.Uint64(), exponent: x.exponent / 2}.cut(!exact).float()
}

// ordinary reports whether both numbers are finite and not zero. float64 is right about the others.
func ordinary(a, b float64) bool {
	return a != 0 && b != 0 && a-a == 0 && b-b == 0
}

// Total adds up numbers. The zero Total is 0.
type Total struct {
	sum number
	// wide is the coefficient in place of sum's, once that has too many digits. It
	// ends with some 700: no two doubles lie farther apart.
	wide *big.Int
	// odd is the sum of what is not finite.
	odd float64
}

// Add adds f.
func (t *Total) Add(f float64) {
	if f-f != 0 {
		t.odd += f
		return
	}
	n := numberOf(f)
	if t.wide == nil {
		if sum, ok := t.sum.plus(n); ok {
			t.sum = sum
			return
		}
		t.wide = t.sum.signed()
	}
	if n.isZero() {
		return
	}
	if n.exponent < t.sum.exponent {
		t.wide.Mul(t.wide, power(t.sum.exponent-n.exponent))
		t.sum.exponent = n.exponent
	}
	more := n.signed()
	t.wide.Add(t.wide, more.Mul(more, power(n.exponent-t.sum.exponent)))
}

// Float returns the double nearest to the sum.
func (t *Total) Float() float64 {
	switch {
	case t.odd != 0: // NB: NaN is not 0
		return t.odd
	case t.wide == nil:
		return t.sum.float()
	}
	text := strconv.AppendInt(append(t.wide.Append(nil, 10), 'e'), int64(t.sum.exponent), 10)
	f, _ := strconv.ParseFloat(string(text), 64) // beyond the range: infinite, which is the nearest
	return f
}

func (n number) signed() *big.Int {
	c := n.whole()
	if n.negative {
		c.Neg(c)
	}
	return c
}

// power returns 10^n, up to what lies between the largest and the smallest double.
func power(n int) *big.Int {
	few := new(big.Int).SetUint64(powers[n%19])
	return few.Mul(few, tower()[n/19])
}

// tower are the powers of 10^19.
var tower = sync.OnceValue(func() (t [34]*big.Int) {
	t[0] = big.NewInt(1)
	step := new(big.Int).SetUint64(powers[19])
	for i := 1; i < len(t); i++ {
		t[i] = new(big.Int).Mul(t[i-1], step)
	}
	return t
})
