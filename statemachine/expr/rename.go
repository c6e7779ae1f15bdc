package expr

import (
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
)

// Rename returns src with other variables: to returns what stands for a name, and "" leaves it. Variables of loops and of
// cel.bind are not asked for where they hide the others, nor are members, names of functions and texts. All else keeps its bytes.
// The error is a *CompileError: src is not an expression.
func Rename(src string, to func(name string) string) (string, error) {
	e, err := plainParser()
	if err != nil {
		return "", err
	}
	if len(src) > maxSourceBytes {
		return "", fault("longer than %d bytes", maxSourceBytes)
	}
	parsed, issues := e.Parse(src)
	if issues.Err() != nil {
		return "", firstIssue(issues.Errors())
	}
	r := &renaming{to: to, tree: parsed.NativeRep()}
	r.visit(r.tree.Expr(), nil)
	slices.SortFunc(r.found, func(a, b replacement) int { return a.at - b.at })
	var (
		out   strings.Builder
		runes = []rune(src)
		from  int
	)
	for _, f := range r.found {
		out.WriteString(string(runes[from:f.at]))
		out.WriteString(f.text)
		from = f.at + f.length
	}
	return out.String() + string(runes[from:]), nil
}

// plainParser knows no macros, so that the tree is the text: a loop is a call whose first argument is its variable.
var plainParser = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewCustomEnv(cel.OptionalTypes(), cel.ClearMacros(),
		cel.ParserRecursionLimit(maxNesting), cel.ParserErrorRecoveryLimit(1), cel.ExpressionNodeLimit(maxNodes))
})

type renaming struct {
	to    func(name string) string
	tree  *ast.AST
	found []replacement
}

// replacement is a place in the text, counted in characters.
type replacement struct {
	at, length int
	text       string
}

// loops are the macros whose first argument is a variable of the others, and how many arguments each can have.
var loops = map[string][]int{
	"all": {2}, "exists": {2}, "exists_one": {2}, "existsOne": {2}, "filter": {2}, "map": {2, 3},
	"sortBy": {2}, "optMap": {2}, "optFlatMap": {2},
}

// libraries are the names in front of functions that are not variables; nil: before any.
var libraries = map[string][]string{
	"math": nil, "cel": {"bind"}, "lists": {"range"}, "strings": {"quote"}, "sets": {"contains", "equivalent", "intersects"},
	"optional": {"of", "ofNonZeroValue", "none"},
}

func (r *renaming) visit(e ast.Expr, hidden []string) {
	switch e.Kind() {
	case ast.IdentKind:
		r.rename(e, hidden)
	case ast.SelectKind:
		r.visit(e.AsSelect().Operand(), hidden)
	case ast.CallKind:
		r.call(e.AsCall(), hidden)
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			r.visit(element, hidden)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.visit(entry.AsMapEntry().Key(), hidden)
			r.visit(entry.AsMapEntry().Value(), hidden)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.visit(field.AsStructField().Value(), hidden)
		}
	}
}

func (r *renaming) call(c ast.CallExpr, hidden []string) {
	args := c.Args()
	if c.IsMemberFunction() {
		switch library, variable := nameOf(c.Target()), nameOf(first(args)); {
		case isOfLibrary(library, c.FunctionName()):
			if library == "cel" && len(args) == 3 && variable != "" {
				r.visit(args[1], hidden)
				hidden, args = append(slices.Clip(hidden), variable), args[2:]
			}
		case variable != "" && slices.Contains(loops[c.FunctionName()], len(args)):
			r.visit(c.Target(), hidden)
			hidden, args = append(slices.Clip(hidden), variable), args[1:]
		default:
			r.visit(c.Target(), hidden)
		}
	}
	for _, arg := range args {
		r.visit(arg, hidden)
	}
}

func (r *renaming) rename(e ast.Expr, hidden []string) {
	name := strings.TrimPrefix(e.AsIdent(), ".")
	if slices.Contains(hidden, name) && name == e.AsIdent() {
		return
	}
	if text := r.to(name); text != "" {
		place, _ := r.tree.SourceInfo().GetOffsetRange(e.ID())
		r.found = append(r.found, replacement{int(place.Start), len(name), text})
	}
}

func nameOf(e ast.Expr) string {
	if e == nil || e.Kind() != ast.IdentKind {
		return ""
	}
	return e.AsIdent()
}

func first(args []ast.Expr) ast.Expr {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

func isOfLibrary(name, function string) bool {
	functions, ok := libraries[name]
	return ok && (functions == nil || slices.Contains(functions, function))
}
