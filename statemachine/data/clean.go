package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Clean checks that src is exactly one JSON value (RFC 8259) and returns it without white space outside strings. It is stricter
// than most readers, because text that two readers understand differently can be used in an attack on one of them: no duplicate
// keys (compared after unescaping), no surrogate escape without its other half, valid UTF-8, no byte order mark, nothing behind
// the value, objects and arrays at most MaxDepth deep, exponents of at most 17 digits.
//
// When src has no white space to remove but around the value, the result is a slice of src; otherwise it is new. So src belongs
// to the Value afterwards and must not be changed. Errors are *SyntaxError and wrap ErrSyntax.
func Clean(src []byte) (Value, error) { return clean(src, 0) }

// CleanArray is Clean for an array whose elements are values of their own, each of which
// may be MaxDepth deep. It returns them, but no more than most; they are slices of one Value.
func CleanArray(src []byte, most int) ([]Value, error) {
	v, err := clean(src, -1)
	if err != nil {
		return nil, err
	}
	if v.Kind() != Array {
		return nil, &SyntaxError{Offset: bytes.IndexByte(src, v[0]), Reason: "expected an array"}
	}
	elements := []Value{}
	for _, e := range v.Elements() {
		if len(elements) == most {
			break
		}
		elements = append(elements, e)
	}
	return elements, nil
}

// clean is Clean for a value that is inside so many objects and arrays.
func clean(src []byte, depth int) (Value, error) {
	s := scanner{src: src}
	start := 0
	for start < len(src) && isSpace(src[start]) {
		start++
	}
	s.copied = start
	end := s.value(start, depth)
	if end < 0 {
		return nil, s.err
	}
	for i := end; i < len(src); i++ {
		if !isSpace(src[i]) {
			s.unexpected(i, "after the value")
			return nil, s.err
		}
	}
	// NB: the capacity ends with the value, so that an append to the result cannot write into what stands after it.
	if s.out == nil {
		return Value(src[start:end:end]), nil
	}
	return append(s.out, src[s.copied:end]...), nil
}

// scanner checks a text from left to right. Its methods take the offset to go on at and return the offset behind what they have
// checked, or -1 after they have set err.
//
// Checking and compacting are one pass, and the copy is made late: as long as no white space turns up inside the value, the text
// itself is the result. From the first white space on, out follows behind; each run of text between two blanks is copied in one
// piece. Invariant: out, then src[copied:i], is the compact form of src[:i].
//
// The obvious design, to decode into a tree and to encode the tree, costs several times as much and loses the spelling of
// numbers.
type scanner struct {
	src []byte
	// out is the text so far without white space; it lags behind: src[:copied] is in it. It stays nil until white space turns up.
	out    []byte
	copied int
	// text is a copy of src, made for the first object with many keys.
	text string
	err  *SyntaxError
}

// fail sets the error. Only the first one counts: after it every method returns at once.
func (s *scanner) fail(i int, reason string) int {
	s.err = &SyntaxError{Offset: i, Reason: reason}
	return -1
}

func (s *scanner) unexpected(i int, where string) int {
	if i >= len(s.src) {
		return s.fail(len(s.src), "unexpected end "+where)
	}
	_, size := utf8.DecodeRune(s.src[i:])
	return s.fail(i, fmt.Sprintf("unexpected %s %s", Quote(string(s.src[i:i+size])), where))
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (s *scanner) space(i int) int {
	if i >= len(s.src) || s.src[i] > ' ' {
		return i
	}
	start := i
	for i < len(s.src) && isSpace(s.src[i]) {
		i++
	}
	if i > start {
		if s.out == nil {
			s.out = make([]byte, 0, len(s.src))
		}
		s.out = append(s.out, s.src[s.copied:start]...)
		s.copied = i
	}
	return i
}

func (s *scanner) value(i, depth int) int {
	if i >= len(s.src) {
		return s.unexpected(i, "instead of a value")
	}
	switch c := s.src[i]; c {
	case '"':
		end, _ := s.string(i)
		return end
	case '{':
		return s.object(i, depth+1)
	case '[':
		return s.array(i, depth+1)
	case 't':
		return s.word(i, "true")
	case 'f':
		return s.word(i, "false")
	case 'n':
		return s.word(i, "null")
	default:
		if c == '-' || isDigit(c) {
			return s.number(i)
		}
	}
	return s.unexpected(i, "instead of a value")
}

func (s *scanner) word(i int, word string) int {
	end := i + len(word)
	if end > len(s.src) || string(s.src[i:end]) != word {
		return s.fail(i, "not a value; the words of JSON are true, false and null")
	}
	return end
}

func (s *scanner) array(i, depth int) int {
	if depth > MaxDepth {
		return s.tooDeep(i)
	}
	i = s.space(i + 1)
	if i < len(s.src) && s.src[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth); i < 0 {
			return -1
		}
		i = s.space(i)
		if i >= len(s.src) {
			return s.unexpected(i, "in an array")
		}
		switch s.src[i] {
		case ',':
			i = s.space(i + 1)
		case ']':
			return i + 1
		default:
			return s.unexpected(i, "instead of , or ] in an array")
		}
	}
}

