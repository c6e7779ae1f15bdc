// Package values is JSON as CEL values, and what a value weighs. An object or a list is read in its bytes, and only as far as an
// expression looks into it; a map that an expression makes is walked in the order of its keys. Whatever would be too large stops
// the evaluation. The package knows no variables and no functions.
package values
