// Package limits bounds programs that cel-go has planned: Plan puts nodes in place of those
// that run in a random order or without a bound, and Meter charges what a call has cost
// (statemachine/expr/DESIGN.md, "What bounds an evaluation"). It knows no variables.
package limits
