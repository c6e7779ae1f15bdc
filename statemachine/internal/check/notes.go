package check

import (
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
)

// Notes are what reading a file has found that only the whole of it can evaluate.
type Notes struct {
	Definition *chart.Definition
	Stored     bool           // the text was accepted before
	Tree       *document.Node // the whole file
	ReadAt     *document.Node // the rule who reads; nil: none

	Taking      []*document.Node // the names of events in on
	Raised      []RaisedEvent
	Sent        []string         // ids of delayed events
	Cancelled   []*document.Node // ids that a cancel names
	Programs    []PlacedProgram
	Guards      []PlacedProgram  // those of programs that are conditions
	Timed       []PlacedProgram  // those that are delays
	Slips       []*document.Node // texts in actions that have "${" and are not expressions
	SchemaNodes []*document.Node
}

// PlacedProgram is an expression and where it stands.
type PlacedProgram struct {
	At      *document.Node
	Program *expr.Program
}

// RaisedEvent is an event that the file sends itself, and where it does.
type RaisedEvent struct {
	At       *document.Node
	Name     chart.EventName
	ByAction bool // or it says what happens to something
}

// IsSCXML reports whether the rules of SCXML hold.
func (n *Notes) IsSCXML() bool { return n.Definition.Semantics == chart.SCXMLSemantics }

// Checker looks at a chart that was read, and at the notes.
type Checker struct {
	*document.Collector
	*Notes
}
