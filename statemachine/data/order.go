package data

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// Order compares any two values: negative when a comes first, 0 when they are Equal. Kinds come in this order: absent, null,
// number, string, object, array, bool. Numbers are ordered by value and strings by code point; false comes before true. Objects
// are compared member by member: first the kinds of the two members' values, then the keys, then the values; arrays element by
// element. What ends first comes first.
func Order(a, b Value) int {
	if bytes.Equal(a, b) {
		return 0
	}
	c := comparison{a: a, b: b}
	return c.order(0)
}

// Equal reports whether two values mean the same: numbers by value, strings decoded, arrays element by element, objects member by
// member in the same order. An absent value equals only an absent one.
func Equal(a, b Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	kind := a.Kind()
	if kind != b.Kind() {
		return false
	}
	switch kind {
	case Number:
		return Compare(a, b) == 0
	case String:
		return len(a) >= 2 && len(b) >= 2 && equalRaw(a[1:len(a)-1], b[1:len(b)-1])
	case Array, Object:
		return Order(a, b) == 0
	}
	return false // null, true and false are spelled in one way only
}

// AppendOrdered appends an encoding of v to dst that is compared byte by byte: bytes.Compare of two encodings is Order of the two
// values, and no encoding is the beginning of another one. The absent value has one as well.
//
// Two more things may be relied upon: the first byte is the same for all values of a kind, different for other kinds and never
// 0xFF; and the encoding of a string without its last byte is the beginning of the encodings of all strings that begin with it,
// and of no other value's.
func AppendOrdered(dst []byte, v Value) []byte {
	e := ordering{dst: dst, end: math.MaxInt}
	e.value(v, 0, 0)
	return e.dst
}

// AppendOrderedPrefix appends the first n bytes of what AppendOrdered appends, or all of it when there are not more.
func AppendOrderedPrefix(dst []byte, v Value, n int) []byte {
	e := ordering{dst: dst, end: len(dst) + n}
	e.value(v, 0, 0)
	return e.dst[:min(len(e.dst), e.end)]
}

// Both the comparison and the encoding read their texts once, from left to
// right, however deep they are nested. How a value is encoded:
//
//	absent, null  mark
//	bool          mark, 0 or 1
//	number        mark, sign, scale, digits; see ordering.number
//	string        mark, text in UTF-8, 0; the characters 0 and 1 are 1 1 and 1 2
//	array         mark, each element, 0
//	object        mark, each member (mark of the value, key as a string is, the
//	              value without its mark), 0

// marks begin the encodings. What ends an array or object comes before all.
var marks = [...]byte{Absent: 0x10, Null: 0x20, Number: 0x30, String: 0x40, Object: 0x50, Array: 0x60, Bool: 0x70}

const endMark = 0

func kindAt(src []byte, i int) Kind { return Value(src[i:]).Kind() }

// comparison walks through two texts side by side. Both are read once, however deep they are nested.
type comparison struct {
	a, b []byte
	i, j int
}

// order compares the values that begin at i and j, and moves behind them when they are equal.
func (c *comparison) order(depth int) int {
	kind, other := kindAt(c.a, c.i), kindAt(c.b, c.j)
	if kind != other {
		return int(marks[kind]) - int(marks[other])
	}
	if kind == Array || kind == Object {
		if depth == MaxDepth { // not a Value
			c.i, c.j = len(c.a), len(c.b)
			return 0
		}
		return c.orderInside(kind, depth+1)
	}
	endA, endB := skip(c.a, c.i), skip(c.b, c.j)
	a, b := Value(c.a[c.i:endA]), Value(c.b[c.j:endB])
	c.i, c.j = endA, endB
	switch kind {
	case Number:
		return Compare(a, b)
	case String:
		return CompareText(a, b)
	case Bool:
		return bytes.Compare(a, b) // false, true
	}
	return 0
}

func (c *comparison) orderInside(kind Kind, depth int) int {
	c.i, c.j = c.i+1, c.j+1
	for {
		var moreA, moreB bool
		c.i, moreA = nextIn(c.a, c.i)
		c.j, moreB = nextIn(c.b, c.j)
		switch {
		case !moreA && !moreB:
			return 0
		case !moreA:
			return -1
		case !moreB:
			return 1
		}
		if kind == Object {
			if o := c.orderKeys(); o != 0 {
				return o
			}
		}
		if o := c.order(depth); o != 0 {
			return o
		}
	}
}

// orderKeys compares two members but for their values, and moves to those.
func (c *comparison) orderKeys() int {
	var a, b []byte
	a, c.i = keyAt(c.a, c.i)
	b, c.j = keyAt(c.b, c.j)
	if kind, other := kindAt(c.a, c.i), kindAt(c.b, c.j); kind != other {
		return int(marks[kind]) - int(marks[other])
	}
	return compareRaw(a, b)
}

