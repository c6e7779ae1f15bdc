package expr

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"troupe/statemachine/data"
)

// path is an expression that does nothing but name a part of the data, like event.data.address or svcPublic.items[0]. Its value
// is cut out of the bytes, so that it keeps its key order and its numbers, whatever their size.
type path struct {
	root  string
	steps []step
	fixed data.Value // the value of root when that is a constant; else absent
}

// step goes to a member of an object or to an element of an array. Which of
// them is decided by the literal, as CEL does: items["0"] is not an element.
type step struct {
	key    string
	index  int
	inList bool // index counts, not key
}

// pathOf returns the path that e is, and nil when e is something else, such as
// a presence test, an optional select or an index that has to be computed.
func pathOf(e ast.Expr) *path {
	switch e.Kind() {
	case ast.IdentKind:
		return &path{root: e.AsIdent()}
	case ast.SelectKind:
		s := e.AsSelect()
		if p := pathOf(s.Operand()); p != nil && !s.IsTestOnly() {
			return p.with(step{key: s.FieldName()})
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
			return nil
		}
		p := pathOf(call.Args()[0])
		if p == nil {
			return nil
		}
		switch at := call.Args()[1].AsLiteral().(type) {
		case types.String:
			return p.with(step{key: string(at)})
		case types.Int:
			return p.with(step{index: int(at), inList: true})
		}
	}
	return nil
}

// fixedBy keeps the value of a root that is a constant. A nil path stays nil.
func (p *path) fixedBy(constants map[string]data.Value) *path {
	if p != nil {
		p.fixed = constants[p.root]
	}
	return p
}

// with adds a step at the end. A path is built by one goroutine, then read only.
func (p *path) with(s step) *path {
	p.steps = append(p.steps, s)
	return p
}

// find returns the part of the scope's data that the path names. It returns false when that is missing, or no data but a field
// like user.id; the program then gives the value, or the error in CEL's words.
func (p *path) find(s *Scope) (data.Value, bool) {
	v, steps := data.Value(nil), p.steps
	switch p.root {
	case publicRoot:
		v = orEmpty(s.Public)
	case privateRoot:
		v = orEmpty(s.Private)
	case eventRoot:
		if s.Event == nil || len(steps) == 0 || steps[0].key != "data" {
			return nil, false
		}
		v, steps = orEmpty(s.Event.Data), steps[1:]
	default:
		if v = p.fixed; v == nil {
			v = s.Locals[p.root]
		}
	}
	for _, at := range steps {
		ok := false
		if at.inList {
			v, ok = v.Index(at.index)
		} else {
			v, ok = v.Lookup(at.key)
		}
		if !ok {
			return nil, false
		}
	}
	return v, len(v) > 0
}
