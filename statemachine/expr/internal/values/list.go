package values

import (
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"troupe/statemachine/data"
)

// List is a JSON array as a CEL list. Like Object it belongs to one evaluation.
type List struct {
	Raw      data.Value
	uses     int
	counted  bool
	count    int      // valid when counted
	elements []member // nil until it pays
}

var (
	_ traits.Lister   = (*List)(nil)
	_ traits.Foldable = (*List)(nil)
	_ traits.Zeroer   = (*List)(nil)
)

func (l *List) length() int {
	if !l.counted {
		for range l.Raw.Elements() {
			l.count++
		}
		l.counted = true
	}
	return l.count
}

// all returns the elements with room for their values, and keeps them.
func (l *List) all() []member {
	if l.elements == nil {
		l.elements = make([]member, 0, l.length())
		for _, raw := range l.Raw.Elements() {
			l.elements = append(l.elements, member{raw: raw})
		}
	}
	return l.elements
}

// spare reports whether the list may be read from its bytes once more.
func (l *List) spare() bool {
	if l.elements != nil || l.uses >= eagerUses {
		return false
	}
	l.uses++
	return true
}

// GetInt64Index is what the interpreter asks for when it follows an index.
func (l *List) GetInt64Index(i int64) (any, bool) {
	if i < 0 || i > int64(len(l.Raw)) {
		return nil, false
	}
	if l.spare() {
		raw, ok := l.Raw.Index(int(i))
		if !ok {
			return nil, false
		}
		return FromData(raw), true
	}
	all := l.all()
	if i >= int64(len(all)) {
		return nil, false
	}
	return all[i].value(), true
}

// Get implements traits.Indexer.
func (l *List) Get(index ref.Val) ref.Val {
	i, err := types.GetOrError(index)
	if err != nil {
		return types.ValOrErr(index, "%v", err)
	}
	if v, ok := l.GetInt64Index(int64(i)); ok {
		return v.(ref.Val)
	}
	return types.NewErr("index '%d' out of range in list size '%d'", i, l.length())
}

// Contains implements traits.Container: the operator in. Numbers are found whatever their type.
func (l *List) Contains(elem ref.Val) ref.Val {
	if s, ok := elem.(types.String); ok {
		return types.Bool(l.containsText(string(s)))
	}
	for _, raw := range l.Raw.Elements() {
		if elem.Equal(FromData(raw)) == types.True {
			return types.True
		}
	}
	return types.False
}

// containsText compares texts as they are written: nothing is decoded.
func (l *List) containsText(s string) bool {
	wanted := data.Value(data.AppendString(nil, s))
	for _, raw := range l.Raw.Elements() {
		if raw.Kind() == data.String && data.Equal(raw, wanted) {
			return true
		}
	}
	return false
}

// Add implements traits.Adder. The result shares the elements of both lists.
func (l *List) Add(other ref.Val) ref.Val {
	if _, ok := other.(traits.Lister); !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	all := l.all()
	values := make([]ref.Val, len(all))
	for i := range all {
		values[i] = all[i].value()
	}
	return NewList(values).Add(other)
}

// NewList is a list that an expression made.
func NewList(values []ref.Val) traits.Lister {
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

// Size implements traits.Sizer.
func (l *List) Size() ref.Val { return types.Int(l.length()) }

// IsZeroValue implements traits.Zeroer.
func (l *List) IsZeroValue() bool { return len(l.Raw) <= len("[]") }

// Iterator implements traits.Iterable.
func (l *List) Iterator() traits.Iterator {
	all := l.all()
	return &iterator{count: len(all), at: func(i int) ref.Val { return all[i].value() }}
}

// Fold implements traits.Foldable: a loop. The elements that an early end leaves over are not decoded.
func (l *List) Fold(f traits.Folder) {
	if !l.spare() {
		all := l.all()
		for i := range all {
			if !f.FoldEntry(i, all[i].value()) {
				return
			}
		}
		return
	}
	for i, raw := range l.Raw.Elements() {
		if !f.FoldEntry(i, FromData(raw)) {
			return
		}
	}
}

// Equal implements ref.Val: the same elements in the same order.
func (l *List) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.False
	}
	if p, ok := other.(*List); ok && string(l.Raw) == string(p.Raw) {
		return types.True
	}
	if l.Size() != o.Size() {
		return types.False
	}
	mine, theirs := l.Iterator(), o.Iterator()
	for mine.HasNext() == types.True {
		if types.Equal(mine.Next(), theirs.Next()) != types.True {
			return types.False
		}
	}
	return types.True
}

// ConvertToNative implements ref.Val.
func (l *List) ConvertToNative(reflect.Type) (any, error) { return nil, ErrNoNative }

// ConvertToType implements ref.Val.
func (l *List) ConvertToType(t ref.Type) ref.Val { return ConvertTo(l, t) }

// Type implements ref.Val.
func (l *List) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l *List) Value() any { return l }

// String stands for the list in messages, like that of Object.
func (l *List) String() string { return "list" }
