package filter

import (
	"bytes"
	"fmt"
	"slices"

	"troupe/statemachine/data"
)

const (
	// KeyBytesMax is how long a key of an index is; longer ones are cut.
	KeyBytesMax = 256
	// KeysMax is how many keys one instance has in an index. One that had more has OverflowKey, and is found by every query.
	KeysMax = 1000
)

// OverflowKey sorts behind all other keys, and is the beginning of none.
var OverflowKey = []byte{0xFF}

// Field is a path whose values are kept in an index (statemachine/filter/FILTER.md, "Indexes").
type Field struct {
	text string
	// every leads to all values that a condition on the path is tried on.
	every condition
}

// ParseField checks the path of an index: key, or svcPublic or svcPrivate and at least
// one segment inside it. Errors wrap ErrRoot, ErrSyntax or ErrTooLarge.
func ParseField(path data.Path) (*Field, error) {
	switch {
	case len(path) == 1 && path[0] == "key":
	case len(path) == 0 || path[0] != "svcPublic" && path[0] != "svcPrivate":
		return nil, fmt.Errorf("%w: an index is on svcPublic or svcPrivate, not on %s", ErrRoot, data.Quote(path.String()))
	case len(path) == 1:
		return nil, fmt.Errorf("%w: an index is on something inside %s", ErrSyntax, path[0])
	}
	p := parser{private: true}
	s, err := p.subject(path.String(), nil)
	if err != nil {
		return nil, err
	}
	return &Field{text: path.String(), every: condition{root: s.root, path: s.path, predicate: predicate{op: opCollect}}}, nil
}

// Path returns the path with its dots.
func (f *Field) Path() string { return f.text }

// Private reports whether the path leads into svcPrivate.
func (f *Field) Private() bool { return f.every.root == rootPrivate }

// Keys returns the keys under which an index has the instance: the ordered encodings (data.AppendOrdered) of all values that a
// condition on the path is tried on, the absent one included, each cut to KeyBytesMax. When the path leads to nothing at all, the
// only key is that of the absent value. They are sorted, each once, and at least one. Instead of more than KeysMax keys it
// returns the smallest, the largest and OverflowKey.
func (f *Field) Keys(d Document) [][]byte {
	m := matching{document: d}
	m.condition(&f.every, nil)
	if len(m.tried) == 0 {
		m.tried = append(m.tried, nil)
	}
	var text []byte
	ends := make([]int, len(m.tried))
	for i, v := range m.tried {
		text = data.AppendOrderedPrefix(text, v, KeyBytesMax)
		ends[i] = len(text)
	}
	keys := make([][]byte, len(ends))
	start := 0
	for i, end := range ends {
		keys[i] = text[start:end:end]
		start = end
	}
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	if len(keys) > KeysMax {
		// NB: copies, so that three keys do not hold the memory of all.
		return [][]byte{bytes.Clone(keys[0]), bytes.Clone(keys[len(keys)-1]), bytes.Clone(OverflowKey)}
	}
	return keys
}
