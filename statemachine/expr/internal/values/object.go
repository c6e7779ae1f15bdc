package values

import (
	"errors"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"troupe/statemachine/data"
)

// eagerUses is how often an object or a list is searched in its bytes. After that its members are listed once and kept, so that a
// loop over a large document does not read it again in every turn.
const eagerUses = 8

// ErrNoNative is the error of functions of cel-go that need a Go value. The profile has none.
var ErrNoNative = errors.New("JSON is not converted to Go values")

// FromData returns the CEL value of a JSON value. Objects and lists are read when they are looked into. An absent value is null.
// A number beyond float64 is infinite; it compares as it should, but cannot be written again.
func FromData(v data.Value) ref.Val {
	switch v.Kind() {
	case data.Object:
		return &Object{Raw: v}
	case data.Array:
		return &List{Raw: v}
	case data.String:
		return types.String(v.Text())
	case data.Number:
		if n, ok := v.Int64(); ok {
			return types.Int(n)
		}
		return types.Double(v.Float64())
	case data.Bool:
		return types.Bool(v[0] == 't')
	}
	return types.NullValue
}

// Object is a JSON object as a CEL map. It belongs to one evaluation, which may build its index; the bytes are the caller's.
type Object struct {
	Raw   data.Value
	uses  int
	index *memberIndex // nil until it pays
}

var (
	_ traits.Mapper   = (*Object)(nil)
	_ traits.Foldable = (*Object)(nil)
	_ traits.Zeroer   = (*Object)(nil)
)

// memberIndex holds the members of an object in their order. The keys of a data.Value are distinct.
type memberIndex struct {
	members []member
	byKey   map[string]int
}

type member struct {
	key string // "" in a list
	raw data.Value
	val ref.Val // nil until it is asked for
}

func (m *member) value() ref.Val {
	if m.val == nil {
		m.val = FromData(m.raw)
	}
	return m.val
}

func (o *Object) list() *memberIndex {
	if o.index == nil {
		x := &memberIndex{byKey: make(map[string]int)}
		for key, raw := range o.Raw.Members() {
			x.byKey[key] = len(x.members)
			x.members = append(x.members, member{key: key, raw: raw})
		}
		o.index = x
	}
	return o.index
}

// find returns the value of a member. Only this member is decoded.
func (o *Object) find(key string) (ref.Val, bool) {
	if o.index == nil && o.uses < eagerUses {
		o.uses++
		raw, ok := o.Raw.Lookup(key)
		if !ok {
			return nil, false
		}
		return FromData(raw), true
	}
	x := o.list()
	at, ok := x.byKey[key]
	if !ok {
		return nil, false
	}
	return x.members[at].value(), true
}

// FindStringKey is what the interpreter asks for when it follows a select.
func (o *Object) FindStringKey(key string) (any, bool) {
	v, ok := o.find(key)
	return v, ok
}

// Find implements traits.Mapper. A key that is not a string is simply not there.
func (o *Object) Find(key ref.Val) (ref.Val, bool) {
	k, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	return o.find(string(k))
}

// Get implements traits.Indexer.
func (o *Object) Get(key ref.Val) ref.Val {
	if v, ok := o.Find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements traits.Container: the operator in.
func (o *Object) Contains(key ref.Val) ref.Val {
	_, ok := o.Find(key)
	return types.Bool(ok)
}

// Size implements traits.Sizer.
func (o *Object) Size() ref.Val {
	if o.IsZeroValue() {
		return types.IntZero
	}
	return types.Int(len(o.list().members))
}

// IsZeroValue implements traits.Zeroer.
func (o *Object) IsZeroValue() bool { return len(o.Raw) <= len("{}") }

// Iterator implements traits.Iterable: the keys, as they stand in the text.
func (o *Object) Iterator() traits.Iterator {
	x := o.list()
	return &iterator{count: len(x.members), at: func(i int) ref.Val { return types.String(x.members[i].key) }}
}

// Fold implements traits.Foldable, in the order of the text.
func (o *Object) Fold(f traits.Folder) {
	keysOnly := wantsKeysOnly(f)
	x := o.list()
	for i := range x.members {
		m := &x.members[i]
		var v any
		if !keysOnly {
			v = m.value()
		}
		if !f.FoldEntry(types.String(m.key), v) {
			return
		}
	}
}

// wantsKeysOnly reports whether a fold has one variable, which is the key.
func wantsKeysOnly(f traits.Folder) bool {
	k, ok := f.(interface{ FoldKeyOnly() bool })
	return ok && k.FoldKeyOnly()
}

// Equal implements ref.Val: the same members, in whatever order, as CEL compares maps. data.Equal would look at the order.
func (o *Object) Equal(other ref.Val) ref.Val {
	m, ok := other.(traits.Mapper)
	if !ok {
		return types.False
	}
	if p, ok := other.(*Object); ok && string(o.Raw) == string(p.Raw) {
		return types.True
	}
	if o.Size() != m.Size() {
		return types.False
	}
	x := o.list()
	for i := range x.members {
		mine := &x.members[i]
		theirs, ok := m.Find(types.String(mine.key))
		if !ok || types.Equal(mine.value(), theirs) != types.True {
			return types.False
		}
	}
	return types.True
}

// ConvertToNative implements ref.Val.
func (o *Object) ConvertToNative(reflect.Type) (any, error) { return nil, ErrNoNative }

// ConvertToType implements ref.Val.
func (o *Object) ConvertToType(t ref.Type) ref.Val { return ConvertTo(o, t) }

// Type implements ref.Val.
func (o *Object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *Object) Value() any { return o }

// String stands for the object in messages, which must not depend on an address and should not repeat the data.
func (o *Object) String() string { return "map" }

// ConvertTo implements ConvertToType of our own values: to what they are, and to the name of their type.
func ConvertTo(v ref.Val, t ref.Type) ref.Val {
	switch t {
	case v.Type():
		return v
	case types.TypeType:
		return v.Type().(ref.Val)
	}
	return types.NewErr("type conversion error from '%s' to '%s'", v.Type().TypeName(), t.TypeName())
}

// iterator walks over count values. It does not support changes on the way; nothing that is walked over changes.
type iterator struct {
	ref.Val // never used: an iterator is not a value of an expression
	count   int
	at      func(int) ref.Val
	next    int
}

// HasNext implements traits.Iterator.
func (it *iterator) HasNext() ref.Val { return types.Bool(it.next < it.count) }

// Next implements traits.Iterator.
func (it *iterator) Next() ref.Val {
	if it.next >= it.count {
		return nil
	}
	it.next++
	return it.at(it.next - 1)
}
