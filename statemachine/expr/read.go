package expr

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"troupe/statemachine/data"
)

// Bounds of what Read returns.
const (
	readMax      = 16
	readBytesMax = 256 // of a value
)

// Read is a part of the data that an expression names, and its value.
type Read struct {
	Path string
	// Value is its JSON, cut when it is long; "" when it is missing.
	Value string
}

// Read returns what the parts of the data that the expression names are in the scope, those that are missing included.
func (p *Program) Read(s *Scope) (out []Read) {
	for _, at := range p.named {
		read := Read{Path: at.text()}
		if v, ok := at.value(s); ok {
			read.Value = data.Clip(string(v[:min(len(v), readBytesMax+1)]), readBytesMax)
		} else if !at.isData(s) {
			continue
		}
		out = append(out, read)
	}
	return out
}

// isData reports whether the root of the path is one of the data, and not a field such as user.roles or a variable of a loop.
func (p *path) isData(s *Scope) bool {
	switch p.root {
	case publicRoot, privateRoot:
		return true
	case eventRoot:
		return len(p.steps) > 0 && p.steps[0].key == "data"
	}
	_, local := s.Locals[p.root]
	return local || p.fixed != nil
}

// value is find, and knows the texts of the other variables.
func (p *path) value(s *Scope) (data.Value, bool) {
	text := func(of string) (data.Value, bool) { return data.AppendString(nil, of), true }
	switch p.text() {
	case "event.name":
		if s.Event != nil {
			return text(s.Event.Name)
		}
	case "user.id":
		return text(s.User.ID)
	}
	return p.find(s)
}

func (p *path) text() string {
	var b strings.Builder
	b.WriteString(p.root)
	for _, at := range p.steps {
		switch {
		case at.inList:
			b.WriteString("[" + strconv.Itoa(at.index) + "]")
		case plainKey.MatchString(at.key):
			b.WriteString("." + at.key)
		default:
			b.WriteString("[" + string(data.AppendString(nil, at.key)) + "]")
		}
	}
	return b.String()
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// namedBy returns the parts of the data that an expression names, each once, the longest path at each place.
func namedBy(e ast.Expr, constants map[string]data.Value) (named []*path) {
	var seen, tried int64 // the operand that comes next: it is inside a path, or begins none
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case len(named) == readMax:
			return
		case e.ID() == seen:
			seen = operandOf(e)
			return
		case e.ID() == tried:
			tried = operandOf(e)
			return
		}
		p := pathOf(e)
		if p == nil && e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() { // has(a.b) names a.b
			if p = pathOf(e.AsSelect().Operand()); p != nil {
				p = p.with(step{key: e.AsSelect().FieldName()})
			}
		}
		if p == nil {
			if e.Kind() == ast.SelectKind {
				tried = operandOf(e)
			}
			return
		}
		seen = operandOf(e)
		if text := p.text(); p.root != nodesRoot && !slices.ContainsFunc(named, func(other *path) bool { return other.text() == text }) {
			named = append(named, p.fixedBy(constants))
		}
	}))
	return named
}

func operandOf(e ast.Expr) int64 {
	switch {
	case e.Kind() == ast.SelectKind:
		return e.AsSelect().Operand().ID()
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index:
		return e.AsCall().Args()[0].ID()
	}
	return 0
}