// object checks the object whose brace is at i, as array does, and that its keys differ.
func (s *scanner) object(i, depth int) int {
	if depth > MaxDepth {
		return s.tooDeep(i)
	}
	i = s.space(i + 1)
	if i < len(s.src) && s.src[i] == '}' {
		return i + 1
	}
	// A key is checked as soon as it is read, so that the error names the second of two and comes before anything behind it. NB:
	// the keys live here and not in s, because what s refers to is taken to escape with the result, which would cost an
	// allocation.
	var buf [12]key
	set := keySet{few: buf[:0]}
	for {
		if i >= len(s.src) || s.src[i] != '"' {
			return s.unexpected(i, "instead of a key in an object")
		}
		end, escaped := s.string(i)
		if end < 0 {
			return -1
		}
		var ok bool
		if set, ok = s.addKey(set, i+1, end-1, escaped); !ok {
			return -1
		}
		i = s.space(end)
		if i >= len(s.src) || s.src[i] != ':' {
			return s.unexpected(i, "instead of : behind a key")
		}
		if i = s.value(s.space(i+1), depth); i < 0 {
			return -1
		}
		i = s.space(i)
		if i < len(s.src) && s.src[i] == ',' {
			i = s.space(i + 1)
			continue
		}
		if i < len(s.src) && s.src[i] == '}' {
			return i + 1
		}
		return s.unexpected(i, "instead of , or } in an object")
	}
}

func (s *scanner) tooDeep(i int) int {
	return s.fail(i, fmt.Sprintf("nested deeper than %d", MaxDepth))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (s *scanner) digits(i int) int {
	for i < len(s.src) && isDigit(s.src[i]) {
		i++
	}
	return i
}

// number checks the number at i: an integer without needless zeros, then perhaps a fraction, then perhaps an exponent, each with
// a digit at least. What follows it is checked by anyone who expects something there.
func (s *scanner) number(i int) int {
	start := i
	if s.src[i] == '-' {
		i++
	}
	end := s.digits(i)
	if end == i {
		return s.unexpected(i, "instead of a digit")
	}
	// 007 is eight in some languages and an error in others.
	if s.src[i] == '0' && end > i+1 {
		return s.fail(start, "a number must not begin with 0")
	}
	i = end
	if i < len(s.src) && s.src[i] == '.' {
		if end = s.digits(i + 1); end == i+1 {
			return s.unexpected(end, "instead of a digit behind the point")
		}
		i = end
	}
	if i < len(s.src) && s.src[i]|0x20 == 'e' {
		return s.exponent(start, i+1)
	}
	return i
}

// exponent checks the text behind the e of a number: it is at i, and the number begins at start.
func (s *scanner) exponent(start, i int) int {
	if i < len(s.src) && (s.src[i] == '+' || s.src[i] == '-') {
		i++
	}
	end := s.digits(i)
	if end == i {
		return s.unexpected(i, "instead of a digit in an exponent")
	}
	for i < end && s.src[i] == '0' {
		i++
	}
	if end-i > maxExponentDigits {
		return s.fail(start, "the exponent is too large")
	}
	return end
}

func (s *scanner) string(i int) (end int, escaped bool) {
	src, start := s.src, i+1
	// Eight bytes at a time are looked through for what ends the run: a quote, a backslash or a control character. UTF-8 is
	// checked once for the whole string; none of the three can be a part of a longer character.
	var seen uint64 // all bytes, ored: tells whether one is not ASCII
	for i = start; i < len(src); {
		if i+8 <= len(src) {
			w := binary.LittleEndian.Uint64(src[i:])
			seen |= w
			found := hasByte(w, '"') | hasByte(w, '\\') | hasControl(w)
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8
		}
		switch c := src[i]; {
		case c == '"':
			if seen&highBits != 0 && !utf8.Valid(src[start:i]) {
				return s.badUTF8(start), false
			}
			return i + 1, escaped
		case c == '\\':
			escaped = true
			if i = s.escape(i); i < 0 {
				return -1, false
			}
		case c < ' ':
			return s.fail(i, fmt.Sprintf("the control character 0x%02x in a string must be escaped", c)), false
		default:
			seen |= uint64(c)
			i++
		}
	}
	return s.unexpected(len(src), "in a string"), false
}

// badUTF8 finds the first byte from i on that is not UTF-8; there is one.
func (s *scanner) badUTF8(i int) int {
	for {
		r, size := utf8.DecodeRune(s.src[i:])
		if r == utf8.RuneError && size <= 1 {
			return s.fail(i, "invalid UTF-8")
		}
		i += size
	}
}

// escape checks the escape whose backslash is at i; a surrogate pair is one.
func (s *scanner) escape(i int) int {
	if i+1 >= len(s.src) {
		return s.unexpected(i+1, "in a string")
	}
	switch s.src[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
	default:
		return s.fail(i, "unknown escape in a string")
	}
	r := hex4(s.src, i+2)
	switch {
	case r < 0:
		return s.fail(i, `\u without four hexadecimal digits`)
	case !utf16.IsSurrogate(r):
		return i + 6
	}
	if _, end := joinSurrogates(r, s.src, i); end == i+12 {
		return end
	}
	return s.fail(i, "half of a surrogate pair")
}
