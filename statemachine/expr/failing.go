package expr

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types/ref"
)

// Failing returns a program that fails with that error whenever it is evaluated. It stands for an expression that does not compile, in a
// language whose expressions fail only when they run.
func Failing(err error) *Program {
	p := failing{err: err}
	return &Program{program: p, counted: p}
}

type failing struct {
	cel.Program
	err error
}

// Eval implements cel.Program.
func (f failing) Eval(any) (ref.Val, *cel.EvalDetails, error) { return nil, nil, f.err }
