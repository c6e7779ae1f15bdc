package data

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
)

// maxExponentDigits is how many digits, leading zeros apart, the exponent of a number may have. It makes every exponent an int64
// with room to spare; no other reader of JSON holds larger ones either.
const maxExponentDigits = 17

// Int64 returns the number that v writes, and false when v is not a number,
// not integral or does not fit. 1.0 and 1e2 are integral.
func (v Value) Int64() (int64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	if n, ok := shortInt(v); ok {
		return n, true
	}
	d := parseDecimal(v)
	if d.count() > 0 && d.scale < int64(d.count()) {
		return 0, false
	}
	return d.whole()
}

// Truncate returns the number that v writes without its fraction, and false when v is not a number or that does not fit.
func (v Value) Truncate() (int64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	if n, ok := shortInt(v); ok {
		return n, true
	}
	d := parseDecimal(v)
	return d.whole()
}

// shortInt reads the usual case: up to 18 digits and nothing else.
func shortInt(v []byte) (int64, bool) {
	digits := v
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(v) {
		n = -n
	}
	return n, true
}

// Float64 returns the nearest float64, ±Inf beyond its range, and 0 when v is not a number.
func (v Value) Float64() float64 {
	if v.Kind() != Number {
		return 0
	}
	f, _ := strconv.ParseFloat(string(v), 64) // the error is about the range
	return f
}

// Compare orders two numbers by their exact values, of any size, in time linear in their text: negative when a is less. For
// anything but two numbers it returns 0.
func Compare(a, b Value) int {
	if a.Kind() != Number || b.Kind() != Number {
		return 0
	}
	if x, ok := shortInt(a); ok {
		if y, ok := shortInt(b); ok {
			return cmp.Compare(x, y)
		}
	}
	x, y := parseDecimal(a), parseDecimal(b)
	if x.sign() != y.sign() {
		return x.sign() - y.sign()
	}
	return x.sign() * compareSize(x, y)
}

// decimal is a number's literal taken apart. Its size is 0.d₁d₂…dₙ × 10^scale, where d₁…dₙ are the digits of head and tail, and
// neither d₁ nor dₙ is 0; so every value has one form. Zero has no digits.
type decimal struct {
	negative   bool
	head, tail []byte // slices of the literal, around the point
	scale      int64
}

// parseDecimal takes a literal apart in one pass, without allocating. The steps follow the form above: the exponent, the point,
// then the zeros at both ends, of which those in front move the scale.
func parseDecimal(v []byte) decimal {
	var d decimal
	if len(v) > 0 && v[0] == '-' {
		d.negative, v = true, v[1:]
	}
	if e := bytes.IndexAny(v, "eE"); e >= 0 {
		d.scale = parseExponent(v[e+1:])
		v = v[:e]
	}
	if point := bytes.IndexByte(v, '.'); point >= 0 {
		d.head, d.tail = v[:point], v[point+1:]
	} else {
		d.head = v
	}
	d.head = bytes.TrimLeft(d.head, "0")
	d.scale += int64(len(d.head))
	if len(d.head) == 0 {
		zeros := len(d.tail)
		d.tail = bytes.TrimLeft(d.tail, "0")
		d.scale -= int64(zeros - len(d.tail))
	}
	d.tail = bytes.TrimRight(d.tail, "0")
	if len(d.tail) == 0 {
		d.head = bytes.TrimRight(d.head, "0")
	}
	return d
}

// parseExponent reads at most maxExponentDigits digits, so it cannot overflow.
func parseExponent(v []byte) int64 {
	negative := len(v) > 0 && v[0] == '-'
	v = bytes.TrimLeft(v, "+-0")
	var n int64
	for _, c := range v[:min(len(v), maxExponentDigits)] {
		n = n*10 + int64(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

func (d *decimal) count() int { return len(d.head) + len(d.tail) }

func (d *decimal) digit(i int) byte {
	if i < len(d.head) {
		return d.head[i]
	}
	return d.tail[i-len(d.head)]
}

func (d *decimal) whole() (int64, bool) {
	if d.count() == 0 || d.scale <= 0 {
		return 0, true
	}
	if d.scale > 19 {
		return 0, false
	}
	var abs uint64 // 19 digits fit
	for i := range int(d.scale) {
		abs *= 10
		if i < d.count() {
			abs += uint64(d.digit(i) - '0')
		}
	}
	if d.negative {
		return -int64(abs), abs <= -math.MinInt64
	}
	return int64(abs), abs <= math.MaxInt64
}

// sign returns -1, 0 or 1. NB: -0 is zero.
func (d *decimal) sign() int {
	switch {
	case d.count() == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func compareSize(x, y decimal) int {
	if c := cmp.Compare(x.scale, y.scale); c != 0 {
		return c
	}
	n := min(x.count(), y.count())
	for i := range n {
		if c := int(x.digit(i)) - int(y.digit(i)); c != 0 {
			return c
		}
	}
	return cmp.Compare(x.count(), y.count())
}
