// Package expr is the expression language of workflow definitions: CEL over free-form JSON that is read in place. Make one Env with [New],
// compile each text once, and evaluate the Program with a [Scope]: an error then means that the expression failed on this data.
//
// An evaluation is a pure function of the scope: no clock, no disk, not even time zone files. It is bounded in cost and in what it makes
// (statemachine/expr/DESIGN.md, "What bounds an evaluation"). Env and Program are safe for concurrent use; a Scope is not.
package expr
