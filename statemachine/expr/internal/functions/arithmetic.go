package functions

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"troupe/statemachine/decimal"

	"troupe/statemachine/expr/internal/values"
)

// JSON has one kind of number and CEL has two that do not mix: amount * 2 would fail for an amount of 1.5, and amount * 2.0 for
// an amount of 1. So the five operators are taken out of the standard library and declared again: with their standard overloads,
// under the names that the cost model knows, and with the two mixes (statemachine/DEFINITION.md, "Numbers"). Doubles are
// calculated as the decimals that JSON writes, so that 0.1 * 3 is 0.3.

func standardLibrary() cel.EnvOption {
	var excluded []*env.Function
	for _, name := range []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo} {
		excluded = append(excluded, env.NewFunction(name))
	}
	return cel.StdLib(cel.StdLibSubset(env.NewLibrarySubset().AddExcludedFunctions(excluded...)))
}

// arithmetic declares + - * / and %.
func arithmetic() []cel.EnvOption {
	var (
		i, u, d = cel.IntType, cel.UintType, cel.DoubleType
		s, b    = cel.StringType, cel.BytesType
		at, dur = cel.TimestampType, cel.DurationType
		ts      = cel.ListType(cel.TypeParamType("T"))
	)
	o := func(id string, left, right, result *cel.Type) cel.FunctionOpt {
		return cel.Overload(id, []*cel.Type{left, right}, result)
	}
	// operator has the overloads of numbers, whose ids begin with the verb, and others.
	operator := func(name, verb string, binding func(a, b ref.Val) ref.Val, others ...cel.FunctionOpt) cel.EnvOption {
		return cel.Function(name, append(others,
			o(verb+"_int64", i, i, i), o(verb+"_uint64", u, u, u), o(verb+"_double", d, d, d),
			o(verb+"_int64_double", i, d, d), o(verb+"_double_int64", d, i, d),
			cel.SingletonBinaryBinding(binding))...)
	}
	return []cel.EnvOption{
		operator(operators.Add, "add", add,
			o(overloads.AddString, s, s, s), o(overloads.AddBytes, b, b, b), o(overloads.AddList, ts, ts, ts),
			o(overloads.AddTimestampDuration, at, dur, at), o(overloads.AddDurationTimestamp, dur, at, at),
			o(overloads.AddDurationDuration, dur, dur, dur)),
		operator(operators.Subtract, "subtract", mixing(decimal.Sub, traits.Subtractor.Subtract),
			o(overloads.SubtractTimestampTimestamp, at, at, dur), o(overloads.SubtractTimestampDuration, at, dur, at),
			o(overloads.SubtractDurationDuration, dur, dur, dur)),
		// An int that overflows is an error, a double becomes infinite.
		operator(operators.Multiply, "multiply", mixing(decimal.Mul, traits.Multiplier.Multiply)),
		// Two ints give an int, cut towards zero; division of an int by the int 0 is an error, of doubles it is infinite.
		operator(operators.Divide, "divide", mixing(decimal.Div, traits.Divider.Divide)),
		operator(operators.Modulo, "modulo", mixing(decimal.Mod, traits.Modder.Modulo)),
	}
}

// mixing returns an operator on the values that have a method for it, and on doubles. An int beside a double is one.
func mixing[T any](double func(a, b float64) float64, method func(T, ref.Val) ref.Val) func(a, b ref.Val) ref.Val {
	return func(a, b ref.Val) ref.Val {
		if x, y, ok := doubles(a, b); ok {
			return types.Double(double(x, y))
		}
		if x, ok := a.(T); ok {
			return method(x, b)
		}
		return types.MaybeNoSuchOverloadErr(a)
	}
}

// doubles returns both operands when one is a double and the other a double or an int.
func doubles(a, b ref.Val) (x, y float64, ok bool) {
	switch a := a.(type) {
	case types.Int:
		if b, ok := b.(types.Double); ok {
			return float64(a), float64(b), true
		}
	case types.Double:
		switch b := b.(type) {
		case types.Double:
			return float64(a), float64(b), true
		case types.Int:
			return float64(a), float64(b), true
		}
	}
	return 0, 0, false
}

