package expr

import (
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"

	"troupe/statemachine/expr/internal/functions"
	"troupe/statemachine/internal/pattern"
)

// inspection walks once over a checked expression: it collects what the
// expression reads, and finds what the checker lets pass and the profile not.
type inspection struct {
	tree *ast.AST
	// reads are the names of all variables, those of macros included.
	reads []string
	// nodes are the literal operands of In.
	nodes         []string
	publicMembers []string // of svcPublic, that are named
	// privateMembers are the members of svcPrivate that are named, privateNamed
	// how often that happens, and privateUses how often svcPrivate stands there.
	privateMembers            []string
	privateNamed, privateUses int
	patterns                  map[string]int // the sizes of regular expressions that are written
	patternWeight             int
	matches                   bool // texts with regular expressions
	// bad is the first thing that the profile does not have.
	bad *CompileError
}

func (i *inspection) run() {
	ast.PreOrderVisit(i.tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if name := strings.TrimPrefix(e.AsIdent(), "."); !slices.Contains(i.reads, name) {
				i.reads = append(i.reads, name)
			}
			if isIdent(e, privateRoot) {
				i.privateUses++
			}
		case ast.SelectKind:
			i.member(e.AsSelect().Operand(), e.AsSelect().FieldName())
		case ast.StructKind:
			i.refuse(e, "only lists and maps can be written down, not "+e.AsStruct().TypeName())
		case ast.CallKind:
			i.call(e)
		}
	}))
}

// refuse notes that e is not allowed, unless something before it was not either.
func (i *inspection) refuse(e ast.Expr, reason string) {
	if i.bad == nil {
		i.bad = faultAt(i.tree.SourceInfo().GetStartLocation(e.ID()), plainType(reason))
	}
}

// fixedZone is a time zone that needs no table of the machine.
var fixedZone = regexp.MustCompile(`^(UTC|[+-]?[0-9]{2}:[0-9]{2})$`)

func (i *inspection) call(e ast.Expr) {
	call := e.AsCall()
	switch name := call.FunctionName(); {
	case name == operators.Index, name == operators.OptIndex, name == operators.OptSelect:
		if key, ok := functions.LiteralText(call.Args()[1]); ok {
			i.member(call.Args()[0], key)
		}
	case strings.HasPrefix(name, "get") && call.IsMemberFunction() && len(call.Args()) == 1:
		// NB: a named zone would be read from the machine's files, and its rules change with them.
		if zone, ok := functions.LiteralText(call.Args()[0]); !ok || !fixedZone.MatchString(zone) {
			i.refuse(e, `a time zone must be written as "UTC" or as an offset like "+02:00"`)
		}
	case name == overloads.Matches:
		i.matches = true
		args := call.Args()
		if text, ok := functions.LiteralText(args[len(args)-1]); ok {
			cost, _ := pattern.Of(text) // NB: the environment has checked it
			i.patternWeight += cost.Weight
			if i.patterns == nil {
				i.patterns = map[string]int{}
			}
			i.patterns[text] = cost.Size
		}
	}
}

func (i *inspection) member(of ast.Expr, name string) {
	switch {
	case isIdent(of, nodesRoot):
		i.nodes = append(i.nodes, name)
	case isIdent(of, publicRoot):
		if !slices.Contains(i.publicMembers, name) {
			i.publicMembers = append(i.publicMembers, name)
		}
	case isIdent(of, privateRoot):
		i.privateNamed++
		if !slices.Contains(i.privateMembers, name) {
			i.privateMembers = append(i.privateMembers, name)
		}
	}
}

func isIdent(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == name
}
