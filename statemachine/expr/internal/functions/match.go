package functions

import (
	"fmt"
	"regexp"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"troupe/statemachine/internal/pattern"

	"troupe/statemachine/expr/internal/values"
)

// The library compiles a regular expression before it looks at its size, and charges a match by the length of the
// expression: (a{9}){99} has nine bytes and 891 instructions, which all look at each character of the text. So
// matches is measured here, before it is compiled and before it begins.

const (
	// PatternBytesMax is how long a regular expression from the data may be.
	PatternBytesMax = 256
	matchMax        = 1_000_000
)

// patternLimit is the cel.ASTValidator of regular expressions that an expression writes.
type patternLimit struct{}

func (patternLimit) Name() string { return "troupe.patterns" }

func (patternLimit) Validate(_ *cel.Env, _ cel.ValidatorConfig, tree *ast.AST, issues *cel.Issues) {
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != overloads.Matches {
			return
		}
		args := e.AsCall().Args()
		at := args[len(args)-1]
		text, written := LiteralText(at)
		if !written {
			return
		}
		if _, err := pattern.Of(text); err != nil {
			issues.ReportErrorAtID(at.ID(), "the pattern: %v", err)
		}
	}))
}

// WrittenPatterns compile the patterns that are written in the expression, in place of the library's.
func WrittenPatterns() (both []*interpreter.RegexOptimization) {
	for _, id := range []string{overloads.Matches, overloads.MatchesString} {
		both = append(both, &interpreter.RegexOptimization{
			Function: overloads.Matches, OverloadID: id, RegexIndex: 1,
			Factory: func(call interpreter.InterpretableCall, text string) (interpreter.InterpretableCall, error) {
				re, cost, err := pattern.Compile(text)
				if err != nil {
					return nil, err
				}
				return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
					return match(re, cost.Size, args[0])
				}), nil
			},
		})
	}
	return both
}

// MatchDynamic is matches for a pattern that is not written in the expression.
// The pattern may come from a caller, so it is kept small.
func MatchDynamic(args ...ref.Val) ref.Val {
	text, ok := args[1].(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[1])
	}
	if len(text) > PatternBytesMax {
		return types.NewErr("the pattern has more than %d bytes", PatternBytesMax)
	}
	re, cost, err := pattern.Compile(string(text))
	if err != nil {
		return types.WrapErr(fmt.Errorf("bad pattern: %w", err))
	}
	return match(re, cost.Size, args[0])
}

func match(re *regexp.Regexp, size int, text ref.Val) ref.Val {
	s, ok := text.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(text)
	}
	if pattern.Match(size, len(s)) > matchMax {
		values.Stop(fmt.Sprintf("a match of a text of %d bytes costs more than %d", len(s), matchMax))
	}
	return types.Bool(re.MatchString(string(s)))
}

// LiteralText returns the text that e writes, and false when e is not a literal.
func LiteralText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
