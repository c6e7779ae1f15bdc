// Package statemachine is troupe's pure core: workflow definitions, and what one event makes of one instance. It has no clock, disk,
// network, goroutine, log or randomness, so the same input always gives the same bytes; it does not store, send or schedule anything.
//
//	file ──Parser.Parse──► Definition ──Create──► Instance ──Step──► Instance, Entry
//	                                                  ▲                  │
//	                                 Definition.Restore            Definition.AppendRecord
//	                                                  │                  ▼
//	                                               Record ◄─ParseRecord─ bytes
//
// A definition is a Harel statechart: an implicit parallel root whose regions are the workflow's state machines. The algorithm is that of
// W3C SCXML, appendix D; the words of the file are those of XState; expressions are CEL. statemachine/DEFINITION.md has the format.
//
// Keep Definitions and share them. Ask CreateRight, ReadRight or SendRight before anything is loaded, and MayRead or MaySend with the
// instance. Create and Step return a new Instance and leave the old one as it was, or an error that changed nothing; they always end.
//
// A Creation says who creates: with a Caller alone somebody asked for it, and allow.create and the create block hold. With Internal as
// well, the service does it for that user, as for a schedule: allow.create holds, the create block does not. With Internal and no
// Caller the service does it, as for a child: neither holds.
package statemachine
