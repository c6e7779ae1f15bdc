package expr

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"

	"troupe/statemachine/expr/internal/functions"
	"troupe/statemachine/expr/internal/limits"
)

// Compile checks and plans an expression of any type. The error is a *CompileError.
func (e *Env) Compile(src string) (*Program, error) {
	return e.compile(src, func(*cel.Type) bool { return true })
}

// CompileBool is Compile for a condition: the expression's type has to be bool, or one that is known only with the data.
func (e *Env) CompileBool(src string) (*Program, error) {
	return e.compile(src, func(t *cel.Type) bool { return t.IsAssignableType(cel.BoolType) })
}

// compile does what both exported calls do; fits decides about the type of the result. The order of the steps is that of the
// reader's interest: what is wrong with the text, with the types, with the profile, with the cost.
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
	options := []cel.ProgramOption{cel.CustomDecoratorV2(limits.Plan), cel.EvalOptions(cel.OptOptimize), cel.OptimizeRegex(functions.WrittenPatterns()...)}
	counting := append(slices.Clone(options), cel.CostTracking(limits.Meter{Patterns: i.patterns}), cel.CostLimit(e.options.CostMax))
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
