// Package scxml reads and writes definitions in W3C SCXML (Recommendation of 1 September 2015).
//
//	SCXML ── Import ──► definitions (YAML), with semantics: scxml
//	SCXML ◄── Export ── a definition
//
// Import makes one definition of a document, and one more of each document that an invoke has inside. Its expressions are CEL
// (datamodel="cel"), or the small ones of ECMAScript, which package ecmascript rewrites. What a definition cannot express is a fault with
// its line; what has no effect, such as the layout of an editor, is left out with a note.
//
// Export writes what SCXML can express as SCXML. What only a definition has is an attribute of the namespace of troupe where it
// decides what the chart does, so that Import reads it again; what is no part of the chart (rights, webhooks, schedules) is left out, with
// a note. statemachine/DEFINITION.md, "Coming from and going to other tools", has the tables.
//
// Both are pure functions and safe for concurrent use.
package scxml
