package limits

import (
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"troupe/statemachine/expr/internal/functions"
	"troupe/statemachine/expr/internal/values"
	"troupe/statemachine/internal/pattern"
)

// Meter is the cost.ActualCostEstimator of evaluations whose cost is tracked.
//
// NB: cel-go finds a call's cost by its overload. All our data is of unknown type, so that a call has no overload when several
// fit, and then costs 1. Meter charges such calls by the sizes of their operands.
type Meter struct {
	Patterns map[string]int // the sizes of those that the expression writes
}

// CallCost implements cost.ActualCostEstimator. cel-go calls it after the call. nil leaves the cost to the models.
func (m Meter) CallCost(function, overload string, args []ref.Val, _ ref.Val) *uint64 {
	switch function {
	case values.WeighFunction:
		return charge(int(args[0].(types.Int)) / 8)
	case operators.Equals, operators.NotEquals:
		return charge(lighter(args) / 10)
	case operators.In:
		if _, keyed := args[1].(traits.Mapper); keyed {
			return charge(0)
		}
		return charge(heavier(args[1:]))
	case operators.Add:
		if _, growing := args[0].(traits.MutableLister); growing {
			return charge(0)
		}
		return charge(heavier(args))
	case overloads.Matches:
		return charge(m.match(args))
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return charge(lighter(args) / 10)
	}
	if overload == "" {
		return charge(heavier(args))
	}
	return nil
}

// charge is a cost of n beside that of the call itself.
func charge(n int) *uint64 {
	c := uint64(max(n, 0)) + cost.CallCost
	return &c
}

// lighter returns the smaller weight of the two operands: a comparison ends with the shorter one.
func lighter(args []ref.Val) int {
	least := values.WeightMax
	for _, arg := range args {
		weight, _ := values.Weigh(arg)
		least = min(least, weight-values.UnitWeight)
	}
	return least
}

// heavier returns a tenth of the weight of all operands: each is read once.
func heavier(args []ref.Val) int {
	sum := 0
	for _, arg := range args {
		weight, _ := values.Weigh(arg)
		sum += weight - values.UnitWeight
	}
	return sum / 10
}

// match is what matches has cost.
func (m Meter) match(args []ref.Val) int {
	text, ok1 := args[0].(types.String)
	of, ok2 := args[1].(types.String)
	if !ok1 || !ok2 {
		return 0
	}
	if size, written := m.Patterns[string(of)]; written {
		return pattern.Match(size, len(text))
	}
	if len(of) > functions.PatternBytesMax {
		return 0
	}
	cost, _ := pattern.Of(string(of))
	return cost.Reading + pattern.Match(cost.Size, len(text))
}
