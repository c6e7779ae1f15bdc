package statemachine

import (
	"time"

	"troupe/statemachine/data"
)

// Entry is one entry of svcHistory: what one macrostep did
// (statemachine/DEFINITION.md, "History entries").
type Entry struct {
	User  string
	Start []NodeID // in the order of states; shared, so not to be changed
	Event EventName
	End   []NodeID // likewise
	At    time.Time
	// Data is what the event brought, and no part of the JSON; nil for nothing, and where the event's declaration says
	// history: false.
	Data data.Value
	// Attempt: nothing took the event, and only this entry is left of it. No part of the JSON either.
	Attempt bool
}

// TimeLayout is how times are written: RFC 3339, UTC, milliseconds
// (statemachine/DEFINITION.md, "Time").
const TimeLayout = "2006-01-02T15:04:05.000Z"

// AppendJSON appends the entry as a JSON object.
func (e *Entry) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"user":`...)
	dst = data.AppendString(dst, e.User)
	dst = append(dst, `,"startState":`...)
	dst = AppendNodes(dst, e.Start)
	dst = append(dst, `,"transitionEvent":`...)
	dst = data.AppendString(dst, string(e.Event))
	dst = append(dst, `,"endState":`...)
	dst = AppendNodes(dst, e.End)
	dst = append(dst, `,"ts":"`...)
	dst = e.At.UTC().AppendFormat(dst, TimeLayout)
	return append(dst, `"}`...)
}

// AppendNodes appends a list of names as a JSON array.
func AppendNodes(dst []byte, nodes []NodeID) []byte {
	dst = append(dst, '[')
	for i, n := range nodes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = data.AppendString(dst, string(n))
	}
	return append(dst, ']')
}

// Ends are the names that the newest entry of the instance ends with. They are shared, so not to be changed.
func (in *Instance) Ends() []NodeID {
	if in.at == nil {
		return nil
	}
	return in.at.End
}

// startNode stands in startState of the first entry, once for each state machine.
const startNode NodeID = "Start"
