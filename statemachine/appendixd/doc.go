// Package appendixd is a second interpreter of statecharts: slow, obvious, and written from the pseudo-code of W3C SCXML
// (Recommendation of 1 September 2015), Appendix D, procedure by procedure. Package statemachine is held against it
// (statemachine/DESIGN.md, "How the semantics are checked").
//
// It shares no code with package statemachine. A chart is a tree of states (Chart), a set of states is a list, and every
// question is answered by walking the tree. Procedures have the names of the Recommendation. Where the format of our
// definitions deviates from SCXML (statemachine/DEFINITION.md, "Deviations from SCXML"), the procedure calls a function of
// deviation.go, which says what and why; no other file knows a deviation.
//
//	in, report := chart.Interpret(now, variables)
//	in, report = chart.Send(in, event, now)       // an event from outside
//	in, report = chart.Fire(in, position, now)    // a timer that is due
//
// Each call returns a new Instance and leaves the one before as it was.
//
// A Mistake makes the interpreter wrong on purpose: the comparison must find each of them.
package appendixd
