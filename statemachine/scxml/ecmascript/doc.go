// Package ecmascript rewrites the small expressions of ECMAScript that stand in SCXML files to CEL.
//
//	text ── Parse ──► Expression ── Condition, Value, Text, Place ──► CEL
//
// It knows literals, variables, members, operators, conditional expressions, In(…) and a few functions of the standard library. What runs
// code of its own (functions, assignments, new) is refused with a reason. A text that is no expression at all fails in ECMAScript only
// when it runs; it becomes a call that no language has, which fails when it runs as well.
//
// What differs from ECMAScript: undefined is null; == does not convert its operands; + joins a text with something else only where one
// side is known to be a text. statemachine/DEFINITION.md, "Expressions of ECMAScript", has the table.
package ecmascript
