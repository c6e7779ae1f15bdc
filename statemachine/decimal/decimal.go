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