// nextIn returns where the next element or member begins in an array or object
// in which src[i] is the next character, or the offset behind it and false.
func nextIn(src []byte, i int) (next int, ok bool) {
	if i < len(src) && src[i] == ',' {
		i++
	}
	if i >= len(src) {
		return i, false
	}
	if src[i] == ']' || src[i] == '}' {
		return i + 1, false
	}
	return i, true
}

func keyAt(src []byte, i int) (raw []byte, value int) {
	end := skip(src, i)
	if end+1 >= len(src) || src[i] != '"' { // not a Value
		return nil, len(src)
	}
	return src[i+1 : end-1], end + 1
}

type ordering struct {
	dst []byte
	// end is the length of dst at which the rest does not matter any more.
	end int
}

func (e *ordering) full() bool { return len(e.dst) >= e.end }

// value appends the value that begins at src[i], and returns the offset behind it.
func (e *ordering) value(src []byte, i, depth int) int {
	e.dst = append(e.dst, marks[kindAt(src, i)])
	return e.body(src, i, depth)
}

func (e *ordering) body(src []byte, i, depth int) int {
	if e.full() {
		return len(src)
	}
	kind := kindAt(src, i)
	if kind == Array || kind == Object {
		if depth == MaxDepth { // not a Value
			return len(src)
		}
		return e.inside(src, i+1, kind, depth+1)
	}
	end := skip(src, i)
	switch kind {
	case Bool:
		e.dst = append(e.dst, oneIf(src[i] == 't'))
	case Number:
		e.number(src[i:end])
	case String:
		if end-1 > i {
			e.text(src[i+1 : end-1])
		}
	}
	return end
}

func oneIf(is bool) byte {
	if is {
		return 1
	}
	return 0
}

func (e *ordering) inside(src []byte, i int, kind Kind, depth int) int {
	for {
		var more bool
		i, more = nextIn(src, i)
		if !more {
			e.dst = append(e.dst, endMark)
			return i
		}
		if e.full() {
			return len(src)
		}
		if kind == Array {
			i = e.value(src, i, depth)
			continue
		}
		var key []byte
		key, i = keyAt(src, i)
		e.dst = append(e.dst, marks[kindAt(src, i)])
		e.text(key)
		i = e.body(src, i, depth)
	}
}

func (e *ordering) text(raw []byte) {
	for len(raw) > 0 && !e.full() {
		plain := bytes.IndexByte(raw, '\\')
		if plain < 0 {
			plain = len(raw)
		}
		e.dst = append(e.dst, raw[:min(plain, e.end-len(e.dst))]...)
		raw = raw[plain:]
		if len(raw) == 0 {
			break
		}
		r, next := unescape(raw, 0)
		raw = raw[next:]
		if r <= 1 {
			e.dst = append(e.dst, 1, byte(r)+1)
		} else {
			e.dst = utf8.AppendRune(e.dst, r)
		}
	}
	e.dst = append(e.dst, endMark)
}

// The sign of an encoded number.
const (
	negativeSign = 1 + iota
	zeroSign
	positiveSign
)

// scaleNear is the largest scale, positive or negative, that is encoded in one byte: the middle one plus the scale. Others have
// nine bytes, of which the first is below or above all those.
const (
	scaleNear   = 100
	scaleMiddle = 0x80
)

// number appends a number by the parts of its decimal form: a larger scale is a larger number, and with the same scale the digits
// decide, of which two go into a byte: 2n+1 for the digits n, the last byte 2n, so that what ends comes first. Of a negative
// number all bytes behind the sign are inverted.
func (e *ordering) number(literal []byte) {
	d := parseDecimal(literal)
	var invert byte
	switch d.sign() {
	case 0:
		e.dst = append(e.dst, zeroSign)
		return
	case 1:
		e.dst = append(e.dst, positiveSign)
	default:
		e.dst = append(e.dst, negativeSign)
		invert = 0xFF
	}
	start := len(e.dst)
	switch {
	case d.scale < -scaleNear:
		e.dst = binary.BigEndian.AppendUint64(append(e.dst, 0x00), uint64(d.scale)^(1<<63))
	case d.scale > scaleNear:
		e.dst = binary.BigEndian.AppendUint64(append(e.dst, 0xFF), uint64(d.scale))
	default:
		e.dst = append(e.dst, byte(scaleMiddle+d.scale))
	}
	for i, count := 0, d.count(); i < count && !e.full(); i += 2 {
		pair := 10 * (d.digit(i) - '0')
		if i+1 < count {
			pair += d.digit(i+1) - '0'
		}
		e.dst = append(e.dst, 2*pair+oneIf(i+2 < count))
	}
	if invert != 0 {
		for i := start; i < len(e.dst); i++ {
			e.dst[i] ^= invert
		}
	}
}
