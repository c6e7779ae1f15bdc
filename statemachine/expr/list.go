package expr

import (
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"troupe/statemachine/data"
)

// list is a JSON array as a CEL list. Like object it belongs to one evaluation.
type list struct {
	raw      data.Value
	uses     int
	counted  bool
	count    int      // valid when counted
	elements []member // nil until it pays
}

var (
	_ traits.Lister   = (*list)(nil)
	_ traits.Foldable = (*list)(nil)
	_ traits.Zeroer   = (*list)(nil)
)

// length counts the elements, once.
func (l *list) length() int {
	if !l.counted {
		for range l.raw.Elements() {
			l.count++
		}
		l.counted = true
	}
	return l.count
}

// all returns the elements with room for their values, and keeps them.
func (l *list) all() []member {
	if l.elements == nil {
		l.elements = make([]member, 0, l.length())
		for _, raw := range l.raw.Elements() {
			l.elements = append(l.elements, member{raw: raw})
		}
	}
	return l.elements
}

// spare reports whether the list may be read from its bytes once more. When it
// may not, or has been indexed, all is the cheaper way.
func (l *list) spare() bool {
	if l.elements != nil || l.uses >= eagerUses {
		return false
	}
	l.uses++
	return true
}

// GetInt64Index is what the interpreter asks for when it follows an index.
func (l *list) GetInt64Index(i int64) (any, bool) {
	if i < 0 || i > int64(len(l.raw)) {
		return nil, false
	}
	if l.spare() {
		raw, ok := l.raw.Index(int(i))
		if !ok {
			return nil, false
		}
		return fromData(raw), true
	}
	all := l.all()
	if i >= int64(len(all)) {
		return nil, false
	}
	return all[i].value(), true
}

// Get implements traits.Indexer.
func (l *list) Get(index ref.Val) ref.Val {
	i, err := types.GetOrError(index)
	if err != nil {
		return types.ValOrErr(index, "%v", err)
	}
	if v, ok := l.GetInt64Index(int64(i)); ok {
		return v.(ref.Val)
	}
	return types.NewErr("index '%d' out of range in list size '%d'", i, l.length())
}

// Contains implements traits.Container: the operator in. Numbers are found
// whatever their type.
func (l *list) Contains(elem ref.Val) ref.Val {
	if s, ok := elem.(types.String); ok {
		return types.Bool(l.containsText(string(s)))
	}
	for _, raw := range l.raw.Elements() {
		if elem.Equal(fromData(raw)) == types.True {
			return types.True
		}
	}
	return types.False
}

// containsText compares texts as they are written: nothing is decoded.
func (l *list) containsText(s string) bool {
	wanted := data.Value(data.AppendString(nil, s))
	for _, raw := range l.raw.Elements() {
		if raw.Kind() == data.String && data.Equal(raw, wanted) {
			return true
		}
	}
	return false
}

// Add implements traits.Adder. The result shares the elements of both lists.
func (l *list) Add(other ref.Val) ref.Val {
	if _, ok := other.(traits.Lister); !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	all := l.all()
	values := make([]ref.Val, len(all))
	for i := range all {
		values[i] = all[i].value()
	}
	return newList(values).Add(other)
}

// newList is a list that an expression made.
func newList(values []ref.Val) traits.Lister {
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

// Size implements traits.Sizer.
func (l *list) Size() ref.Val { return types.Int(l.length()) }

// IsZeroValue implements traits.Zeroer.
func (l *list) IsZeroValue() bool { return len(l.raw) <= len("[]") }

// Iterator implements traits.Iterable.
func (l *list) Iterator() traits.Iterator {
	all := l.all()
	return &iterator{count: len(all), at: func(i int) ref.Val { return all[i].value() }}
}

// Fold implements traits.Foldable: a loop. The elements that an early end leaves
// over are not decoded.
func (l *list) Fold(f traits.Folder) {
	if !l.spare() {
		all := l.all()
		for i := range all {
			if !f.FoldEntry(i, all[i].value()) {
				return
			}
		}
		return
	}
	for i, raw := range l.raw.Elements() {
		if !f.FoldEntry(i, fromData(raw)) {
			return
		}
	}
}

// Equal implements ref.Val: the same elements in the same order.
func (l *list) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.False
	}
	if p, ok := other.(*list); ok && string(l.raw) == string(p.raw) {
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
func (l *list) ConvertToNative(reflect.Type) (any, error) { return nil, errNoNative }

// ConvertToType implements ref.Val.
func (l *list) ConvertToType(t ref.Type) ref.Val { return convertTo(l, t) }

// Type implements ref.Val.
func (l *list) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l *list) Value() any { return l }

// String stands for the list in messages, like object's.
func (l *list) String() string { return "list" }
