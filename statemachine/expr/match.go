package expr

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
)

// The library compiles a regular expression before it looks at its size, and charges a match by the length of the
// expression: (a{9}){99} has nine bytes and 891 instructions, which all look at each character of the text. So
// matches is measured here, before it is compiled and before it begins.

const (
	// maxPatternBytes is how long a regular expression from the data may be.
	maxPatternBytes = 256
	// maxMatch is what one match may cost.
	maxMatch = defaultCostMax
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
		text, written := literalText(at)
		if !written {
			return
		}
		if _, err := pattern.Of(text); err != nil {
			issues.ReportErrorAtID(at.ID(), "the pattern: %v", err)
		}
	}))
}

// writtenPatterns compile the patterns that are written in the expression, in place of the library's.
func writtenPatterns() (both []*interpreter.RegexOptimization) {
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

// matchDynamic is matches for a pattern that is not written in the expression.
// The pattern may come from a caller, so it is kept small.
func matchDynamic(args ...ref.Val) ref.Val {
	text, ok := args[1].(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[1])
	}
	if len(text) > maxPatternBytes {
		return types.NewErr("the pattern has more than %d bytes", maxPatternBytes)
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
	if pattern.Match(size, len(s)) > maxMatch {
		stop(fmt.Sprintf("a match of a text of %d bytes costs more than %d", len(s), maxMatch))
	}
	return types.Bool(re.MatchString(string(s)))
}

// match is what matches has cost.
func (m meter) match(args []ref.Val) int {
	text, ok1 := args[0].(types.String)
	of, ok2 := args[1].(types.String)
	if !ok1 || !ok2 {
		return 0
	}
	if size, written := m.patterns[string(of)]; written {
		return pattern.Match(size, len(text))
	}
	if len(of) > maxPatternBytes {
		return 0
	}
	cost, _ := pattern.Of(string(of))
	return cost.Reading + pattern.Match(cost.Size, len(text))
}
