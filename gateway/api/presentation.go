package api

import "encoding/json"

// Presentation answers GET presentation/{workflowId}: how people see a workflow, in one language.
type Presentation struct {
	WorkflowID string `json:"workflowId"`
	Name       string `json:"name"`
	Version    uint64 `json:"version"`
	// Titled: its instances have titles of their own.
	Titled  bool     `json:"titled"`
	Columns []Column `json:"columns"`
	// StateMachines are the state machines and the regions of parallel nodes.
	StateMachines []PresentedMachine `json:"stateMachines"`
	Nodes         []Status           `json:"nodes"`
	// Compounds are the nodes with others inside, in one of which an instance stands.
	Compounds []Status         `json:"compounds"`
	Events    []PresentedEvent `json:"events"`
	// Sorts are the paths by which a list can be sorted besides _id.
	Sorts []string `json:"sorts"`
}

// PresentedMachine is a state machine or region as people see it.
type PresentedMachine struct {
	StateMachineID string `json:"stateMachineId"`
	Label          string `json:"label"`
}

// Column is a part of svcPublic that lists show.
type Column struct {
	Path  string `json:"path"`
	Label string `json:"label"`
}

// Status is a position as people see it.
type Status struct {
	StateMachineID string `json:"stateMachineId"`
	NodeID         string `json:"nodeId"`
	Label          string `json:"label"`
	// Tone is "neutral", "waiting", "good" or "bad".
	Tone string `json:"tone"`
}

// PresentedEvent is an event as people see it.
type PresentedEvent struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	// Done is what somebody did who sent it; nil when the definition does not say.
	Done *string `json:"done"`
	// Style is "default", "primary" or "danger".
	Style string `json:"style"`
}

// Summary answers GET instance/{workflowId}/{instanceId}/summary: an instance as people see it, in one language.
type Summary struct {
	WorkflowID   string `json:"workflowId"`
	InstanceID   string `json:"instanceId"`
	WorkflowName string `json:"workflowName"`
	Version      uint64 `json:"version"`
	// Title is the name of the workflow when the instance has none of its own.
	Title   string        `json:"title"`
	Status  []Status      `json:"status"`
	Columns []ColumnValue `json:"columns"`
	// CreatedAt and UpdatedAt are written as ts is.
	CreatedAt string `json:"createdAt"`
	UpdatedAt string `json:"updatedAt"`
	// Requester created the instance, and RequesterName is that user's name now; the id when there is none.
	Requester     string `json:"requester"`
	RequesterName string `json:"requesterName"`
	Done          bool   `json:"done"`
	// Ended is that of Pending.
	Ended *string      `json:"ended"`
	Form  *SummaryForm `json:"form"` // nil: the instance is no form
	// Tasks are all that wait, whoever has them.
	Tasks []Task `json:"tasks"`
}

// ColumnValue is a column with what an instance has there; null when it has nothing.
type ColumnValue struct {
	Path  string          `json:"path"`
	Label string          `json:"label"`
	Value json.RawMessage `json:"value"`
}

// SummaryForm is the form that an instance is.
type SummaryForm struct {
	FormID string `json:"formId"`
	Name   string `json:"name"`
	// Kind is "form" or "checklist".
	Kind string `json:"kind"`
}
