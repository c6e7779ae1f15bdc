package functions

import (
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"troupe/statemachine/expr/internal/values"
)

const (
	maxRange = 10_000

	// maxComparedBytes bounds how many bytes of lists and maps one call compares
	// with each other. For these it has to try all pairs.
	maxComparedBytes = 64 << 20

	// SortByKeys is the function behind the macro sortBy.
	SortByKeys = "@sortByAssociatedKeys"
)

// collectionFunctions replaces the functions of the lists and sets libraries that compare all pairs. Two lists of a few 100,000
// elements fit into a request and would take hours in a single call. The functions here, and their costs, are linear for all
// elements that are not lists or maps.
func collectionFunctions() []cel.EnvOption {
	list := cel.ListType(cel.TypeParamType("T"))
	both := []*cel.Type{list, list}
	opts := []cel.EnvOption{
		cel.Function("distinct", cel.MemberOverload("list_distinct", []*cel.Type{list}, list, cel.UnaryBinding(distinct))),
		cel.CostModel(
			cost.MemberOverload("list_distinct",
				cost.EvalCost(cost.AllocList(cost.Scale(cost.Length(cost.Target()), 4))),
				cost.ResultSize(cost.Ranged(cost.Min(cost.Target(), cost.Const(1)), cost.Target()))),
			cost.Overload("lists_range",
				cost.EvalCost(cost.AllocList(cost.Length(cost.Result()))),
				cost.ResultSize(cost.List(cost.Min(cost.IntArg(0, maxRange), cost.Const(maxRange)), cost.Const(1)))),
		),
	}
	for name, op := range map[string]func(a, b ref.Val) ref.Val{
		"contains": containsAll, "intersects": intersects, "equivalent": equivalent,
	} {
		id := "list_sets_" + name + "_list"
		opts = append(opts,
			cel.Function("sets."+name, cel.Overload(id, both, cel.BoolType, cel.BinaryBinding(op))),
			cel.CostModel(cost.Overload(id, cost.EvalCost(pairCost(cost.Arg(0), cost.Arg(1))))))
	}
	for name, op := range map[string]func(a, b ref.Val) ref.Val{
		"hasAll": containsAll, "hasAny": intersects, "hasExactly": equivalent,
		"hasOnly": func(a, b ref.Val) ref.Val { return containsAll(b, a) },
	} {
		id := "list_" + name + "_list"
		opts = append(opts,
			cel.Function(name, cel.MemberOverload(id, both, cel.BoolType, cel.BinaryBinding(op))),
			cel.CostModel(cost.MemberOverload(id, cost.EvalCost(pairCost(cost.Target(), cost.Arg(0))))))
	}
	for _, t := range []*cel.Type{
		cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType,
		cel.DurationType, cel.TimestampType, cel.StringType, cel.BytesType,
	} {
		opts = append(opts, cel.CostModel(
			cost.MemberOverload(fmt.Sprintf("list_%s_sort", t.TypeName()),
				cost.EvalCost(sortCost(cost.Target())), cost.ResultSize(cost.Target())),
			cost.MemberOverload(fmt.Sprintf("list_%s_sortByAssociatedKeys", t.TypeName()),
				cost.EvalCost(sortCost(cost.Arg(0))), cost.ResultSize(cost.Target())),
		))
	}
	return opts
}

// pairCost is the cost of the functions over two lists: each element is put into a set or looked up there once.
func pairCost(a, b cost.QuantityExpr) cost.QuantityExpr {
	return cost.Sum(cost.Const(cost.CallCost), cost.Scale(cost.Sum(cost.Length(a), cost.Length(b)), 4))
}

// sortCost is n log n for any list that fits.
func sortCost(keys cost.QuantityExpr) cost.QuantityExpr {
	return cost.AllocList(cost.Scale(cost.Length(keys), 20))
}

// bag is a set of values under CEL's equality, which takes 1 and 1.0 for the same. It is used by one call and then dropped.
type bag struct {
	// scalars has the values under their scalarKey.
	scalars map[any][]ref.Val
	// others are the values without a key: lists, maps, timestamps. They are compared one by one.
	others []ref.Val
	// budget is how many bytes of others may still be compared.
	budget int
}

func newBag(size int) *bag {
	return &bag{scalars: make(map[any][]ref.Val, size), budget: maxComparedBytes}
}

