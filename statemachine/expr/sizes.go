package expr

import (
	"slices"

	"cel.dev/cel-go/common/cost"

	"troupe/statemachine/expr/internal/functions"
)

// The sizes that are assumed of names, beside those of functions.AssumedSize.
const (
	assumedNames    = 100 // roles, privileges, states
	assumedNameSize = 128 // ids, names
	leastSize       = 10
)

type sizes struct{}

// EstimateSize implements cost.Estimator. Values inside the elements of a list are assumed to be ten times smaller than the list.
// Otherwise every loop in a loop would be refused, although data of that size could not even be sent.
func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	path := n.Path()
	if len(path) == 0 {
		return functions.UpTo(functions.AssumedPartSize) // something computed
	}
	if n.Expr() == nil && tooDeep(path) {
		return nil
	}
	switch path[0] {
	case userRoot, instanceRoot, parentRoot:
		if last := path[len(path)-1]; slices.Contains([]string{"roles", "privileges", "states"}, last) {
			return functions.UpTo(assumedNames)
		}
		return functions.UpTo(assumedNameSize)
	case eventRoot:
		if len(path) == 2 && path[1] != "data" {
			return functions.UpTo(assumedNameSize)
		}
	}
	size := uint64(functions.AssumedSize)
	for _, segment := range path {
		if segment[:1] == "@" && size > leastSize {
			size /= 10
		}
	}
	return functions.UpTo(size)
}

// tooDeep ends cel-go's probing for lists in lists in lists of unknown data.
func tooDeep(path []string) bool {
	n := len(path)
	return n >= 4 && path[n-1][:1] == "@" && path[n-2][:1] == "@" && path[n-3][:1] == "@"
}

// EstimateCallCost implements cost.Estimator: as the models say.
func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}
