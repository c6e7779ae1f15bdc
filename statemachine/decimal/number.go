package decimal

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// quotientDigits is the precision of what has no end: quotients and roots.
const quotientDigits = 17

var powers = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

var exactPowers = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// number is ±low · 10^exponent. What needs more than 64 bits is a big.Int.
type number struct {
	negative bool
	low      uint64
	exponent int
}

// numberOf returns the shortest decimal that is read as f, which is finite. Its coefficient has at most 17 digits.
func numberOf(f float64) number {
	n := number{negative: math.Signbit(f)}
	size := math.Abs(f)
	// The usual amount has few places. A decimal of at most 15 digits that is read as f is the shortest one, since no other
	// of that length is.
	for places, power := range exactPowers[:5] {
		scaled := size*power + 0.5
		if scaled >= 1e15 {
			break
		}
		if c := int64(scaled); float64(c)/power == size {
			n.low, n.exponent = uint64(c), -places
			return n
		}
	}
	var room [32]byte
	text := strconv.AppendFloat(room[:0], size, 'e', -1, 64) // d.ddde±dd
	i := 0
	for ; text[i] != 'e'; i++ {
		if text[i] != '.' {
			n.low = 10*n.low + uint64(text[i]-'0')
		}
	}
	n.exponent = -max(i-len("d."), 0)
	negative := text[i+1] == '-'
	exponent := 0
	for _, c := range text[i+2:] {
		exponent = 10*exponent + int(c-'0')
	}
	if negative {
		exponent = -exponent
	}
	n.exponent += exponent
	return n
}

func (n number) float() float64 {
	f := 0.0
	if n.low <= 1<<53 && -len(exactPowers) < n.exponent && n.exponent < len(exactPowers) {
		// Both are exact, so that one operation rounds once.
		if f = float64(n.low); n.exponent < 0 {
			f /= exactPowers[-n.exponent]
		} else {
			f *= exactPowers[n.exponent]
		}
	} else {
		var room [32]byte
		f = read(strconv.AppendUint(room[:0], n.low, 10), n.exponent)
	}
	if n.negative {
		return -f
	}
	return f
}

func read(digits []byte, exponent int) float64 {
	f, _ := strconv.ParseFloat(string(strconv.AppendInt(append(digits, 'e'), int64(exponent), 10)), 64) // beyond the range: infinite, which is the nearest
	return f
}

func digits(n uint64) int {
	count := 1
	for count < len(powers) && n >= powers[count] {
		count++
	}
	return count
}

// lowered returns n with a smaller exponent, and false when it does not fit.
func (n number) lowered(exponent int) (number, bool) {
	if n.exponent-exponent >= len(powers) {
		return n, false
	}
	high, low := bits.Mul64(n.low, powers[n.exponent-exponent])
	return number{n.negative, low, exponent}, high == 0
}

// plus returns n + m, and false when it does not fit.
func (n number) plus(m number) (number, bool) {
	switch {
	case n.low == 0:
		return m, true
	case m.low == 0:
		return n, true
	}
	exponent := min(n.exponent, m.exponent)
	n, ok1 := n.lowered(exponent)
	m, ok2 := m.lowered(exponent)
	if !ok1 || !ok2 {
		return n, false
	}
	if n.negative == m.negative {
		low, carry := bits.Add64(n.low, m.low, 0)
		n.low = low
		return n, carry == 0
	}
	if n.low < m.low {
		n, m = m, n
	}
	n.low -= m.low
	n.negative = n.negative && n.low > 0 // as float64 has it: -0.3 + 0.3 is 0
	return n, true
}

func (n number) whole(exponent int) *big.Int {
	c := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.exponent-exponent)), nil)
	if c.Mul(c, new(big.Int).SetUint64(n.low)); n.negative {
		c.Neg(c)
	}
	return c
}

// tooWide is 10^37 without its lower 64 bits; what is less has at most 37 digits.
var tooWide = func() *big.Int {
	c := new(big.Int).Exp(big.NewInt(10), big.NewInt(37), nil)
	return c.Lsh(c.Rsh(c, 64), 64)
}()

// aligned returns the coefficients of n and m by one exponent, and false when they lie so far apart that one has more than
// 37 digits.
func aligned(n, m number) (a, b *big.Int, exponent int, ok bool) {
	exponent = min(n.exponent, m.exponent)
	if max(n.exponent, m.exponent)-exponent > 37 {
		return nil, nil, 0, false
	}
	a, b = n.whole(exponent), m.whole(exponent)
	return a, b, exponent, a.CmpAbs(tooWide) < 0 && b.CmpAbs(tooWide) < 0
}