func bagOf(l traits.Lister) *bag {
	b := newBag(int(l.Size().(types.Int)))
	for it := l.Iterator(); it.HasNext() == types.True; {
		b.put(it.Next())
	}
	return b
}

func scalarKey(v ref.Val) (any, bool) {
	switch v := v.(type) {
	case types.Int:
		return float64(v), true
	case types.Uint:
		return float64(v), true
	case types.Double:
		return float64(v), true // NaN is never found again, as it equals nothing
	case types.String:
		return string(v), true
	case types.Bool:
		return bool(v), true
	case types.Null:
		return nil, true
	}
	return nil, false
}

func (b *bag) put(v ref.Val) {
	if key, ok := scalarKey(v); ok {
		b.scalars[key] = append(b.scalars[key], v)
		return
	}
	b.others = append(b.others, v)
}

// has reports whether a value equal to v was put in. It stops the evaluation when that would take too long.
func (b *bag) has(v ref.Val) bool {
	if key, ok := scalarKey(v); ok {
		return holds(b.scalars[key], v)
	}
	if len(b.others) > 0 {
		weight, _ := values.Weigh(v)
		if b.budget -= weight * len(b.others); b.budget < 0 {
			values.Stop("too many lists or maps to compare with each other")
		}
	}
	return holds(b.others, v)
}

func holds(found []ref.Val, v ref.Val) bool {
	return slices.ContainsFunc(found, func(x ref.Val) bool { return types.Equal(v, x) == types.True })
}

func distinct(l ref.Val) ref.Val {
	seen := newBag(0)
	var kept []ref.Val
	for it := l.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		if v := it.Next(); !seen.has(v) {
			seen.put(v)
			kept = append(kept, v)
		}
	}
	return values.NewList(kept)
}

func containsAll(a, b ref.Val) ref.Val {
	set := bagOf(a.(traits.Lister))
	for it := b.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		if !set.has(it.Next()) {
			return types.False
		}
	}
	return types.True
}

func intersects(a, b ref.Val) ref.Val {
	set := bagOf(b.(traits.Lister))
	for it := a.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		if set.has(it.Next()) {
			return types.True
		}
	}
	return types.False
}

func equivalent(a, b ref.Val) ref.Val {
	return containsAll(a, b).(types.Bool) && containsAll(b, a).(types.Bool)
}

var (
	errNotSortable = errors.New("only numbers, texts, bools, timestamps, durations and bytes can be sorted")
	errMixedKeys   = errors.New("values of different types cannot be sorted")
)

// SortLists sorts its first argument by the values of its last, which may be the same. The library's own refuses a list with an
// int and a double, which JSON makes of [1, 1.5], and is not stable.
func SortLists(args ...ref.Val) ref.Val {
	elements, ok1 := args[0].(traits.Lister)
	keys, ok2 := args[len(args)-1].(traits.Lister)
	if !ok1 || !ok2 || elements.Size() != keys.Size() {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	type entry struct {
		key   traits.Comparer
		value ref.Val
	}
	entries := make([]entry, 0, int(elements.Size().(types.Int)))
	var first ref.Val
	for v, k := elements.Iterator(), keys.Iterator(); v.HasNext() == types.True; {
		key := k.Next()
		if first == nil {
			first = key
		}
		comparer, ok := key.(traits.Comparer)
		if !ok {
			return types.WrapErr(errNotSortable)
		}
		if key.Type() != first.Type() && (!isNumber(key) || !isNumber(first)) {
			return types.WrapErr(errMixedKeys)
		}
		entries = append(entries, entry{comparer, v.Next()})
	}
	var failed ref.Val
	slices.SortStableFunc(entries, func(a, b entry) int {
		c := a.key.Compare(b.key.(ref.Val))
		n, ok := c.(types.Int)
		if !ok && failed == nil {
			failed = c // NaN
		}
		return int(n)
	})
	if failed != nil {
		return failed
	}
	sorted := make([]ref.Val, len(entries))
	for i := range entries {
		sorted[i] = entries[i].value
	}
	return values.NewList(sorted)
}

func isNumber(v ref.Val) bool {
	switch v.(type) {
	case types.Int, types.Uint, types.Double:
		return true
	}
	return false
}
