package data

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

// MaxDepth is how deep objects and arrays may be nested: an empty array has depth 1, a scalar 0.
const MaxDepth = 64

// Value is one JSON value: valid, and without white space outside strings. The nil or empty Value is absent, which is not the
// same as null. The bytes belong to everybody who holds the Value and must not be changed.
type Value []byte

// Kind tells what a Value is.
type Kind uint8

// The kinds of JSON, and Absent for the empty Value.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String returns the word that messages use.
func (k Kind) String() string {
	names := [...]string{"absent", "null", "bool", "number", "string", "array", "object"}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Kind looks at the first byte only.
func (v Value) Kind() Kind {
	if len(v) == 0 {
		return Absent
	}
	switch v[0] {
	case 'n':
		return Null
	case 't', 'f':
		return Bool
	case '"':
		return String
	case '[':
		return Array
	case '{':
		return Object
	}
	return Number
}

// String returns the JSON text, for messages and tests.
func (v Value) String() string { return string(v) }

// MarshalJSON returns the text itself, and null for an absent value. Without it encoding/json would write the bytes in base64.
func (v Value) MarshalJSON() ([]byte, error) {
	if len(v) == 0 {
		return []byte("null"), nil
	}
	return v, nil
}

// UnmarshalJSON keeps the text itself; null is the absent value.
func (v *Value) UnmarshalJSON(text []byte) error {
	if *v = nil; string(text) != "null" {
		*v = append(*v, text...)
	}
	return nil
}

// Members yields the members of an object in their order, keys unescaped; for anything else nothing. The values are slices of v.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for m := membersOf(v); m.next(); {
			if !yield(decode(m.key), m.value) {
				return
			}
		}
	}
}

// Match yields the members of an object in their order, each with the place of its key among keys, -1 for another key;
// for anything else nothing. The values are slices of v. It allocates only where a key has escapes.
func (v Value) Match(keys []string) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for m := membersOf(v); m.next(); {
			if !yield(slices.IndexFunc(keys, func(key string) bool { return textIs(m.key, key) }), m.value) {
				return
			}
		}
	}
}

// Elements yields the elements of an array with their positions; for anything else nothing. The values are slices of v.
func (v Value) Elements() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		n := 0
		for e := elementsOf(v); e.next(); n++ {
			if !yield(n, e.value) {
				return
			}
		}
	}
}

// Lookup returns the member of an object with the given key, and false when v is not an object or has no such member. The value is a
// slice of v. It reads what stands before the member, and allocates only when a key with escapes has to be decoded.
func (v Value) Lookup(key string) (Value, bool) {
	for m := membersOf(v); m.next(); {
		if textIs(m.key, key) {
			return m.value, true
		}
	}
	return nil, false
}

// Index returns the element of an array at position i, and false when v is not an array or has no such element. The value is a slice
// of v. It reads what stands before the element: to visit all of them use Elements.
func (v Value) Index(i int) (Value, bool) {
	for e := elementsOf(v); e.next(); i-- {
		if i == 0 {
			return e.value, true
		}
	}
	return nil, false
}

// Depth returns how deep v is nested: 0 for a scalar, 1 for an array of scalars, at most MaxDepth.
func (v Value) Depth() int {
	if v.Kind() != Array && v.Kind() != Object {
		return 0
	}
	_, depth := skipNested(v, 0)
	return depth
}

type members struct {
	src []byte
	at  int
	// key is the present member's key as written, without its quotes.
	key []byte
	// value is the present member's value.
	value Value
}

// membersOf returns a walk that stands in front of the first member. Of what is not an object it has none.
func membersOf(v Value) members {
	if len(v) == 0 || v[0] != '{' {
		return members{}
	}
	return members{src: v, at: 1}
}

func (m *members) next() bool {
	if !m.nextKey() {
		return false
	}
	end := skip(m.src, m.at)
	m.value = Value(m.src[m.at:end:end])
	m.at = end
	return true
}

// nextKey moves to the next member and stops in front of its value, which begins at m.at.
func (m *members) nextKey() bool {
	i := m.at
	if i < len(m.src) && m.src[i] == ',' {
		i++
	}
	if i >= len(m.src) || m.src[i] != '"' {
		return false
	}
	end := skipText(m.src, i)
	if end+1 >= len(m.src) {
		return false
	}
	m.key = m.src[i+1 : end-1]
	m.at = end + 1 // behind the colon
	return true
}

type elements struct {
	src []byte
	at  int
	// value is the present element.
	value Value
}

// elementsOf returns a walk that stands in front of the first element. Of what is not an array it has none.
func elementsOf(v Value) elements {
	if len(v) == 0 || v[0] != '[' {
		return elements{}
	}
	return elements{src: v, at: 1}
}

func (e *elements) next() bool {
	i := e.at
	if i < len(e.src) && e.src[i] == ',' {
		i++
	}
	if i >= len(e.src) || e.src[i] == ']' {
		return false
	}
	end := skip(e.src, i)
	if end == i { // not a Value
		return false
	}
	e.value = Value(e.src[i:end:end])
	e.at = end
	return true
}

// skip returns the offset behind the value that begins at src[i]. It trusts
// the text; whatever the text is, the result is between i and len(src).
func skip(src []byte, i int) int {
	if i >= len(src) {
		return len(src)
	}
	switch src[i] {
	case '"':
		return skipText(src, i)
	case '{', '[':
		end, _ := skipNested(src, i)
		return end
	}
	for ; i < len(src); i++ {
		if c := src[i]; c == ',' || c == ']' || c == '}' {
			break
		}
	}
	return i
}

func skipNested(src []byte, i int) (end, deepest int) {
	// NB: a loop and not a recursion, so that the depth of bytes that are no Value cannot exhaust the stack.
	depth := 0
	for i < len(src) {
		switch src[i] {
		case '"':
			i = skipText(src, i)
			continue
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, deepest
			}
		}
		i++
	}
	return len(src), deepest
}

func skipText(src []byte, i int) int {
	i++
	for i < len(src) {
		if i+8 <= len(src) {
			w := binary.LittleEndian.Uint64(src[i:])
			found := hasByte(w, '"') | hasByte(w, '\\')
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8
		}
		switch src[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
		i++
	}
	return len(src)
}

const (
	eachByte = 0x0101010101010101 // times b: a word of eight b
	highBits = 0x8080808080808080
)

// hasByte returns a word whose lowest set bit is in the first byte of w that equals b, and 0 when there is none. b is ASCII. NB:
// bits above the lowest may be wrong, a borrow sets them.
func hasByte(w uint64, b byte) uint64 {
	w ^= eachByte * uint64(b)
	return (w - eachByte) & ^w & highBits
}

func hasControl(w uint64) uint64 {
	return (w - eachByte*0x20) & ^w & highBits
}
