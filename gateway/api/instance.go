// Package api is the JSON of the interface as a caller reads and writes it, each body as a Go struct: those of
// workflow/api/v1, and the answers of the form portal and the form runtime.
//
//	caller ── CreateRequest, EventRequest ──► service
//	caller ◄── InstanceReply, InstanceList, EventList, HistoryList, Watched ── service
//	caller ◄── RoleInfo, TemplateSummary, Form, FormView, Draft, TemplatePage ── service
//
// What is free-form (svcPublic, svcPrivate, schemas) and what a caller may want byte for byte (records, entries) is
// json.RawMessage: numbers keep their spelling and members their order. Members that a newer service adds are ignored.
//
// The package has no functions and imports nothing of this module, so that a client carries nothing of the server.
package api

import (
	"encoding/json"
	"time"
)

// BasePath is in front of every path of group B, behind the service's own base path.
const BasePath = "/workflow/api/v1"

// GzipSuffix ends the entity tag of an instance whose bytes came packed (gzip), inside the quotes: a strong tag names
// bytes (RFC 9110, 8.8.3.3). If-Match takes the tag with and without it.
const GzipSuffix = "-gzip"

// Position is where one state machine of an instance stands.
type Position struct {
	StateMachineID string `json:"stateMachineId"`
	NodeID         string `json:"nodeId"`
}

// Instance is an instance record (gateway/INTERFACE.md, "The record"). An entry of a list has ID, WorkflowID, Public,
// States, Key and Cancelled, and of the others those that the request named in fields.
type Instance struct {
	ID         string          `json:"_id"`
	WorkflowID string          `json:"workflowId"`
	Public     json.RawMessage `json:"svcPublic"`
	Private    json.RawMessage `json:"svcPrivate,omitempty"`
	// History is oldest first; nil when it was not asked for.
	History []HistoryEntry `json:"svcHistory,omitempty"`
	// HistoryFrom is the sequence number of the first entry of History where that is not 1: an answer has the newest 16 MiB.
	HistoryFrom uint64     `json:"historyFrom,omitempty"`
	States      []Position `json:"states"`
	Redirect    string     `json:"svcRedirect,omitempty"` // empty when the instance has none
	Key         string     `json:"key,omitempty"`         // the business key; empty when the instance has none
	// Cancelled: it was stopped, or its parent has cancelled it; it takes nothing more.
	Cancelled bool   `json:"cancelled,omitempty"`
	Title     string `json:"title,omitempty"` // empty where it was not asked for
}

// HistoryEntry is one entry of svcHistory.
type HistoryEntry struct {
	User string `json:"user"`
	// StartState and EndState have one node for each state machine, in the order of Instance.States.
	StartState []string `json:"startState"`
	// TransitionEvent is empty for the first entry, which the creation made.
	TransitionEvent string    `json:"transitionEvent"`
	EndState        []string  `json:"endState"`
	Time            time.Time `json:"ts"`
	// Data is what the event brought, on request; null when that was longer than 16 KiB, and then DataDigest has its SHA-256 and
	// size.
	Data       json.RawMessage `json:"data,omitempty"`
	DataDigest json.RawMessage `json:"dataDigest,omitempty"`
	// Attempt: nothing took the event, and only this entry is left of it. With Data, on request.
	Attempt bool `json:"attempt,omitempty"`
}

// CreateRequest is the body of POST create.
type CreateRequest struct {
	WorkflowID string      `json:"workflowId"`
	Data       *CreateData `json:"data,omitempty"`
}

// CreateData is what an instance begins with. Both are objects; nil is left out.
type CreateData struct {
	Public  json.RawMessage `json:"svcPublic,omitempty"`
	Private json.RawMessage `json:"svcPrivate,omitempty"`
}

// EventRequest is the body of POST event.
type EventRequest struct {
	WorkflowID string    `json:"workflowId"`
	InstanceID string    `json:"instanceId,omitempty"` // or Key
	Event      SentEvent `json:"event"`
	// Key is the business key of the instance, and Create what one begins with that is created if none has the key; nil: none is.
	Key    string      `json:"key,omitempty"`
	Create *CreateData `json:"create,omitempty"`
}

