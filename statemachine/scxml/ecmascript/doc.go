// Package ecmascript rewrites the small expressions of ECMAScript that stand in SCXML files to CEL: literals, variables,
// members, operators, conditional expressions, In(…) and a few functions. What runs code of its own is refused with a
// reason. A text that is not an expression at all fails in ECMAScript only when it runs; it becomes a call that no language
// has. statemachine/DEFINITION.md, "Expressions of ECMAScript", has the table and what differs.
package ecmascript
