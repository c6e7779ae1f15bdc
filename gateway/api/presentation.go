package api

import "encoding/json"

// Presentation answers GET presentation/{workflowId}: how people see a workflow, in one language.
type Presentation struct {
	WorkflowID string   `json:"workflowId"`
	Name       string   `json:"name"`
	Version    uint64   `json:"version"`
	Titled     bool     `json:"titled"` // its instances have titles of their own
	Columns    []Column `json:"columns"`
	// StateMachines are the state machines and the regions of parallel nodes.
	StateMachines []PresentedMachine `json:"stateMachines"`
	Nodes         []Status           `json:"nodes"`
	// Compounds are the nodes with others inside, in one of which an instance stands.
	Compounds []Status         `json:"compounds"`
	Events    []PresentedEvent `json:"events"`
	Sorts     []string         `json:"sorts"` // the paths by which a list can be sorted besides _id
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
	Tone           string `json:"tone"` // "neutral", "waiting", "good" or "bad"
}

// PresentedEvent is an event as people see it.
type PresentedEvent struct {
	Name  string  `json:"name"`
	Label string  `json:"label"`
	Done  *string `json:"done"`  // what somebody did who sent it; nil when the definition does not say
	Style string  `json:"style"` // "default", "primary" or "danger"
}

// Summary answers GET instance/{workflowId}/{instanceId}/summary: an instance as people see it, in one language.
type Summary struct {
	WorkflowID   string `json:"workflowId"`
	InstanceID   string `json:"instanceId"`
	WorkflowName string `json:"workflowName"`
	Version      uint64 `json:"version"`
	// Title is the name of the workflow when the instance has none of its own.
	Title     string        `json:"title"`
	Status    []Status      `json:"status"`
	Columns   []ColumnValue `json:"columns"`
	CreatedAt string        `json:"createdAt"` // CreatedAt and UpdatedAt are written as ts is
	UpdatedAt string        `json:"updatedAt"`
	// Requester created the instance, and RequesterName is that user's name now; the id when there is none.
	Requester     string       `json:"requester"`
	RequesterName string       `json:"requesterName"`
	Done          bool         `json:"done"`
	Ended         *string      `json:"ended"` // that of Pending
	Form          *SummaryForm `json:"form"`  // nil: the instance is not a form
	Tasks         []Task       `json:"tasks"` // all that wait, no matter who has them
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
	Kind   string `json:"kind"` // "form" or "checklist"
}
