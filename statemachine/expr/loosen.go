package expr

import (
	"regexp"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

const maxLoosened = 16

// mixed is what the checker says about an int and a double where it wants two values of one type. Equality and conditional have a
// type parameter in the checker, so no overload can be added for the mix. The evaluation can do it.
var mixed = regexp.MustCompile(`^found no matching overload for '(_==_|_!=_|_\?_:_)' applied to '\((bool, )?(int, double|double, int)\)'`)

// check parses and checks src. Where an int meets a double in ==, != or ?:, it does what the author could do by hand: it hides
// the type of one of them behind dyn(…), and checks again.
func (e *Env) check(src string) (*cel.Ast, *cel.Issues) {
	var loose []int64 // ids of calls, which are the same each time src is parsed
	for {
		parsed, issues := e.parse(src)
		if issues.Err() != nil {
			return nil, issues
		}
		loosen(parsed.NativeRep(), loose)
		checked, issues := e.cel.Check(parsed)
		if issues.Err() == nil {
			return checked, issues
		}
		before := len(loose)
		for _, issue := range issues.Errors() {
			if mixed.MatchString(issue.Message) && !slices.Contains(loose, issue.ExprID) {
				loose = append(loose, issue.ExprID)
			}
		}
		if len(loose) == before || len(loose) > maxLoosened {
			return nil, issues
		}
	}
}

func loosen(tree *ast.AST, calls []int64) {
	if len(calls) == 0 {
		return
	}
	id := ast.MaxID(tree)
	factory := ast.NewExprFactory()
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || !slices.Contains(calls, e.ID()) {
			return
		}
		args := slices.Clone(e.AsCall().Args())
		at := len(args) - 2
		id++
		args[at] = factory.NewCall(id, types.DynType.TypeName(), args[at])
		e.SetKindCase(factory.NewCall(e.ID(), e.AsCall().FunctionName(), args...))
	}))
}
