// Package statemachine is troupe's pure core: workflow definitions, and what one event makes of one instance. It has no clock, disk,
// network, goroutine, log or randomness, so the same input always gives the same bytes.
//
//	file ──Parser.Parse──► Definition ──Create──► Instance ──Step──► Instance, Entry
//	                           ▲                     │                  │
//	                           └─────── Restore ◄── Record ◄── AppendRecord
//
// A definition is a Harel statechart: an implicit parallel root whose regions are the workflow's state machines. The algorithm is that of
// W3C SCXML, appendix D; the words of the file are those of XState; expressions are CEL (package expr). statemachine/DEFINITION.md has the
// format, the semantics and the deviations.
//
// # What the caller must do
//
//  1. Parse every file with one Parser; keep Definitions and share them.
//  2. Ask CreateRight, ReadRight or SendRight before anything is loaded, and
//     MayRead or MaySend with the instance.
//  3. Give Create and Step the time; they never look at a clock. They return a
//     new Instance and leave the old one as it was.
//  4. Keep the Instance as AppendRecord writes it, and each Entry beside it.
//
// # What it promises
//
// Step either returns a result or an error that changed nothing. It ends: at most 1,000 microsteps and 10,000 actions, each expression with
// a bounded cost. Free-form data stays bytes: numbers are never rounded and keys keep their order.
//
// It does not store, send or schedule anything.
package statemachine
