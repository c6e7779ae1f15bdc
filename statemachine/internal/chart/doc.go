// Package chart is a compiled definition as plain data: its tree of nodes with their transitions, actions, rules, templates and texts, and
// what can be said of it without an instance. It does not know the file that it was read from; package statemachine runs the actions.
package chart
