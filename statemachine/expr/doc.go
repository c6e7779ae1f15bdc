// Package expr is the expression language of workflow definitions: CEL with a profile for free-form JSON.
//
// A definition has expressions in guards, in rights and wherever a value is written as "${…}". They are compiled when the
// definition is loaded and then evaluated very often, so every fault of the text is found early, and an evaluation reads the JSON
// in place:
//
//	New ──► Env ── Compile, CompileBool ──► Program ── Bool, Value ──► result
//	         │                                 ▲
//	         └── With: an Env with more names  └── Scope: what the names mean
//
// What the caller must do:
//
//  1. Make one Env with [New] and share it. With adds the variables of a
//     foreach body.
//  2. Compile each text once and keep the Program.
//  3. Fill a [Scope] for an evaluation. It may be reused for the next one; a
//     Program keeps nothing of it.
//  4. An error of Bool or Value means that the expression failed on this data. The
//     text is without fault.
//
// # The profile
//
// Variables: event{name, id, data}, svcPublic, svcPrivate, user{id, roles, privileges}, instance{id, workflowId, version,
// createdAt, states}, now. The fields of event, user and instance are typed, so a misspelt one is an error at load. Outside of an
// event, event is null: reading a field is an error, has() is false. In("machine.node") tells whether a node is active.
//
// Numbers: a JSON number that is integral and fits int64 is an int, another one a double, so 1500.0 is an int and
// 12345678901234567890 a double. Arithmetic and comparisons take an int and a double together; 10 / 4 is 2, as two ints divide in
// CEL.
//
// A missing key is an error, as with every CEL map; has() and the optional select, svcPublic.?a.b.orValue(0), look before they
// read.
//
// Functions: the standard ones, and cel-go's strings, math, lists, sets, bindings and optional types (statemachine/DEFINITION.md,
// "Functions"; statemachine/expr/DESIGN.md, "What bounds an evaluation").
//
// # Results
//
// [Program.Value] gives JSON. A path into the input, like event.data.address, is returned as the very bytes of the input.
// Anything computed is written anew: ints as integers, doubles in their shortest form (1500.0 becomes 1500), maps with ascending
// keys, timestamps as RFC 3339 in UTC, durations as "90s", an empty optional as null. Bytes, NaN, infinities, types and maps with
// keys that are no strings have no JSON form and are an error.
//
// # Promises
//
//   - An evaluation is a pure function of the scope: no clock, no randomness, no
//     disk, also no time zone files. The same scope gives the same bytes, and the
//     same error text.
//   - It ends, and it stays small: the cost is bounded at load and, where that
//     depends on the data, while running; and no text, list or map that it makes
//     is larger than 4 MiB.
//   - Env and Program are safe for concurrent use; a Scope is not.
//   - Nothing panics, whatever the text and the data are.
package expr
