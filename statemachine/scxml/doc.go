// Package scxml reads and writes definitions in W3C SCXML (Recommendation of 1 September 2015). Import makes one
// definition of a document, and one more of each document that an invoke has inside. Export writes what SCXML can express;
// what only a definition has is an attribute of troupe's namespace where it decides what the chart does. What cannot be
// expressed is a fault with its line, or is left out with a note: statemachine/DEFINITION.md, "Coming from and going to
// other tools". Both are pure and safe for concurrent use.
package scxml
