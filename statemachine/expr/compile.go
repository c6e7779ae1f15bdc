package expr

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"troupe/statemachine/internal/pattern"
)

// Compile checks and plans an expression of any type. The error is a
// *CompileError.
func (e *Env) Compile(src string) (*Program, error) {
	return e.compile(src, func(*cel.Type) bool { return true })
}

// CompileBool is Compile for a condition: the expression's type has to be bool,
// or one that is known only with the data.
func (e *Env) CompileBool(src string) (*Program, error) {
	return e.compile(src, func(t *cel.Type) bool { return t.IsAssignableType(cel.BoolType) })
}

// compile does what both exported calls do; fits decides about the type of the
// result. The order of the steps is that of the reader's interest: what is wrong
// with the text, with the types, with the profile, with the cost.
func (e *Env) compile(src string, fits func(*cel.Type) bool) (p *Program, err error) {
	defer func() {
		if r := recover(); r != nil { // a fault of the library, not to be passed on
			p, err = nil, fault("internal error: %v", r)
		}
	}()
	switch {
	case strings.TrimSpace(src) == "":
		return nil, fault("an expression is missing")
	case len(src) > maxSourceBytes:
		return nil, fault("longer than %d bytes", maxSourceBytes)
	case !utf8.ValidString(src):
		return nil, fault("not UTF-8")
	}
	checked, issues := e.check(src)
	if issues.Err() != nil {
		return nil, allIssues(src, issues.Errors())
	}
	if t := checked.OutputType(); !fits(t) {
		return nil, fault("the result must be a bool, not %s", plainType(t.String()))
	}
	tree := checked.NativeRep()
	i := &inspection{tree: tree}
	if i.run(); i.bad != nil {
		return nil, i.bad
	}
	worst, err := e.worstCase(checked)
	if err != nil {
		return nil, err
	}
	options := []cel.ProgramOption{cel.CustomDecoratorV2(plan), cel.EvalOptions(cel.OptOptimize), cel.OptimizeRegex(writtenPatterns()...)}
	counting := append(slices.Clone(options), cel.CostTracking(meter{i.patterns}), cel.CostLimit(e.options.CostMax))
	counted, err := e.cel.Program(checked, counting...)
	if err != nil {
		return nil, fault("%v", err)
	}
	planned := counted
	if worst <= e.options.TrackAbove && !i.matches { // NB: the library's worst case knows no instructions
		if planned, err = e.cel.Program(checked, options...); err != nil {
			return nil, fault("%v", err)
		}
	}
	return &Program{
		source:  src,
		program: planned, counted: counted, path: pathOf(tree.Expr()).fixedBy(e.constants),
		reads: i.reads, reading: readingOf(i.reads), nodes: i.nodes,
		publicMembers: i.publicMembers, privateMembers: i.privateMembers, privateWhole: i.privateUses > i.privateNamed, patternWeight: i.patternWeight,
		named: namedBy(tree.Expr(), e.constants),
	}, nil
}

// worstCase returns the cost of an evaluation on data of the assumed sizes, or a
// *CompileError when it is above the limit.
func (e *Env) worstCase(checked *cel.Ast) (uint64, error) {
	estimate, err := e.cel.EstimateCost(checked, sizes{})
	if err != nil {
		return 0, fault("%v", err)
	}
	const assumption = "lists, maps and strings in the data are taken to have up to 1000 elements or characters"
	switch {
	case e.options.AnyWorstCase:
	case estimate.Max == math.MaxUint64:
		return 0, fault("too expensive: the worst-case cost has no bound, the limit is %d; %s", e.options.CostMax, assumption)
	case estimate.Max > e.options.CostMax:
		return 0, fault("too expensive: worst-case cost %d, the limit is %d; %s", estimate.Max, e.options.CostMax, assumption)
	}
	return estimate.Max, nil
}

// fault is a CompileError about the expression as a whole.
func fault(format string, args ...any) *CompileError {
	return &CompileError{Line: 1, Column: 1, Reason: oneLine(fmt.Sprintf(format, args...))}
}

// faultAt is a CompileError about one place. Locations of cel-go count lines
// from 1 and columns from 0; a node that was made by a macro may have none.
func faultAt(at common.Location, reason string) *CompileError {
	return &CompileError{Line: max(at.Line(), 1), Column: max(at.Column(), 0) + 1, Reason: oneLine(reason)}
}

// syntaxError begins what the parser says. All but its first are about how it went on.
const syntaxError = "Syntax error"

