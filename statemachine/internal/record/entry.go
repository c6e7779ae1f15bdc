package record

import (
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// TimeLayout is how times are written: RFC 3339, UTC, milliseconds (statemachine/DEFINITION.md, "Time").
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Entry is one entry of svcHistory: what one macrostep did (statemachine/DEFINITION.md, "History entries").
type Entry struct {
	User  string
	Start []chart.NodeID // in the order of states; shared, so not to be changed
	Event chart.EventName
	End   []chart.NodeID // likewise
	At    time.Time
	// Data is what the event brought, and no part of the JSON; nil for nothing, and where the event's declaration says
	// history: false.
	Data data.Value
	// Attempt: nothing took the event, and only this entry is left of it. No part of the JSON either.
	Attempt bool
	// Input is the stored form of what else made the entry, as Replay needs it; nil: nothing else did. No part of the JSON either.
	Input []byte
}

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
func AppendNodes(dst []byte, nodes []chart.NodeID) []byte {
	dst = append(dst, '[')
	for i, n := range nodes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = data.AppendString(dst, string(n))
	}
	return append(dst, ']')
}
