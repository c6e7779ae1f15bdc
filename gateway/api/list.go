package api

import "encoding/json"

// InstanceList answers GET instances.
type InstanceList struct {
	// Instances are of type Instance.
	Instances []json.RawMessage `json:"instances"`
	// Next is the cursor of the next page; empty (null or missing) when there is
	// none.
	Next string `json:"next"`
	// Count is nil unless count was asked for: all matches that the caller may
	// read, whatever the page holds of them.
	Count *int64 `json:"count"`
	// Explain is nil unless explain was asked for; it is of type Explain.
	Explain json.RawMessage `json:"explain"`
}

// Explain says how a query was answered. To a caller who may not read all instances it tells what it matched and the names of the indexes, and the rest is nil.
type Explain struct {
	// Index is the path whose index was read, nil when none was. For the plan "union" it
	// is the paths of all branches of an $or, joined by " | ".
	Index       *string `json:"index"`
	Plan        *string `json:"plan"`
	KeysRead    *int64  `json:"keysRead"`
	RecordsRead *int64  `json:"recordsRead"`
	Matched     int64   `json:"matched"`
	// Milliseconds is the time that the query took.
	Milliseconds *float64 `json:"milliseconds"`
	// Considered lists the indexes that were looked at.
	Considered []Considered `json:"considered"`
}

// Considered is an index that a query looked at.
type Considered struct {
	Index string `json:"index"`
	// Keys is how many of its rows would have been read. AtLeast: counting stopped
	// there.
	Keys    *int64 `json:"keys"`
	AtLeast *bool  `json:"atLeast"`
}

// HistoryList answers GET instance/…/history, oldest entry first unless the newest was asked for first.
type HistoryList struct {
	// Entries are of type HistoryEntry.
	Entries []json.RawMessage `json:"history"`
	// Next is that of InstanceList.
	Next string `json:"next"`
}

// EventList answers GET instance/…/events: what the caller may send now, in the
// order of the definition.
type EventList struct {
	Events []Event `json:"events"`
}

// Event is an event that an instance takes now.
type Event struct {
	// PresentedEvent has its name, and how people see it.
	PresentedEvent
	// Guard is that of the transitions together.
	Guard       Guard        `json:"guard"`
	Transitions []Transition `json:"transitions"`
	// Schema is the JSON Schema of the event's data, or null.
	Schema json.RawMessage `json:"schema"`
}

// Transition is one way that an event may take.
type Transition struct {
	StateMachineID string `json:"stateMachineId"`
	NodeID         string `json:"nodeId"`
	// Targets are nodes; empty when the machine stays where it is.
	Targets []string `json:"targets"`
	// TargetLabels are how people see Targets, in their order.
	TargetLabels []string `json:"targetLabels"`
	Guard        Guard    `json:"guard"`
}

// Guard says whether a guard lets an event pass.
type Guard string

// The values of a Guard.
const (
	GuardTrue  Guard = "true"
	GuardFalse Guard = "false"
	// GuardUnknown depends on the data that will come with the event.
	GuardUnknown Guard = "unknown"
)

// ChoiceList answers GET choices.
type ChoiceList struct {
	Workflows []Choice `json:"workflows"`
}

// Choice is a workflow that the caller may create.
type Choice struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// The events of a watch, as the stream names them.
const (
	WatchEntry = "entry"
	WatchLost  = "lost"
)

// Watched is the data of WatchEntry: one committed history entry.
type Watched struct {
	WorkflowID string `json:"workflowId"`
	InstanceID string `json:"instanceId"`
	// Sequence is the entry's place in the history, counted from 1. It is the
	// instance's entity tag after the entry.
	Sequence uint64       `json:"sequence"`
	Entry    HistoryEntry `json:"entry"`
	// States are those after the entry.
	States []Position `json:"states"`
}

// ChangeList answers GET changes.
type ChangeList struct {
	// Changes are of type Watched.
	Changes []json.RawMessage `json:"changes"`
	// Next is the cursor behind them. It is always there: more may come.
	Next string `json:"next"`
}

// Lost is the data of WatchLost: entries are missing, and the stream goes on
// from the present.
type Lost struct {
	Message string `json:"message"`
}
