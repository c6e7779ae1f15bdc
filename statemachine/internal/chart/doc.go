// Package chart is a compiled definition as plain data: its tree of nodes with their transitions, actions, rules, templates
// and texts, and what can be said of it without an instance: which positions and events there are, what people see, who
// may do what as far as that is known.
//
// It does not know the file that it was read from, who checks it, or what an event makes of an instance: actions are
// data here, and package statemachine takes them.
package chart
