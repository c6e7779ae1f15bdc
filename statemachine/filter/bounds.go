package filter

import (
	"bytes"
	"slices"

	"troupe/statemachine/data"
)

// Range is a part of the keys of an index.
type Range struct {
	// From is the first key, To the one behind the last; nil: no end.
	From, To []byte
	// Point says that the only key is From; To is nil.
	Point bool
}

// Bounds returns ranges of keys such that every matching instance has at least one of its field.Keys in them. Other instances may
// have keys there as well, so each candidate must be asked with Match. The ranges are sorted and disjoint, and the last one is
// OverflowKey. When the filter does not restrict the path, ok is false (statemachine/filter/FILTER.md, "What drives a plan").
//
// Only one condition is used, the one with the narrowest ranges: where the path leads to several values, two conditions may hold
// by two of them. Inside of an $elemMatch on values they hold by the same one, and are used together.
//
// single says that every instance of the index has one key only. Then all conditions hold by the same one, and all are used
// together.
func (f *Filter) Bounds(field *Field, single bool) (ranges []Range, ok bool) {
	b := bounding{field: &field.every, single: single}
	best, ok := b.all(f.all, field.every.path)
	if !ok {
		return nil, false
	}
	for _, s := range best {
		r := Range{From: s.from, To: s.to}
		if s.isPoint() {
			r.To, r.Point = nil, true
		}
		ranges = append(ranges, r)
	}
	return append(ranges, Range{From: bytes.Clone(OverflowKey), Point: true}), true
}

// span is the keys from from to before to; neither is nil.
type span struct{ from, to []byte }

func (s span) isPoint() bool {
	return len(s.to) == len(s.from)+1 && s.to[len(s.from)] == 0 && bytes.HasPrefix(s.to, s.from)
}

type bounding struct {
	field *condition
	// single says that all conditions hold by the same key, so that their bounds narrow each other.
	single bool
}

// all returns the narrowest bounds that one of nodes gives, which all must hold, or what is in the bounds of all of them. path is
// what of the field's path is below them.
func (b bounding) all(nodes []node, path []segment) (best []span, ok bool) {
	for i := range nodes {
		c := &nodes[i].condition
		if nodes[i].kind != isCondition || c.negated || c.root != b.field.root && c.root != rootElement && c.root != rootValue {
			continue
		}
		spans, has := b.condition(c, path)
		switch {
		case !has:
		case ok && b.single:
			best = intersect(best, spans)
		case !ok || weight(spans) < weight(best):
			best, ok = spans, true
		}
	}
	return best, ok
}

func (b bounding) condition(c *condition, path []segment) (spans []span, ok bool) {
	if len(c.path) > len(path) || !slices.Equal(c.path, path[:len(c.path)]) {
		return nil, false
	}
	p, rest := &c.predicate, path[len(c.path):]
	switch {
	case p.op == opElement && p.documents:
		// NB: an element that is an array is a document for $elemMatch, and gives nothing to the longer path; but only a position
		// finds something in it.
		if len(rest) == 0 || rest[0].position >= 0 {
			return nil, false
		}
		return b.all(p.nodes, rest)
	case len(rest) > 0:
		return nil, false
	case p.op == opElement:
		// NB: an array that a position names is not taken apart, so its elements have no keys.
		if n := len(path); n == 0 || path[n-1].position >= 0 {
			return nil, false
		}
		return bounding{b.field, true}.all(p.nodes, nil)
	case c.root == rootElement && p.takesNull():
		return nil, false // what misses in such an array misses here only
	}
	return p.bounds()
}

// bounds returns where the keys are of the values for which a predicate holds. Cutting keeps their order, so the bounds are cut
// as well, and widened to what the cut ones may stand for.
func (p *predicate) bounds() (spans []span, ok bool) {
	switch p.op {
	case opNever:
		return nil, true
	case opEqual:
		return points(p.want), true
	case opIn:
		return points(p.list...), true
	case opGreater, opGreaterEqual, opLess, opLessEqual:
		return p.boundsOfComparison(), true
	case opRegular:
		if p.prefix == "" {
			return nil, false
		}
		text := data.AppendString(nil, p.prefix)
		from := data.AppendOrdered(nil, text)
		from = cut(from[:len(from)-1])
		return []span{{from, behindAll(from)}}, true
	}
	return nil, false
}

// boundsOfComparison stays within the kind of the operand.
func (p *predicate) boundsOfComparison() []span {
	if p.want.Kind() == data.Null {
		if p.op == opGreater || p.op == opLess {
			return nil
		}
		return points(p.want)
	}
	whole := data.AppendOrdered(nil, p.want)
	key := cut(whole)
	kind := span{whole[:1:1], []byte{whole[0] + 1}}
	switch {
	case p.op == opGreater && len(whole) <= KeyBytesMax:
		return []span{{behind(key), kind.to}}
	case p.op == opGreater, p.op == opGreaterEqual:
		return []span{{key, kind.to}}
	case p.op == opLess && len(whole) <= KeyBytesMax:
		return []span{{kind.from, key}}
	}
	return []span{{kind.from, behind(key)}}
}

// points returns the keys of values that are in data.Order. null stands for what is missing, too.
func points(values ...data.Value) []span {
	var spans []span
	add := func(v data.Value) {
		key := cut(data.AppendOrdered(nil, v))
		if n := len(spans); n == 0 || !bytes.Equal(spans[n-1].from, key) { // cut ones may be equal
			spans = append(spans, span{key, behind(key)})
		}
	}
	for _, v := range values {
		if v.Kind() == data.Null {
			add(nil)
		}
		add(v)
	}
	return spans
}

func intersect(a, b []span) []span {
	var both []span
	for len(a) > 0 && len(b) > 0 {
		s := span{a[0].from, a[0].to}
		if bytes.Compare(b[0].from, s.from) > 0 {
			s.from = b[0].from
		}
		if bytes.Compare(b[0].to, s.to) < 0 {
			s.to = b[0].to
		}
		if bytes.Compare(s.from, s.to) < 0 {
			both = append(both, s)
		}
		if bytes.Compare(a[0].to, b[0].to) < 0 {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}

// weight guesses how many keys are in spans: few in a point, more in a range that is bounded on both sides, the less the more
// bytes its ends share, and most in one that ends with its kind.
func weight(spans []span) int {
	n := 0
	for _, s := range spans {
		switch {
		case s.isPoint():
			n++
		case len(s.from) > 1 && len(s.to) > 1:
			same := 0
			for same < min(len(s.from), len(s.to)) && s.from[same] == s.to[same] {
				same++
			}
			n += 20_000 - same
		default:
			n += 1_000_000
		}
	}
	return n
}

func cut(key []byte) []byte {
	n := min(len(key), KeyBytesMax)
	return key[:n:n]
}

func behind(key []byte) []byte { return append(bytes.Clone(key), 0) }

// behindAll returns the key that comes after all that begin with a prefix.
func behindAll(prefix []byte) []byte {
	end := bytes.TrimRight(prefix, "\xff")
	end = bytes.Clone(end)
	end[len(end)-1]++ // the first byte is a kind's, and not 0xFF
	return end
}