// add is the operator +. Unlike the other three it makes values that are larger
// than what it was given, so it looks at the sizes first.
//
// NB: the macros map and filter collect their elements with it.
func add(a, b ref.Val) ref.Val {
	switch x := a.(type) {
	case types.String:
		if y, ok := b.(types.String); ok {
			values.CheckBytes(len(x) + len(y))
		}
	case types.Bytes:
		if y, ok := b.(types.Bytes); ok {
			values.CheckBytes(len(x) + len(y))
		}
	case traits.MutableLister:
		// A loop collects its result in it; the result is weighed at the end.
	case traits.Lister:
		if y, ok := b.(traits.Lister); ok {
			n, _ := values.Weigh(x)
			if n <= values.WeightMax {
				m, _ := values.Weigh(y)
				n += m
			}
			values.CheckBytes(n)
		}
	}
	return plus(a, b)
}

// plus is add without a limit.
var plus = mixing(decimal.Add, traits.Adder.Add)

func sums() []cel.EnvOption {
	list := []*cel.Type{cel.ListType(cel.TypeParamType("T"))}
	// A number far from the others takes longer than the usual one.
	costOf := func(l cost.QuantityExpr) []cost.OverloadModelOption {
		return []cost.OverloadModelOption{
			cost.EvalCost(cost.Sum(cost.Const(cost.CallCost), cost.Scale(cost.Length(l), 2))), cost.ResultSize(cost.Const(1)),
		}
	}
	return []cel.EnvOption{
		cel.Function("sum",
			cel.Overload("sum_list", list, cel.DynType, cel.UnaryBinding(sumOf)),
			cel.MemberOverload("list_sum", list, cel.DynType, cel.UnaryBinding(sumOf))),
		cel.CostModel(cost.Overload("sum_list", costOf(cost.Arg(0))...), cost.MemberOverload("list_sum", costOf(cost.Target())...)),
		cel.Function("math.sqrt", cel.Overload("math_sqrt_double", []*cel.Type{cel.DoubleType}, cel.DoubleType,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return types.Double(decimal.Sqrt(float64(v.(types.Double)))) }))),
	}
}

// sumOf adds up a list of numbers: exactly, rounded once at the end. Of ints alone it
// is an int, and an error when that overflows.
func sumOf(l ref.Val) ref.Val {
	list, ok := l.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(l)
	}
	var (
		ints   ref.Val = types.IntZero
		total  decimal.Total
		double bool
	)
	for it := list.Iterator(); it.HasNext() == types.True; {
		switch v := it.Next().(type) {
		case types.Int:
			if sum, ok := ints.(types.Int); ok {
				ints = sum.Add(v)
			}
			total.Add(float64(v))
		case types.Double:
			double = true
			total.Add(float64(v))
		default:
			return types.MaybeNoSuchOverloadErr(v)
		}
	}
	if double {
		return types.Double(total.Float())
	}
	return ints
}

// rounding lets the functions of the math library that take a double take an int as well, because 1500.0 of JSON is an int here.
// Rounding an int returns it, which is the same number in JSON.
func rounding() []cel.EnvOption {
	var opts []cel.EnvOption
	for _, name := range []string{"ceil", "floor", "round", "trunc"} {
		opts = append(opts, cel.Function("math."+name,
			cel.Overload("math_"+name+"_int", []*cel.Type{cel.IntType}, cel.IntType,
				cel.UnaryBinding(func(v ref.Val) ref.Val { return v }))))
	}
	for name, answer := range map[string]types.Bool{"isInf": types.False, "isNaN": types.False, "isFinite": types.True} {
		opts = append(opts, cel.Function("math."+name,
			cel.Overload("math_"+name+"_int", []*cel.Type{cel.IntType}, cel.BoolType,
				cel.UnaryBinding(func(ref.Val) ref.Val { return answer }))))
	}
	return opts
}
