package expr

import (
	"math"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// The sizes that are assumed when an expression is compiled. They are a guess
// about honest data, not a bound; what depends on them is counted again while
// running.
const (
	assumedSize     = 1_000 // lists, maps and strings in the data
	assumedPartSize = 100   // strings that were made of them
	assumedNames    = 100   // roles, privileges, states
	assumedNameSize = 128   // ids, names
	leastSize       = 10
)

// sizes is the cost.Estimator of compilation.
type sizes struct{}

// EstimateSize implements cost.Estimator. Values inside the elements of a list are
// assumed to be ten times smaller than the list. Otherwise every loop in a loop would
// be refused, although data of that size could not even be sent.
func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	path := n.Path()
	if len(path) == 0 {
		return upTo(assumedPartSize) // something computed
	}
	if n.Expr() == nil && tooDeep(path) {
		return nil
	}
	switch path[0] {
	case userRoot, instanceRoot, parentRoot:
		if last := path[len(path)-1]; slices.Contains([]string{"roles", "privileges", "states"}, last) {
			return upTo(assumedNames)
		}
		return upTo(assumedNameSize)
	case eventRoot:
		if len(path) == 2 && path[1] != "data" {
			return upTo(assumedNameSize)
		}
	}
	size := uint64(assumedSize)
	for _, segment := range path {
		if segment[:1] == "@" && size > leastSize {
			size /= 10
		}
	}
	return upTo(size)
}

// tooDeep ends cel-go's probing for lists in lists in lists of unknown data.
func tooDeep(path []string) bool {
	n := len(path)
	return n >= 4 && path[n-1][:1] == "@" && path[n-2][:1] == "@" && path[n-3][:1] == "@"
}

// upTo is a size of at most n.
func upTo(n uint64) *cost.SizeEstimate { return &cost.SizeEstimate{Max: n} }

// EstimateCallCost implements cost.Estimator: as the models say.
func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// estimates corrects the library's estimates where they refuse what is harmless.
func estimates() cel.EnvOption {
	opts := []cost.Option{cost.OverloadCostEstimate(overloads.InList, membership)}
	for id, standard := range cost.StandardOverloadEstimators() {
		if id == overloads.InList || id == overloads.ExtFormatString {
			continue // estimated here, and with textFunctions
		}
		// For the library a part of a computed value, x.?list[?0] or f(x)["key"], has
		// no size, and every call on it has no bound.
		opts = append(opts, cost.OverloadCostEstimate(id,
			func(e cost.Estimator, target *cost.AstNode, args []cost.AstNode) *cost.CallEstimate {
				estimate := standard(e, target, args)
				if estimate != nil && estimate.ResultSize != nil && estimate.ResultSize.Max == math.MaxUint64 {
					estimate.ResultSize = upTo(assumedSize)
				}
				return estimate
			}))
	}
	return cel.CostEstimatorOptions(opts...)
}

// membership estimates x in list. The library charges a whole unit for an element,
// which is three times too much and would refuse a list in a list.
func membership(e cost.Estimator, _ *cost.AstNode, args []cost.AstNode) *cost.CallEstimate {
	if len(args) != 2 {
		return nil
	}
	size := cost.EstimateSize(e, args[1])
	return &cost.CallEstimate{CostEstimate: cost.CallCostEstimate.Add(size.MultiplyByCostFactor(0.4))}
}

// meter is the cost.ActualCostEstimator of evaluations whose cost is tracked.
//
// NB: cel-go finds a call's cost by its overload. All our data is of unknown type,
// so that a call has no overload when several fit, and then costs 1. meter charges
// such calls by the sizes of their operands.
type meter struct {
	patterns map[string]int // the sizes of those that the expression writes
}

// CallCost implements cost.ActualCostEstimator. cel-go calls it after the call. nil
// leaves the cost to the models.
func (m meter) CallCost(function, overload string, args []ref.Val, _ ref.Val) *uint64 {
	switch function {
	case weighFunction:
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

// lighter returns the smaller weight of the two operands: a comparison ends with the
// shorter one.
func lighter(args []ref.Val) int {
	least := maxWeight
	for _, arg := range args {
		weight, _ := weigh(arg)
		least = min(least, weight-unitWeight)
	}
	return least
}

// heavier returns a tenth of the weight of all operands: each is read once.
func heavier(args []ref.Val) int {
	sum := 0
	for _, arg := range args {
		weight, _ := weigh(arg)
		sum += weight - unitWeight
	}
	return sum / 10
}
