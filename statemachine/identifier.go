package statemachine

import (
	"regexp"
	"unicode/utf8"
)

// WorkflowID names a workflow definition, for example "leave-request".
type WorkflowID string

// MachineID names one state machine of a workflow, or a region of a nested
// parallel node, which shows up in states like a machine of its own.
type MachineID string

// NodeID names a node of a state machine. It is unique within its machine.
type NodeID string

// EventName names an event, for example "approve" or "payment.received".
type EventName string

// identifier is the form of every identifier in paths and bodies
// (decisions: "Everywhere"). It leaves out ".", ".." and everything that a key,
// a log or a path could take for something else.
var identifier = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$`)

// nodeName is the form of state, machine and region names. It has no dot,
// because In("machine.node") splits there.
var nodeName = regexp.MustCompile(`^[\p{L}\p{N}_]([\p{L}\p{N}_~ -]{0,62}[\p{L}\p{N}_~-])?$`)

// eventName is the form of an event's name; dots make it hierarchical.
var eventName = regexp.MustCompile(`^[\p{L}\p{N}_][\p{L}\p{N}_.:~-]{0,127}$`)

// IsIdentifier reports whether s has the form of an identifier that this
// service gives out or accepts in a path.
func IsIdentifier(s string) bool { return identifier.MatchString(s) }

// ParseWorkflowID returns s as a WorkflowID, and false when it cannot be one.
func ParseWorkflowID(s string) (WorkflowID, bool) {
	return WorkflowID(s), IsIdentifier(s)
}

// ParseEventName returns s as an EventName, and false when no definition could
// declare it.
func ParseEventName(s string) (EventName, bool) {
	return EventName(s), utf8.ValidString(s) && eventName.MatchString(s)
}
