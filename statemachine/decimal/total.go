package decimal

import (
	"math/big"
	"strconv"
	"sync"
)

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
