package expr

import (
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"troupe/statemachine/data"
	"troupe/statemachine/expr/internal/values"
)

// Scope is what the names of an expression mean in one evaluation. The caller owns it and may change and reuse it between
// evaluations; nothing in it but what Budget points to is changed, and nothing is kept. The zero Scope is one without an event, a
// user, an instance and data.
type Scope struct {
	// Event is the variable event; nil: there is none, event is null, and reading a field of it is an error.
	Event *Event
	// Public and Private are svcPublic and svcPrivate; absent is an empty object.
	Public, Private data.Value
	User            User
	Instance        Instance
	// Parent is the variable parent; nil: there is none, parent is null, and reading a field of it is an error.
	Parent *Parent
	// Now is the variable now, in whatever zone; expressions see UTC.
	Now time.Time
	// In answers In("node") and In("machine.node"); nil: no node is active.
	In func(node string) bool
	// Locals are the variables that Env.With added. One that is missing is an error when the expression reads it.
	Locals map[string]data.Value
	// Apart: nothing is known but User and Now, and reading anything else is an error. What is true all the same is true
	// for every instance.
	Apart bool
	// Budget is charged with what each evaluation costs; nil: nothing bounds them together.
	Budget *Budget
}

// Event is the event that is being handled.
type Event struct {
	Name, ID string
	// Data is any JSON value. Absent reads as an empty object, and has(event.data) is false.
	Data data.Value
}

// User is who acts.
type User struct {
	ID, Name          string // Name is for people
	Roles, Privileges []string
}

// Instance is the workflow instance.
type Instance struct {
	ID, WorkflowID string
	Version        int
	CreatedAt      time.Time
	// States gives the value of instance.states. It is called at most once in an
	// evaluation, and only when the expression reads it; nil is an empty list.
	States func() data.Value
}

// Parent is the instance that has invoked this one.
type Parent struct{ WorkflowID, InstanceID string }

// The names that every expression knows.
const (
	eventRoot    = "event"
	publicRoot   = "svcPublic"
	privateRoot  = "svcPrivate"
	userRoot     = "user"
	instanceRoot = "instance"
	parentRoot   = "parent"
	nowRoot      = "now"

	// nodesRoot stands after In(…). No expression can write this name.
	nodesRoot = "@nodes"
)

var (
	emptyObject = data.Value("{}")
	emptyList   = data.Value("[]")
)

// activation is a Scope as cel-go wants it, with what one evaluation has looked
// at already. Pooled: BenchmarkGuard allocates 500 bytes more without.
type activation struct {
	scope           *Scope
	public, private values.Object
	eventData       ref.Val    // nil until it is asked for
	rawStates       data.Value // nil until it is asked for
	states          ref.Val    // nil until it is asked for
	event           view
	user            view
	instance        view
	parent          view
	nodes           nodes
	locals          []local
}

var _ cel.Activation = (*activation)(nil)

type local struct {
	name string
	val  ref.Val
}

var activations = sync.Pool{New: func() any {
	a := new(activation)
	a.event = view{eventType, a}
	a.user = view{userType, a}
	a.instance = view{instanceType, a}
	a.parent = view{parentType, a}
	a.nodes = nodes{Mapper: noEntries, activation: a}
	return a
}}

// newActivation returns an activation for s, which must not change until release.
func newActivation(s *Scope) *activation {
	a := activations.Get().(*activation)
	a.scope = s
	a.public.Raw = orEmpty(s.Public)
	a.private.Raw = orEmpty(s.Private)
	return a
}

func orEmpty(v data.Value) data.Value {
	if len(v) == 0 {
		return emptyObject
	}
	return v
}

// release gives a back. Nothing that was read through it may be used any more.
func (a *activation) release() {
	a.scope = nil
	a.public, a.private = values.Object{}, values.Object{}
	a.eventData, a.rawStates, a.states = nil, nil, nil
	clear(a.locals)
	a.locals = a.locals[:0]
	activations.Put(a)
}

// ResolveName implements cel.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	if a.scope.Apart && name != userRoot && name != nowRoot {
		return nil, false
	}
	switch name {
	case publicRoot:
		return whole(&a.public), true
	case privateRoot:
		return whole(&a.private), true
	case eventRoot:
		if a.scope.Event == nil {
			return types.NullValue, true
		}
		return &a.event, true
	case userRoot:
		return &a.user, true
	case instanceRoot:
		return &a.instance, true
	case parentRoot:
		if v, ok := a.local(name); ok { // NB: older definitions may have a variable of that name
			return v, true
		}
		if a.scope.Parent == nil {
			return types.NullValue, true
		}
		return &a.parent, true
	case nowRoot:
		return types.Timestamp{Time: a.scope.Now.UTC()}, true
	case nodesRoot:
		return &a.nodes, true
	}
	return a.local(name)
}

// Parent implements cel.Activation.
func (a *activation) Parent() cel.Activation { return nil }

// whole returns o, or its value when the caller gave something else than an object.
func whole(o *values.Object) ref.Val {
	if o.Raw.Kind() == data.Object {
		return o
	}
	return values.FromData(o.Raw)
}

// local returns a variable of Locals. It is decoded once, so that a loop in the expression finds the index of a large one.
func (a *activation) local(name string) (any, bool) {
	for i := range a.locals {
		if a.locals[i].name == name {
			return a.locals[i].val, true
		}
	}
	raw, ok := a.scope.Locals[name]
	if !ok {
		return nil, false
	}
	v := values.FromData(raw)
	a.locals = append(a.locals, local{name, v})
	return v, true
}

// dataOfEvent is event.data. There is an event.
func (a *activation) dataOfEvent() ref.Val {
	if a.eventData == nil {
		a.eventData = values.FromData(orEmpty(a.scope.Event.Data))
	}
	return a.eventData
}

func (a *activation) statesText() data.Value {
	if a.rawStates == nil {
		if states := a.scope.Instance.States; states != nil {
			a.rawStates = states()
		}
		if len(a.rawStates) == 0 {
			a.rawStates = emptyList
		}
	}
	return a.rawStates
}

func (a *activation) statesOfInstance() ref.Val {
	if a.states == nil {
		a.states = values.FromData(a.statesText())
	}
	return a.states
}

// nodes is the map behind In: every key is there, and its value tells whether the node is active.
type nodes struct {
	traits.Mapper // empty; In reads by key and does nothing else
	activation    *activation
}

// noEntries is the map that nodes pretends to be where it is not a map. Immutable.
var noEntries = types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{})

// FindStringKey is what the interpreter asks for.
func (n *nodes) FindStringKey(node string) (any, bool) {
	in := n.activation.scope.In
	return types.Bool(in != nil && in(node)), true
}

// Find implements traits.Mapper: the key was no literal, and may be no text.
func (n *nodes) Find(key ref.Val) (ref.Val, bool) {
	if node, ok := key.(types.String); ok {
		v, _ := n.FindStringKey(string(node))
		return v.(ref.Val), true
	}
	return types.NewErr("no such overload: In(%s)", key.Type().TypeName()), false
}
