package expr

import (
	"errors"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"troupe/statemachine/expr/internal/values"
)

// The variables event, user, instance and parent are not maps but have types of their own, for two reasons: the checker knows
// their fields, and a field is read from the Scope when it is asked for, so that nothing is built per evaluation.

// errNotSet says what a field is read of when the variable is null: an event
// that is not there, or the other branch of a condition.
var errNotSet = map[*root]error{
	eventType:    errors.New("event is not set"),
	userType:     errors.New("the user is null"),
	instanceType: errors.New("the instance is null"),
	parentType:   errors.New("the instance has no parent"),
}

type root struct {
	name   string
	typ    *cel.Type
	fields []field // in the order in which they are written as JSON
}

type field struct {
	name string
	typ  *cel.Type
	get  func(*activation) ref.Val
	// set is what has() says; nil: always true.
	set func(*activation) bool
}

var (
	eventType = newRoot("troupe.Event", []field{
		{"name", cel.StringType, text(func(s *Scope) string { return s.Event.Name }), nil},
		{"id", cel.StringType, text(func(s *Scope) string { return s.Event.ID }), nil},
		{"data", cel.DynType, func(a *activation) ref.Val { return a.dataOfEvent() }, func(a *activation) bool { return len(a.scope.Event.Data) > 0 }},
	})
	userType = newRoot("troupe.User", []field{
		{"id", cel.StringType, text(func(s *Scope) string { return s.User.ID }), nil},
		{"name", cel.StringType, text(func(s *Scope) string { return s.User.Name }), nil},
		{"roles", cel.ListType(cel.StringType), texts(func(s *Scope) []string { return s.User.Roles }), nil},
		{"privileges", cel.ListType(cel.StringType), texts(func(s *Scope) []string { return s.User.Privileges }), nil},
	})
	instanceType = newRoot("troupe.Instance", []field{
		{"id", cel.StringType, text(func(s *Scope) string { return s.Instance.ID }), nil},
		{"workflowId", cel.StringType, text(func(s *Scope) string { return s.Instance.WorkflowID }), nil},
		{"version", cel.IntType, func(a *activation) ref.Val { return types.Int(a.scope.Instance.Version) }, nil},
		{"createdAt", cel.TimestampType, func(a *activation) ref.Val {
			return types.Timestamp{Time: a.scope.Instance.CreatedAt.UTC()}
		}, nil},
		{"states", cel.DynType, func(a *activation) ref.Val { return a.statesOfInstance() }, nil},
	})
	parentType = newRoot("troupe.Parent", []field{
		{"workflowId", cel.StringType, text(func(s *Scope) string { return s.Parent.WorkflowID }), nil},
		{"instanceId", cel.StringType, text(func(s *Scope) string { return s.Parent.InstanceID }), nil},
	})
)

func newRoot(name string, fields []field) *root {
	return &root{name: name, typ: cel.ObjectType(name, traits.FieldTesterType, traits.IndexerType), fields: fields}
}

func text(get func(*Scope) string) func(*activation) ref.Val {
	return func(a *activation) ref.Val { return types.String(get(a.scope)) }
}

// texts is a field of type list(string). The slice is not copied.
func texts(get func(*Scope) []string) func(*activation) ref.Val {
	return func(a *activation) ref.Val {
		return types.NewStringList(types.DefaultTypeAdapter, get(a.scope))
	}
}

func (r *root) field(name string) *field {
	for i := range r.fields {
		if r.fields[i].name == name {
			return &r.fields[i]
		}
	}
	return nil
}

// view is one of the variables in one evaluation. It is a part of the activation that it reads from.
type view struct {
	root       *root
	activation *activation
}

// Equal implements ref.Val: a variable equals itself only.
func (v *view) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(v)) }

// ConvertToNative implements ref.Val.
func (v *view) ConvertToNative(reflect.Type) (any, error) { return nil, values.ErrNoNative }

// ConvertToType implements ref.Val.
func (v *view) ConvertToType(t ref.Type) ref.Val { return values.ConvertTo(v, t) }

// Type implements ref.Val.
func (v *view) Type() ref.Type { return v.root.typ }

// Value implements ref.Val.
func (v *view) Value() any { return v }

// Get implements traits.Indexer: a field read through a value of unknown type.
func (v *view) Get(name ref.Val) ref.Val {
	f := v.named(name)
	if f == nil {
		return types.NewErr("no such key: %v", name)
	}
	return f.get(v.activation)
}

// IsSet implements traits.FieldTester.
func (v *view) IsSet(name ref.Val) ref.Val {
	f := v.named(name)
	return types.Bool(f != nil && f.isSet(v.activation))
}

func (v *view) named(name ref.Val) *field {
	s, ok := name.(types.String)
	if !ok {
		return nil
	}
	return v.root.field(string(s))
}

// Weight implements values.Weigher: what the variable weighs as JSON, roughly.
func (v *view) Weight() int {
	s := v.activation.scope
	switch v.root {
	case eventType:
		return len(s.Event.Name) + len(s.Event.ID) + len(s.Event.Data)
	case parentType:
		return len(s.Parent.WorkflowID) + len(s.Parent.InstanceID)
	case instanceType:
		return len(s.Instance.ID) + len(s.Instance.WorkflowID) + len(v.activation.statesText())
	}
	n := len(s.User.ID)
	for _, names := range [][]string{s.User.Roles, s.User.Privileges} {
		for _, name := range names {
			n += values.UnitWeight + len(name)
		}
	}
	return n
}

func (f *field) isSet(a *activation) bool { return f.set == nil || f.set(a) }

// String stands for the variable in messages.
func (v *view) String() string { return v.root.name }

// provider tells cel-go about the roots. It hides from the checker the protocol buffer messages that every registry knows: an
// expression has no use for them. Built once, then read only.
type provider struct {
	*types.Registry
	roots map[string]*root
}

func newProvider() (*provider, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	p := &provider{Registry: registry, roots: make(map[string]*root)}
	for _, r := range []*root{eventType, userType, instanceType, parentType} {
		p.roots[r.name] = r
	}
	return p, nil
}

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	r, ok := p.roots[name]
	if !ok {
		return nil, false
	}
	return types.NewTypeTypeWithParam(r.typ), true
}

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	r, ok := p.roots[name]
	if !ok {
		return nil, false
	}
	f := r.field(fieldName)
	if f == nil {
		return nil, false
	}
	return &types.FieldType{
		Type: f.typ,
		IsSet: func(target any) bool {
			v, ok := target.(*view)
			return ok && f.isSet(v.activation)
		},
		GetFrom: func(target any) (any, error) {
			v, ok := target.(*view)
			if !ok { // null, which the checker takes for any object
				return nil, errNotSet[r]
			}
			return f.get(v.activation), nil
		},
	}, true
}
