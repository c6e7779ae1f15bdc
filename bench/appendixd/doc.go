// Command appendixd holds the statechart core against the interpreter of W3C SCXML, Appendix D, for as many steps as it is
// told (statemachine/DESIGN.md, "How the semantics are checked"):
//
//	go run ./bench/appendixd -steps 1000000 -o bench/results/NAME.md
//
// Case after case is drawn, from -seed on; the record says what they met, and how often. The first difference ends the
// command with an error: a case that was made as small as possible, with its seed. It plants no mistakes: the tests of
// package comparison do.
package main
