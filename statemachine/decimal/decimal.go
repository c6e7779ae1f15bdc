package decimal

import (
	"math"
	"math/big"
	"math/bits"
)

// Add returns a + b.
func Add(a, b float64) float64 {
	if !ordinary(a, b) {
		return a + b
	}
	x, y := numberOf(a), numberOf(b)
	if sum, ok := x.plus(y); ok {
		return sum.float()
	}
	if c, d, exponent, ok := aligned(x, y); ok && c.Add(c, d).CmpAbs(tooWide) < 0 {
		return read(c.Append(nil, 10), exponent)
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
	high, low := bits.Mul64(x.low, y.low)
	if high == 0 {
		return number{x.negative != y.negative, low, x.exponent + y.exponent}.float()
	}
	c := new(big.Int).SetUint64(high)
	c.Lsh(c, 64).Or(c, new(big.Int).SetUint64(low))
	var room [64]byte
	return math.Copysign(read(c.Append(room[:0], 10), x.exponent+y.exponent), a*b)
}

// Div returns a / b. The quotient is rounded to 17 digits, half to even, on its way.
func Div(a, b float64) float64 {
	if !ordinary(a, b) {
		return a / b
	}
	x, y := numberOf(a), numberOf(b)
	// x becomes so long that the quotient has 18 or 19 digits, which fit 64 bits.
	longer := quotientDigits + 1 + digits(y.low) - digits(x.low)
	high, low := bits.Mul64(x.low*powers[max(longer-19, 0)], powers[min(longer, 19)])
	quotient, rest := bits.Div64(high, low, y.low)
	return number{x.negative != y.negative, quotient, x.exponent - longer - y.exponent}.cut(rest != 0).float()
}

// cut rounds n, of at least 18 digits, to 17 digits, half to even. more tells that further digits follow that are not all 0.
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
	n, m := numberOf(a), numberOf(b)
	exponent := min(n.exponent, m.exponent)
	x, ok1 := n.lowered(exponent)
	y, ok2 := m.lowered(exponent)
	if ok1 && ok2 {
		x.low %= y.low
		return x.float()
	}
	c, d, exponent, ok := aligned(n, m)
	if !ok {
		return math.Mod(a, b)
	}
	return math.Copysign(read(c.Rem(c, d).Append(nil, 10), exponent), a)
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
	square := x.whole(x.exponent - longer)
	root := new(big.Int).Sqrt(square)
	exact := new(big.Int).Mul(root, root).Cmp(square) == 0
	return number{low: root.Uint64(), exponent: (x.exponent - longer) / 2}.cut(!exact).float()
}

// ordinary reports whether both numbers are finite and not zero. float64 is right about the others.
func ordinary(a, b float64) bool { return a != 0 && b != 0 && a-a == 0 && b-b == 0 }

// Total adds up numbers. The zero Total is 0.
type Total struct {
	sum number
	// wide is the coefficient in place of sum's, once that does not fit any more. It ends with some 700 digits: no two
	// doubles lie farther apart.
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
		t.wide = t.sum.whole(t.sum.exponent)
	}
	switch {
	case n.low == 0:
		return
	case n.exponent < t.sum.exponent:
		t.wide.Mul(t.wide, number{low: 1, exponent: t.sum.exponent}.whole(n.exponent))
		t.sum.exponent = n.exponent
	}
	t.wide.Add(t.wide, n.whole(t.sum.exponent))
}

// Float returns the double nearest to the sum.
func (t *Total) Float() float64 {
	switch {
	case t.odd != 0: // NB: NaN is not 0
		return t.odd
	case t.wide == nil:
		return t.sum.float()
	}
	return read(t.wide.Append(nil, 10), t.sum.exponent)
}
