package chart

import (
	"regexp"
	"strings"
	"unicode"
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

// nodeName is the form of state, machine and region names (statemachine/DEFINITION.md, "Names").
var nodeName = regexp.MustCompile(`^[\p{L}\p{N}_]([\p{L}\p{N}_~ -]{0,62}[\p{L}\p{N}_~-])?$`)

// IsNodeName reports whether a state can have the name; with the rules of SCXML it may have dots.
func IsNodeName(s string, rulesOfSCXML bool) bool {
	if rulesOfSCXML {
		s = strings.ReplaceAll(s, ".", "_")
	}
	return nodeName.MatchString(s)
}

const nameMax = 128

// IsIdentifier reports whether s has the form of an identifier in paths and bodies, [A-Za-z0-9][A-Za-z0-9._~-]{0,127}
// (statemachine/DEFINITION.md, "Names"). It excludes ".", ".." and everything that has a meaning in a key, a log or a path.
func IsIdentifier(s string) bool {
	if len(s) == 0 || len(s) > nameMax {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '~' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// ParseWorkflowID returns s as a WorkflowID, and false when it cannot be one.
func ParseWorkflowID(s string) (WorkflowID, bool) {
	return WorkflowID(s), IsIdentifier(s)
}

// ParseEventName returns s as an EventName, and false when no definition could declare it: letters, digits and _, behind the
// first also . : ~ -, at most 128 bytes. Dots make names hierarchical.
func ParseEventName(s string) (EventName, bool) {
	if len(s) == 0 || len(s) > nameMax {
		return EventName(s), false
	}
	for i, r := range s {
		switch {
		case r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
		case i > 0 && (r == '.' || r == ':' || r == '~' || r == '-'):
		default:
			return EventName(s), false // U+FFFD for invalid bytes, too
		}
	}
	return EventName(s), true
}
