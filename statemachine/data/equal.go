package data

import "bytes"

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
		c := comparison{a: a, b: b}
		return c.same()
	}
	return false // null, true and false are spelled in one way only
}

// comparison walks through two texts side by side. Both are read once, however deep they are nested.
type comparison struct {
	a, b []byte
	i, j int
}

// same compares the values that begin at i and j, and moves behind them when they are equal.
func (c *comparison) same() bool {
	depth := 0
	for {
		if c.i >= len(c.a) || c.j >= len(c.b) {
			return false
		}
		x, y := c.a[c.i], c.b[c.j]
		switch {
		case isStructure(x) || isStructure(y):
			if x != y {
				return false
			}
			c.i, c.j = c.i+1, c.j+1
			switch x {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
		case !c.sameScalar():
			return false
		}
		if depth == 0 {
			return true
		}
	}
}

// sameScalar compares two scalars, or two keys.
func (c *comparison) sameScalar() bool {
	endA, endB := skip(c.a, c.i), skip(c.b, c.j)
	a, b := Value(c.a[c.i:endA]), Value(c.b[c.j:endB])
	c.i, c.j = endA, endB
	return Equal(a, b)
}

// isStructure tells the characters between values and keys from the first characters of them.
func isStructure(c byte) bool {
	switch c {
	case '{', '}', '[', ']', ',', ':':
		return true
	}
	return false
}