// allIssues returns the first of cel-go's errors, by position, and the others with it.
func allIssues(src string, issues []*cel.Error) *CompileError {
	slices.SortStableFunc(issues, byPlace)
	var first *CompileError
	for _, issue := range issues {
		one := faultAt(issue.Location, plainMessage(issue.Message))
		one.Fields = fieldsAsked(src, one)
		if first == nil {
			first = one
		} else if one.Reason != first.Reason && !strings.HasPrefix(first.Reason, syntaxError) {
			first.More = append(first.More, one)
		}
	}
	return first
}

// firstIssue returns the first of cel-go's errors, by position.
func firstIssue(issues []*cel.Error) *CompileError {
	first := slices.MinFunc(issues, byPlace)
	return faultAt(first.Location, plainMessage(first.Message))
}

func byPlace(a, b *cel.Error) int {
	return cmp.Or(a.Location.Line()-b.Location.Line(), a.Location.Column()-b.Location.Column())
}

// unknownField is how the checker says that a variable has no such field.
const unknownField = "undefined field "

// lastWord is the name that ends a text.
var lastWord = regexp.MustCompile(`\w+\s*$`)

// fieldsAsked returns the fields of the variable of which err says that it has no
// such one. The place of err is the dot behind the variable.
func fieldsAsked(src string, err *CompileError) []string {
	lines := strings.Split(src, "\n")
	if !strings.HasPrefix(err.Reason, unknownField) || err.Line > len(lines) {
		return nil
	}
	line := []rune(lines[err.Line-1])
	name := strings.TrimSpace(lastWord.FindString(string(line[:min(err.Column-1, len(line))])))
	of := map[string]*root{eventRoot: eventType, userRoot: userType, instanceRoot: instanceType, parentRoot: parentType}[name]
	if of == nil {
		return nil
	}
	var names []string
	for _, f := range of.fields {
		names = append(names, f.name)
	}
	return names
}

// endOfText is how the parser says that the expression ends too early.
const endOfText = "mismatched input '<EOF>'"

// What cel-go's messages have in them that means nothing to the author: the
// empty container, the parser's list of tokens, and the internal names of
// operators.
var (
	container   = regexp.MustCompile(` \(in container '[^']*'\)`)
	expectation = regexp.MustCompile(` expecting (\{.*\}|.*)$`)
	operator    = regexp.MustCompile(`_[^' a-z_]+_|@in|!_|-_`)
)

// plainMessage turns cel-go's wording into that of whoever wrote the expression:
// no overload for '_==_' becomes no overload for '=='.
func plainMessage(s string) string {
	s = container.ReplaceAllString(s, "")
	s = expectation.ReplaceAllString(s, "")
	s = strings.Replace(s, endOfText, "the expression is not complete", 1)
	s = operator.ReplaceAllStringFunc(s, func(internal string) string {
		if name, ok := operators.FindReverse(internal); ok && name != "" {
			return name
		}
		return internal
	})
	return plainType(s)
}

// typeNames are the internal names of types and what the documentation calls
// them.
var typeNames = strings.NewReplacer(
	"google.protobuf.Timestamp", "timestamp", "google.protobuf.Duration", "duration",
	eventType.name, "event", userType.name, "user", instanceType.name, "instance", parentType.name, "parent",
	"*expr.object", "map", "*expr.mapping", "map", "*expr.list", "list", "*expr.view", "variable",
)

// plainType replaces the internal names of types in s.
func plainType(s string) string { return typeNames.Replace(s) }

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

// run visits every node, outer ones first.
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

// call looks at a function call: In, and the parts of a timestamp.
func (i *inspection) call(e ast.Expr) {
	call := e.AsCall()
	switch name := call.FunctionName(); {
	case name == operators.Index, name == operators.OptIndex, name == operators.OptSelect:
		if key, ok := literalText(call.Args()[1]); ok {
			i.member(call.Args()[0], key)
		}
	case strings.HasPrefix(name, "get") && call.IsMemberFunction() && len(call.Args()) == 1:
		// NB: a named zone would be read from the machine's files, and its rules
		// change with them.
		if zone, ok := literalText(call.Args()[0]); !ok || !fixedZone.MatchString(zone) {
			i.refuse(e, `a time zone must be written as "UTC" or as an offset like "+02:00"`)
		}
	case name == overloads.Matches:
		i.matches = true
		args := call.Args()
		if text, ok := literalText(args[len(args)-1]); ok {
			cost, _ := pattern.Of(text) // NB: patternLimit has checked it
			i.patternWeight += cost.Weight
			if i.patterns == nil {
				i.patterns = map[string]int{}
			}
			i.patterns[text] = cost.Size
		}
	}
}

// member notes that a member of a variable is named.
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

// literalText returns the text that e writes, and false when e is no literal.
func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// isIdent reports whether e is the variable with that name.
func isIdent(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == name
}
