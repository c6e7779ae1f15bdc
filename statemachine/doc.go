// Package statemachine is troupe's pure core: workflow definitions, and what one event makes of one instance. It has no clock, disk,
// network, goroutine, log or randomness, so the same input always gives the same bytes; it does not store, send or schedule anything.
//
//	file ──Parser.Parse──► Definition ──Create──► Instance ──Step──► Instance, Entry
//	                           ▲                     │                  │
//	                           └─────── Restore ◄── Record ◄── AppendRecord
//
// A definition is a Harel statechart: an implicit parallel root whose regions are the workflow's state machines. The algorithm is that of
// W3C SCXML, appendix D; the words of the file are those of XState; expressions are CEL. statemachine/DEFINITION.md has the format.
//
// Keep Definitions and share them. Ask CreateRight, ReadRight or SendRight before anything is loaded, and MayRead or MaySend with the
// instance. Create and Step return a new Instance and leave the old one as it was, or an error that changed nothing; they always end.
package statemachine
