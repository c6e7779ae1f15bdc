package limits

import (
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"troupe/statemachine/expr/internal/functions"
	"troupe/statemachine/expr/internal/values"
)

// Plan replaces the nodes of a program that cel-go would evaluate in a random order or without a bound. It sees each node after
// its operands.
//
// Lists and maps that the expression writes down, and the results of loops and bindings, are weighed. The result of every other
// function is at most as large as its operands, except for those that add, which have their own checks.
func Plan(n interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch node := n.(type) {
	case interpreter.InterpretableConst, interpreter.InterpretableAttribute:
		return n, nil
	case interpreter.InterpretableConstructor:
		return planConstructor(node), nil
	case interpreter.InterpretableCall:
		return planCall(node), nil
	}
	return &weighed{n}, nil
}

// planConstructor takes a list or a map that is written down. A constant map is made here, once.
func planConstructor(n interpreter.InterpretableConstructor) interpreter.InterpretableV2 {
	constant := true
	for _, operand := range n.InitVals() {
		if _, ok := operand.(interpreter.InterpretableConst); !ok {
			constant = false
		}
	}
	if n.Type() != types.MapType {
		if constant {
			return n // cel-go folds it, and makes a set of it for the operator in
		}
		return &weighed{n}
	}
	m := &mapNode{n}
	if constant {
		if v := interpreter.EvalActivation(interpreter.EmptyActivation(), m.Exec); !types.IsError(v) {
			return interpreter.NewConstValue(n.ID(), v)
		}
	}
	return m
}

// planCall takes a function call. Those that package functions declares again need nothing here. The ones below cannot be
// declared again: cel-go binds them for all overloads at once, or their operands decide.
func planCall(n interpreter.InterpretableCall) interpreter.InterpretableV2 {
	replaced := func(impl func(...ref.Val) ref.Val) interpreter.InterpretableV2 {
		return interpreter.NewCall(n.ID(), n.Function(), n.OverloadID(), n.Args(), impl)
	}
	switch n.Function() {
	case "format", "strings.quote":
		return &weighed{n}
	case "sort", functions.SortByKeys:
		return replaced(functions.SortLists)
	case overloads.Matches:
		if _, constant := n.Args()[1].(interpreter.InterpretableConst); !constant {
			return replaced(functions.MatchDynamic) // functions.WrittenPatterns has the others
		}
	}
	return n
}

type weighed struct{ interpreter.InterpretableV2 }

// Exec implements interpreter.InterpretableV2.
func (w *weighed) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return values.Checked(frame, w.ID(), w.InterpretableV2.Exec(frame))
}

// Eval implements interpreter.Interpretable.
func (w *weighed) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, w.Exec)
}

// mapNode is a node that makes a map. It gives the map an order and weighs it.
type mapNode struct{ interpreter.InterpretableV2 }

// Exec implements interpreter.InterpretableV2.
func (n *mapNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableV2.Exec(frame)
	m, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	return values.Checked(frame, n.ID(), values.NewMapping(m))
}

// Eval implements interpreter.Interpretable.
func (n *mapNode) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, n.Exec)
}
