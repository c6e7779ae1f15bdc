package decimal

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// quotientDigits is the precision of what has no end: quotients and roots.
const quotientDigits = 17

// powers are the powers of ten that fit 64 bits.
var powers = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// exactPowers are the powers of ten that a double holds exactly.
var exactPowers = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// number is ±(high·2⁶⁴ + low) · 10^exponent.
type number struct {
	negative  bool
	high, low uint64
	exponent  int
}

// numberOf returns the shortest decimal that is read as f, which is finite. Its coefficient has at most 17 digits.
func numberOf(f float64) number {
	n := number{negative: math.Signbit(f)}
	size := math.Abs(f)
	// The usual amount has few places. A decimal of at most 15 digits that is read
	// as f is the shortest one, since no other of that length is.
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
	if n.high == 0 && n.low <= 1<<53 && -len(exactPowers) < n.exponent && n.exponent < len(exactPowers) {
		// Both are exact, so that one operation rounds once.
		f := float64(n.low)
		if n.exponent < 0 {
			f /= exactPowers[-n.exponent]
		} else {
			f *= exactPowers[n.exponent]
		}
		return withSign(f, n.negative)
	}
	var room [64]byte
	text := room[:0]
	if n.high == 0 {
		text = strconv.AppendUint(text, n.low, 10)
	} else {
		head, tail := bits.Div64(n.high, n.low, powers[19])
		text = strconv.AppendUint(text, head, 10)
		for place := 18; place >= 0; place-- {
			text = append(text, byte('0'+tail/powers[place]%10))
		}
	}
	text = append(text, 'e')
	text = strconv.AppendInt(text, int64(n.exponent), 10)
	f, _ := strconv.ParseFloat(string(text), 64) // beyond the range: infinite, which is the nearest
	return withSign(f, n.negative)
}

func withSign(f float64, negative bool) float64 {
	if negative {
		return -f
	}
	return f
}

// digits returns how many decimal digits n has, for one of at most 64 bits.
func digits(n uint64) int {
	count := 1
	for count < len(powers) && n >= powers[count] {
		count++
	}
	return count
}

// lowered returns n with a smaller exponent, and false when it has then more than 37 digits.
func (n number) lowered(exponent int) (number, bool) {
	for n.exponent > exponent {
		step := min(n.exponent-exponent, 19)
		high, low := bits.Mul64(n.low, powers[step])
		over, more := bits.Mul64(n.high, powers[step])
		high, carry := bits.Add64(high, more, 0)
		if over != 0 || carry != 0 || high >= tooHigh {
			return n, false
		}
		n.high, n.low = high, low
		n.exponent -= step
	}
	return n, true
}

// tooHigh is the upper half of 10^37; what has less above has at most 37 digits. The
// sum of two such numbers still fits 128 bits, and float can split it after 19 digits.
var tooHigh = func() uint64 {
	high, _ := bits.Mul64(powers[19], powers[18])
	return high
}()

// plus returns n + m, and false when they lie so far apart that the sum would have more than 37 digits.
func (n number) plus(m number) (number, bool) {
	switch {
	case n.isZero():
		return m, true
	case m.isZero():
		return n, true
	}
	exponent := min(n.exponent, m.exponent)
	n, ok := n.lowered(exponent)
	if !ok {
		return n, false
	}
	if m, ok = m.lowered(exponent); !ok {
		return n, false
	}
	if n.negative == m.negative {
		low, carry := bits.Add64(n.low, m.low, 0)
		n.high, _ = bits.Add64(n.high, m.high, carry)
		n.low = low
		return n, n.high < tooHigh
	}
	if n.high < m.high || n.high == m.high && n.low < m.low {
		n, m = m, n
	}
	low, borrow := bits.Sub64(n.low, m.low, 0)
	n.high, _ = bits.Sub64(n.high, m.high, borrow)
	n.low = low
	n.negative = n.negative && !n.isZero() // as float64 has it: -0.3 + 0.3 is 0
	return n, true
}

// isZero reports whether n is 0.
func (n number) isZero() bool { return n.high == 0 && n.low == 0 }

// whole returns the coefficient without its sign.
func (n number) whole() *big.Int {
	high := new(big.Int).SetUint64(n.high)
	return high.Lsh(high, 64).Or(high, new(big.Int).SetUint64(n.low))
}
