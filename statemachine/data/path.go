package data

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSegments is how many segments a Path may have.
const maxSegments = 32

// Path leads from a value down to a part of it. A segment is a key, or the position of an array's element in decimal digits.
type Path []string

// ParsePath splits "svcPublic.items.0.price" at its dots. A key that has a dot itself cannot be named. Errors wrap ErrPath.
func ParsePath(s string) (Path, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%w: invalid UTF-8", ErrPath)
	}
	p := Path(strings.Split(s, "."))
	if len(p) > maxSegments {
		return nil, fmt.Errorf("%w: more than %d segments", ErrPath, maxSegments)
	}
	if slices.Contains(p, "") {
		return nil, fmt.Errorf("%w: an empty segment in %s", ErrPath, Quote(s))
	}
	return p, nil
}

// String returns the path as ParsePath reads it.
func (p Path) String() string { return strings.Join(p, ".") }

// Set returns target with v at path, as new storage. Missing objects on the way are made, an absent target is one. A position in
// an array must exist, or be the array's length, which appends. A scalar on the way, null included, is not replaced. An absent v
// is stored as null. Errors wrap ErrPath, or ErrDepth when the result would be nested too deep.
func Set(target Value, path Path, v Value) (Value, error) {
	if len(v) == 0 {
		v = Value("null")
	}
	if len(path)+v.Depth() > MaxDepth {
		return nil, fmt.Errorf("%w: %s", ErrDepth, Quote(path.String()))
	}
	if len(target) == 0 {
		target = Value("{}")
	}
	w := way{src: target}
	for n, segment := range path {
		found, why := w.step(segment)
		if why != "" {
			at := Path(path[:n+1]).String()
			return nil, fmt.Errorf("%w: %s: %s", ErrPath, Quote(at), why)
		}
		if !found {
			return w.insert(path[n:], v), nil
		}
	}
	end := skip(target, w.at)
	return splice(target, w.at, end, v), nil
}

func splice(src []byte, start, end int, parts ...[]byte) Value {
	size := len(src) - (end - start)
	for _, p := range parts {
		size += len(p)
	}
	out := append(make([]byte, 0, size), src[:start]...)
	for _, p := range parts {
		out = append(out, p...)
	}
	return append(out, src[end:]...)
}

// way is a walk from a value down along a path. It reads the text once.
type way struct {
	src []byte
	// at is where the present value begins; after a step that found nothing,
	// where the new member or element goes: in front of the closing bracket.
	at int
	// empty says, after such a step, that the object or array has nothing yet.
	empty bool
}

// step goes down to the part of the present value that segment names. It reports false when it is not there but may be put at
// w.at, and says why when it cannot be.
func (w *way) step(segment string) (found bool, why string) {
	open := byte(0)
	if w.at < len(w.src) {
		open = w.src[w.at]
	}
	switch open {
	case '{':
		return w.member(segment), ""
	case '[':
		return w.element(segment)
	}
	return false, fmt.Sprintf("the value above is %s, not an object or array", Value(w.src[w.at:]).Kind())
}

// member is step for an object. A key that is missing may always be added.
func (w *way) member(key string) bool {
	m := members{src: w.src, at: w.at + 1}
	start := m.at
	for m.nextKey() {
		if textIs(m.key, key) {
			w.at = m.at
			return true
		}
		m.at = skip(m.src, m.at)
	}
	w.at, w.empty = m.at, m.at == start
	return false
}

// element is step for an array. Only the position behind its end may be added, because an array has no holes.
func (w *way) element(segment string) (found bool, why string) {
	position, ok := ParsePosition(segment)
	if !ok {
		return false, "the value above is an array, and this is not a position in it"
	}
	e := elements{src: w.src, at: w.at + 1}
	start, n := e.at, 0
	for ; e.next(); n++ {
		if n == position {
			w.at = e.at - len(e.value)
			return true, ""
		}
	}
	if position > n {
		return false, fmt.Sprintf("the array above has only %d elements", n)
	}
	w.at, w.empty = e.at, e.at == start
	return false, ""
}

// ParsePosition reads a segment that names a place in an array: decimal digits
// without needless zeros. Places that no array can have are not told apart.
func ParsePosition(s string) (position int, ok bool) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		// NB: held small, so that no number of digits overflows.
		n = min(n*10+int(s[i]-'0'), 1<<40)
	}
	return n, true
}

// insert returns the text with v at w.at, inside new objects for all of rest but its first segment.
func (w *way) insert(rest Path, v Value) Value {
	var head []byte
	if !w.empty {
		head = append(head, ',')
	}
	// In front of the closing bracket of an array stands an element, in front of
	// that of an object a member; what is new below that is always an object.
	inArray := w.at < len(w.src) && w.src[w.at] == ']'
	for n, segment := range rest {
		if n > 0 {
			head = append(head, '{')
		}
		if n > 0 || !inArray {
			head = AppendString(head, segment)
			head = append(head, ':')
		}
	}
	tail := strings.Repeat("}", len(rest)-1)
	return splice(w.src, w.at, w.at, head, v, []byte(tail))
}
