package expr

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// JSON has one kind of number and CEL has two that do not mix: amount * 2 would fail
// for an amount of 1.5, and amount * 2.0 for an amount of 1. So the four operators are
// taken out of the standard library and declared again: with their standard overloads,
// under the names that the cost model knows, and with the two mixes
// (statemachine/DEFINITION.md, "Numbers").

// standardLibrary is CEL's standard library without what is declared here.
func standardLibrary() cel.EnvOption {
	var excluded []*env.Function
	for _, name := range []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide} {
		excluded = append(excluded, env.NewFunction(name))
	}
	return cel.StdLib(cel.StdLibSubset(env.NewLibrarySubset().AddExcludedFunctions(excluded...)))
}

// arithmetic declares + - * and /. The bindings serve all overloads of an
// operator, since the operands' types are seldom known before they are there.
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
		operator(operators.Subtract, "subtract", mixing(traits.Subtractor.Subtract),
			o(overloads.SubtractTimestampTimestamp, at, at, dur), o(overloads.SubtractTimestampDuration, at, dur, at),
			o(overloads.SubtractDurationDuration, dur, dur, dur)),
		// An int that overflows is an error, a double becomes infinite.
		operator(operators.Multiply, "multiply", mixing(traits.Multiplier.Multiply)),
		// Two ints give an int, cut towards zero; division of an int by the int 0 is an
		// error, of doubles it is infinite.
		operator(operators.Divide, "divide", mixing(traits.Divider.Divide)),
	}
}

// mixing returns an operator on the values that have a method for it, and on an int and
// a double together.
func mixing[T any](method func(T, ref.Val) ref.Val) func(a, b ref.Val) ref.Val {
	return func(a, b ref.Val) ref.Val {
		a, b = mix(a, b)
		if x, ok := a.(T); ok {
			return method(x, b)
		}
		return types.MaybeNoSuchOverloadErr(a)
	}
}

// mix makes both operands doubles when one is a double and the other an int. It leaves
// all other operands as they are; the operator then reports those that do not fit.
func mix(a, b ref.Val) (ref.Val, ref.Val) {
	switch x := a.(type) {
	case types.Int:
		if _, ok := b.(types.Double); ok {
			return types.Double(x), b
		}
	case types.Double:
		if y, ok := b.(types.Int); ok {
			return a, types.Double(y)
		}
	}
	return a, b
}

// add is the operator +. Unlike the other three it makes values that are larger
// than what it was given, so it looks at the sizes first.
//
// NB: the macros map and filter collect their elements with it.
func add(a, b ref.Val) ref.Val {
	switch x := a.(type) {
	case types.String:
		if y, ok := b.(types.String); ok {
			checkBytes(len(x) + len(y))
		}
	case types.Bytes:
		if y, ok := b.(types.Bytes); ok {
			checkBytes(len(x) + len(y))
		}
	case traits.MutableLister:
		// A loop collects its result in it; the result is weighed at the end.
	case traits.Lister:
		if y, ok := b.(traits.Lister); ok {
			n, _ := weigh(x)
			if n <= maxWeight {
				m, _ := weigh(y)
				n += m
			}
			checkBytes(n)
		}
	}
	return sum(a, b)
}

// sum is add without a limit.
var sum = mixing(traits.Adder.Add)

// rounding lets the functions of the math library that take a double take an int as
// well, because 1500.0 of JSON is an int here. Rounding an int returns it, which is
// the same number in JSON.
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