// SentEvent is the event of an EventRequest.
type SentEvent struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"` // an object; nil is left out
}

// InstanceReply answers POST create, POST event and GET instance; GET has State alone.
type InstanceReply struct {
	WorkflowID string          `json:"workflowId"`
	InstanceID string          `json:"instanceId"`
	Created    bool            `json:"created,omitempty"` // an event to a business key has created the instance
	State      json.RawMessage `json:"state"`             // an Instance
}

// Fault is the body of every error.
type Fault struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	// Faults are those of the text files of a home; nil in all other errors.
	Faults []FileFault `json:"faults,omitempty"`
}

// InstanceList answers GET instances.
type InstanceList struct {
	Instances []json.RawMessage `json:"instances"` // of type Instance
	// Next is the cursor of the next page; empty (null or missing) when there is none.
	Next string `json:"next"`
	// Count is nil unless count was asked for: all matches that the caller may read, whatever the page holds of them.
	Count *int64 `json:"count"`
	// Explain is nil unless explain was asked for; it is of type Explain.
	Explain json.RawMessage `json:"explain"`
}

// Explain says how a query was answered. To a caller who may not read all instances it tells what it matched and the names of the indexes, and the rest is nil.
type Explain struct {
	// Index is the path whose index was read, nil when none was. For the plan "union" it
	// is the paths of all branches of an $or, joined by " | ".
	Index        *string      `json:"index"`
	Plan         *string      `json:"plan"`
	KeysRead     *int64       `json:"keysRead"`
	RecordsRead  *int64       `json:"recordsRead"`
	Matched      int64        `json:"matched"`
	Milliseconds *float64     `json:"milliseconds"` // the time that the query took
	Considered   []Considered `json:"considered"`   // Considered lists the indexes that were looked at
}

// Considered is an index that a query looked at.
type Considered struct {
	Index string `json:"index"`
	// Keys is how many of its rows would have been read. AtLeast: counting stopped there.
	Keys    *int64 `json:"keys"`
	AtLeast *bool  `json:"atLeast"`
}

// HistoryList answers GET instance/…/history, oldest entry first unless the newest was asked for first.
type HistoryList struct {
	Entries []json.RawMessage `json:"history"` // of type HistoryEntry
	Next    string            `json:"next"`    // that of InstanceList
}

// EventList answers GET instance/…/events: what the caller may send now, in the order of the definition.
type EventList struct {
	Events []Event `json:"events"`
}

// Event is an event that an instance takes now.
type Event struct {
	// PresentedEvent has its name, and how people see it.
	PresentedEvent
	Guard       Guard           `json:"guard"` // that of the transitions together
	Transitions []Transition    `json:"transitions"`
	Schema      json.RawMessage `json:"schema"` // the JSON Schema of the event's data, or null
}

// Transition is one way that an event may take.
type Transition struct {
	StateMachineID string   `json:"stateMachineId"`
	NodeID         string   `json:"nodeId"`
	Targets        []string `json:"targets"`      // nodes; empty when the machine stays where it is
	TargetLabels   []string `json:"targetLabels"` // how people see Targets, in their order
	Guard          Guard    `json:"guard"`
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
	// Sequence is the entry's place in the history, counted from 1. It is the instance's entity tag after the entry.
	Sequence uint64       `json:"sequence"`
	Entry    HistoryEntry `json:"entry"`
	States   []Position   `json:"states"` // those after the entry
}

// ChangeList answers GET changes.
type ChangeList struct {
	Changes []json.RawMessage `json:"changes"` // of type Watched
	// Next is the cursor behind them. It is always there: more may come.
	Next string `json:"next"`
}

// ExportList answers GET export.
type ExportList struct {
	// Rows are entries with what their events brought: workflowId, instanceId, sequence, event, data, user, ts, states.
	Rows []json.RawMessage `json:"rows"`
	Next string            `json:"next"` // Next is that of ChangeList
}

// Lost is the data of WatchLost: entries are missing, and the stream goes on from the present.
type Lost struct {
	Message string `json:"message"`
}
