package values

import (
	"cmp"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Mapping is a map that an expression made. cel-go keeps such a map in a Go map and walks over it in a random order; a Mapping is
// walked in ascending order of its keys, so that a replay sees the same. Immutable.
type Mapping struct {
	traits.Mapper
	Keys []ref.Val // ascending
}

var (
	_ traits.Foldable = (*Mapping)(nil)
	_ traits.Zeroer   = (*Mapping)(nil)
)

// NewMapping wraps m. The result is an error when a key is of a type that maps
// cannot have: CEL's checker cannot see that for keys that come from the data.
func NewMapping(m traits.Mapper) ref.Val {
	keys := make([]ref.Val, 0, int(m.Size().(types.Int)))
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		switch key.(type) {
		case types.String, types.Int, types.Uint, types.Bool:
		default:
			return types.NewErr("unsupported type of a map key: %s", key.Type().TypeName())
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	return &Mapping{Mapper: m, Keys: keys}
}

// compareKeys orders keys by type, then by value. The order of the types has no meaning, it only has to be one.
func compareKeys(a, b ref.Val) int {
	if a.Type() != b.Type() {
		return cmp.Compare(a.Type().TypeName(), b.Type().TypeName())
	}
	c, _ := a.(traits.Comparer).Compare(b).(types.Int)
	return int(c)
}

// Iterator implements traits.Iterable.
func (m *Mapping) Iterator() traits.Iterator {
	return &iterator{count: len(m.Keys), at: func(i int) ref.Val { return m.Keys[i] }}
}

// Fold implements traits.Foldable.
func (m *Mapping) Fold(f traits.Folder) {
	keysOnly := wantsKeysOnly(f)
	for _, key := range m.Keys {
		var v any
		if !keysOnly {
			v, _ = m.Find(key)
		}
		if !f.FoldEntry(key, v) {
			return
		}
	}
}

// IsZeroValue implements traits.Zeroer.
func (m *Mapping) IsZeroValue() bool { return len(m.Keys) == 0 }

// ConvertToType implements ref.Val.
func (m *Mapping) ConvertToType(t ref.Type) ref.Val { return ConvertTo(m, t) }

// String stands for the map in messages, where the embedded one would print its entries in a random order.
func (m *Mapping) String() string { return "map" }
