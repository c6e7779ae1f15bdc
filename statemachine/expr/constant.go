package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"troupe/statemachine/data"
	"troupe/statemachine/expr/internal/values"
)

// constantRoot is the variable whose members are the constants of Env.WithConstants.
const constantRoot = "const"

// WithConstants returns an Env in which the members of an object are constants: const.name, with the type of its value. e does
// not change. The values are compiled into the programs, so that an evaluation does not look for them. Errors wrap ErrName: a
// name is not an identifier, or is a word of the language.
func (e *Env) WithConstants(values data.Value) (*Env, error) {
	names, constants := slices.Clone(e.names), map[string]data.Value{}
	var opts []cel.EnvOption
	for key, v := range values.Members() {
		if !IsName(key) {
			return nil, fmt.Errorf("%w: %s", ErrName, oneLine(key))
		}
		name := constantRoot + "." + key
		typ, val := constantOf(v)
		opts = append(opts, cel.Constant(name, typ, val))
		names = append(names, name)
		constants[name] = v
	}
	return e.extended(names, constants, opts)
}

// constantOf returns the type and the value of a constant. Unlike values.FromData it
// reads everything at once: all evaluations share the value.
func constantOf(v data.Value) (*cel.Type, ref.Val) {
	switch v.Kind() {
	case data.Object:
		members := map[ref.Val]ref.Val{}
		elem := commonType{}
		for key, member := range v.Members() {
			typ, val := constantOf(member)
			elem.add(typ)
			members[types.String(key)] = val
		}
		return cel.MapType(cel.StringType, elem.typ()), values.NewMapping(types.NewRefValMap(types.DefaultTypeAdapter, members))
	case data.Array:
		elements := []ref.Val{}
		elem := commonType{}
		for _, element := range v.Elements() {
			typ, val := constantOf(element)
			elem.add(typ)
			elements = append(elements, val)
		}
		return cel.ListType(elem.typ()), types.NewRefValList(types.DefaultTypeAdapter, elements)
	}
	val := values.FromData(v)
	return val.Type().(*types.Type), val
}

// commonType is the type that all elements have; dyn when they differ or there are none.
type commonType struct {
	first *cel.Type
	mixed bool
}

func (c *commonType) add(t *cel.Type) {
	if c.first == nil {
		c.first = t
	}
	c.mixed = c.mixed || !c.first.IsExactType(t)
}

func (c *commonType) typ() *cel.Type {
	if c.first == nil || c.mixed {
		return cel.DynType
	}
	return c.first
}

// token finds what could hold the word const without being the variable: texts, comments, and members of that name; else an
// identifier. Texts are CEL's: raw or not, in one or three quotes.
var token = regexp.MustCompile(`(?s)//[^\n]*` +
	`|[bB]?[rR](?:""".*?"""|'''.*?'''|"[^"\n]*"|'[^'\n]*')` +
	`|[bB]?(?:"""(?:\\.|[^\\])*?"""|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')` +
	`|\.\s*\??\s*[A-Za-z_][A-Za-z0-9_]*` +
	`|[A-Za-z_][A-Za-z0-9_]*`)

// parse parses src. CEL keeps the word const for itself and its parser refuses it as a variable, so the parser sees another word
// of the same length, and the tree that comes back has const again. Nothing changes its place.
func (e *Env) parse(src string) (*cel.Ast, *cel.Issues) {
	if e.constants == nil || !strings.Contains(src, constantRoot) {
		return e.cel.Parse(src)
	}
	standIn := standInFor(src)
	parsed, issues := e.cel.Parse(token.ReplaceAllStringFunc(src, func(found string) string {
		if found == constantRoot {
			return standIn
		}
		return found
	}))
	if issues.Err() != nil {
		return nil, issues
	}
	factory := ast.NewExprFactory()
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() == ast.IdentKind && x.AsIdent() == standIn {
			x.SetKindCase(factory.NewIdent(x.ID(), constantRoot))
		}
	}))
	return parsed, issues
}

func standInFor(src string) string {
	for i := 0; ; i++ {
		if word := fmt.Sprintf("c%04d", i); !strings.Contains(src, word) {
			return word
		}
	}
}
