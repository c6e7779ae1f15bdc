package functions

import (
	"errors"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"

	"troupe/statemachine/expr/internal/values"
)

const (
	// maxFormatBytes is what the operands of format may weigh. A number of six bytes, 1e+300, can become a text of 400.
	maxFormatBytes = 256 << 10
)

// textFunctions replaces those functions of the strings library that can run for hours (indexOf compares every position with
// every character) or make a text of any size (replace and join multiply their operands) in a single call, before its cost is
// charged. Their overloads keep name and meaning.
func textFunctions() ([]cel.EnvOption, error) {
	format, err := libraryFormat()
	if err != nil {
		return nil, err
	}
	s, i, list := cel.StringType, cel.IntType, cel.ListType(cel.StringType)
	t := func(args ...*cel.Type) []*cel.Type { return args }
	return []cel.EnvOption{
		cel.Function("indexOf",
			cel.MemberOverload("string_index_of_string", t(s, s), i, cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				return indexOf(string(a.(types.String)), string(b.(types.String)), 0)
			})),
			cel.MemberOverload("string_index_of_string_int", t(s, s, i), i, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				return indexOf(string(args[0].(types.String)), string(args[1].(types.String)), args[2].(types.Int))
			}))),
		cel.Function("lastIndexOf",
			cel.MemberOverload("string_last_index_of_string", t(s, s), i, cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				text := string(a.(types.String))
				last := max(utf8.RuneCountInString(text)-1, 0)
				if b == types.String("") {
					last++
				}
				return lastIndexOf(text, string(b.(types.String)), types.Int(last))
			})),
			cel.MemberOverload("string_last_index_of_string_int", t(s, s, i), i, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				return lastIndexOf(string(args[0].(types.String)), string(args[1].(types.String)), args[2].(types.Int))
			}))),
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", t(s, s, s), s, cel.FunctionBinding(replace)),
			cel.MemberOverload("string_replace_string_string_int", t(s, s, s, i), s, cel.FunctionBinding(replace))),
		cel.Function("join",
			cel.MemberOverload("list_join", t(list), s, cel.UnaryBinding(func(l ref.Val) ref.Val { return join(l, "") })),
			cel.MemberOverload("list_join_string", t(list, s), s, cel.BinaryBinding(func(l, sep ref.Val) ref.Val {
				return join(l, string(sep.(types.String)))
			}))),
		cel.Function("format",
			cel.MemberOverload("string_format", t(s, cel.ListType(cel.DynType)), s, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				if weight, _ := values.Weigh(args[1]); weight > maxFormatBytes {
					values.Stop("too much to format")
				}
				return format(args...)
			}))),
		cel.CostModel(
			searchCost("string_index_of_string"), searchCost("string_index_of_string_int"),
			searchCost("string_last_index_of_string"), searchCost("string_last_index_of_string_int"),
			splitCost("string_split_string"), splitCost("string_split_string_int"),
			// The library charges a scan of the format, which is not what counts.
			cost.MemberOverload("string_format",
				cost.EvalCost(cost.Sum(cost.Const(cost.CallCost), cost.StringScan(cost.Length(cost.Target())), cost.Length(cost.Result()))),
				cost.ResultSize(cost.AtMost(cost.Sum(cost.Target(), cost.Mul(cost.Length(cost.Arg(0)), cost.Const(AssumedPartSize)))))),
		),
	}, nil
}

// libraryFormat returns the library's implementation of format.
func libraryFormat() (functions.FunctionOp, error) {
	e, err := cel.NewCustomEnv(ext.Strings())
	if err != nil {
		return nil, err
	}
	bindings, err := e.Functions()["format"].Bindings()
	if err != nil {
		return nil, err
	}
	for _, b := range bindings {
		if b.Function != nil {
			return b.Function, nil
		}
	}
	return nil, errors.New("the strings library has no format")
}

// searchCost is the cost of a linear search: both texts are read once.
func searchCost(overload string) cost.OverloadModel {
	return cost.MemberOverload(overload, cost.EvalCost(cost.Sum(cost.Const(cost.CallCost),
		cost.StringScan(cost.Sum(cost.Length(cost.Target()), cost.Length(cost.Arg(0)))))))
}

// splitCost is the library's, with parts of an assumed size: that each of 1000
// parts were as long as the whole text would forbid every loop over them.
func splitCost(overload string) cost.OverloadModel {
	return cost.MemberOverload(overload,
		cost.EvalCost(cost.AllocList(cost.StringScan(cost.Length(cost.Target())), cost.Length(cost.Result()))),
		cost.ResultSize(cost.List(cost.AtMost(cost.Sum(cost.Target(), cost.Const(1))), cost.AtMost(cost.Const(AssumedPartSize)))))
}

// indexOf returns the first position of part, counted in characters, at or after from, and -1 when there is none. A negative from
// is an error; the empty part is found everywhere. All this is as the library has it.
func indexOf(text, part string, from types.Int) ref.Val {
	return search(text, part, from, func(start int) int {
		at := strings.Index(text[start:], part)
		if at < 0 {
			return -1
		}
		return start + at
	})
}

// lastIndexOf returns the last position of part, counted in characters, at or before from, and -1 when there is none. A from
// behind the text finds nothing, which is odd, but what the library does.
func lastIndexOf(text, part string, from types.Int) ref.Val {
	return search(text, part, from, func(start int) int {
		return strings.LastIndex(text[:min(start+len(part), len(text))], part)
	})
}

// search returns the position that find returns for the offset of from; both of find's numbers are bytes.
func search(text, part string, from types.Int, find func(start int) int) ref.Val {
	if from < 0 {
		return types.NewErr("index out of range: %d", from)
	}
	start, ok := byteOffset(text, from)
	switch {
	case part == "":
		return min(from, types.Int(utf8.RuneCountInString(text)))
	case !ok:
		return types.Int(-1)
	}
	at := find(start)
	if at < 0 {
		return types.Int(-1)
	}
	return types.Int(utf8.RuneCountInString(text[:at]))
}

// byteOffset returns where the character at position i begins, and false with
// the length of the text when it has no such character.
func byteOffset(text string, i types.Int) (int, bool) {
	for at := range text {
		if i == 0 {
			return at, true
		}
		i--
	}
	return len(text), false
}

// replace is text.replace(old, with) and text.replace(old, with, limit); a
// negative limit is none. The size of the result is known before it is made.
func replace(args ...ref.Val) ref.Val {
	text, old, with := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String))
	limit := -1
	if len(args) == 4 {
		limit = int(args[3].(types.Int))
	}
	count := strings.Count(text, old)
	if limit >= 0 {
		count = min(count, limit)
	}
	if grows := len(with) - len(old); grows > 0 {
		// NB: each factor is at most values.WeightMax, so nothing overflows.
		values.CheckBytes(len(text) + count*grows)
	}
	return types.String(strings.Replace(text, old, with, limit))
}

// join puts the texts of a list together, with sep between them. It stops the evaluation as soon as the result gets too large.
func join(l ref.Val, sep string) ref.Val {
	var b strings.Builder
	between := ""
	for it := l.(traits.Lister).Iterator(); it.HasNext() == types.True; between = sep {
		s, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("join: an element is not a string")
		}
		values.CheckBytes(b.Len() + len(between) + len(s))
		b.WriteString(between)
		b.WriteString(string(s))
	}
	return types.String(b.String())
}
