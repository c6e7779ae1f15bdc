package api

import (
	"encoding/json"
	"time"
)

// BasePath is in front of every path of group B, behind the service's own base
// path.
const BasePath = "/workflow/api/v1"

// GzipSuffix ends the entity tag of an instance whose bytes came packed (gzip),
// inside the quotes: a strong tag names bytes (RFC 9110, 8.8.3.3). If-Match takes
// the tag with and without it.
const GzipSuffix = "-gzip"

// Position is where one state machine of an instance stands.
type Position struct {
	StateMachineID string `json:"stateMachineId"`
	NodeID         string `json:"nodeId"`
}

// Instance is an instance record (gateway/INTERFACE.md, "The record"). An
// entry of a list has ID, WorkflowID, Public, States and Cancelled, and of the others
// those that the request named in fields.
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
	// Redirect is empty when the instance has none.
	Redirect string `json:"svcRedirect,omitempty"`
	// Cancelled: it was stopped, or its parent has cancelled it; it takes nothing more.
	Cancelled bool `json:"cancelled,omitempty"`
	// Title is empty where it was not asked for.
	Title string `json:"title,omitempty"`
}

// HistoryEntry is one entry of svcHistory.
type HistoryEntry struct {
	User string `json:"user"`
	// StartState and EndState have one node for each state machine, in the order
	// of Instance.States.
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
	InstanceID string    `json:"instanceId"`
	Event      SentEvent `json:"event"`
}

// SentEvent is the event of an EventRequest.
type SentEvent struct {
	Name string `json:"name"`
	// Data is an object; nil is left out.
	Data json.RawMessage `json:"data,omitempty"`
}

// InstanceReply answers POST create, POST event and GET instance; the latter
// has State alone.
type InstanceReply struct {
	WorkflowID string `json:"workflowId"`
	InstanceID string `json:"instanceId"`
	// State is an Instance.
	State json.RawMessage `json:"state"`
}

// Fault is the body of every error.
type Fault struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	// Faults are those of the text files of a home; nil in all other errors.
	Faults []FileFault `json:"faults,omitempty"`
}
