package functions

import (
	"math"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/overloads"
)

// The sizes that are assumed when an expression is compiled. They are a guess about honest data, not a bound; what depends on
// them is counted again while running.
const (
	AssumedSize     = 1_000 // lists, maps and strings in the data
	AssumedPartSize = 100   // strings that were made of them
)

// UpTo is a size of at most n.
func UpTo(n uint64) *cost.SizeEstimate { return &cost.SizeEstimate{Max: n} }

// estimates corrects the library's estimates where they refuse what is harmless.
func estimates() cel.EnvOption {
	opts := []cost.Option{cost.OverloadCostEstimate(overloads.InList, membership)}
	for id, standard := range cost.StandardOverloadEstimators() {
		if id == overloads.InList || id == overloads.ExtFormatString {
			continue // estimated here, and with textFunctions
		}
		// For the library a part of a computed value, x.?list[?0] or f(x)["key"], has no size, and every call on it has no bound.
		opts = append(opts, cost.OverloadCostEstimate(id,
			func(e cost.Estimator, target *cost.AstNode, args []cost.AstNode) *cost.CallEstimate {
				estimate := standard(e, target, args)
				if estimate != nil && estimate.ResultSize != nil && estimate.ResultSize.Max == math.MaxUint64 {
					estimate.ResultSize = UpTo(AssumedSize)
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
