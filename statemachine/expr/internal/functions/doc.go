// Package functions is the operators and functions of expressions: those of CEL's standard library and of cel-go's extensions,
// and in their place what JSON's numbers, or a bound on one call, need otherwise (statemachine/DEFINITION.md, "Functions"). Each
// has a model of its cost. The package knows no variables and no programs.
package functions

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
)

// nestingMax is how deep loops may be nested or chained, and bindings as well.
// NB: cel-go's estimate of the cost takes twice as long for each binding more.
const nestingMax = 8

// Library is all of it.
func Library() ([]cel.EnvOption, error) {
	opts := []cel.EnvOption{
		cel.CrossTypeNumericComparisons(true),
		standardLibrary(),
		cel.OptionalTypes(), ext.Strings(), ext.Math(), ext.Sets(), ext.Bindings(ext.BindingsVersion(0)),
		ext.Lists(ext.ListsMaxRangeSize(maxRange)),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(),
			patternLimit{},
			cel.ValidateComprehensionNestingLimit(nestingMax), cel.ValidateBindNestingLimit(nestingMax)),
		estimates(),
	}
	opts = append(opts, arithmetic()...)
	opts = append(opts, rounding()...)
	opts = append(opts, sums()...)
	texts, err := textFunctions()
	if err != nil {
		return nil, fmt.Errorf("expression functions: %w", err)
	}
	opts = append(opts, texts...)
	return append(opts, collectionFunctions()...), nil
}
