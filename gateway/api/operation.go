package api

import "encoding/json"

// Pending answers GET instance/{workflowId}/{instanceId}/pending: what an instance waits for.
type Pending struct {
	Timers     []Timer           `json:"timers"`
	Deliveries []PendingDelivery `json:"deliveries"`
	Children   []Child           `json:"children"`
	// Ended is "done" when all state machines have reached a final node, and "cancelled" when the instance was stopped, or its
	// parent has cancelled it; nil while it goes on.
	Ended *string `json:"ended"`
	// Version is that of the definition that the instance runs under.
	Version uint64 `json:"version"`
}

// Child is an instance that another one has invoked.
type Child struct {
	WorkflowID string `json:"workflowId"`
	InstanceID string `json:"instanceId"`
	Status     string `json:"status"` // "running", "done", "failed" or "cancelled"
}

// Timer is an event that comes to an instance by itself.
type Timer struct {
	ID    string `json:"id"`
	Event string `json:"event"`
	// StateMachineID and NodeID are nil for an event that was sent with a delay.
	StateMachineID *string `json:"stateMachineId"`
	NodeID         *string `json:"nodeId"`
	Due            string  `json:"due"`
	// Incident: it came, and an action failed. It is among the incidents under the same id.
	Incident bool `json:"incident"`
	// TargetID is the node that it leads to, and Sends has "mail" and "webhook" for what it sends, as far as that is sure.
	TargetID string   `json:"targetId,omitempty"`
	Sends    []string `json:"sends,omitempty"`
}

// PendingDelivery is what an instance has sent out and what has not arrived.
type PendingDelivery struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"` // "webhook", "mail" or "invoke"
	Name     string `json:"name"` // of the webhook, or the workflow of the other instance; empty for a mail
	State    string `json:"state"`
	Attempts uint32 `json:"attempts"`
	// NextAttempt is nil when there is none.
	NextAttempt *string `json:"nextAttempt"`
	// URL, LastStatus and LastError are for holders of mod-workflows.
	URL        string `json:"url,omitempty"`
	LastStatus uint32 `json:"lastStatus,omitempty"`
	LastError  string `json:"lastError,omitempty"`
}

// DeliveryList answers GET outbox.
type DeliveryList struct {
	Outbox []Delivery `json:"outbox"`
	Next   string     `json:"next"`
}

// Delivery is a row of the outbox.
type Delivery struct {
	ID          string  `json:"id"`
	Kind        string  `json:"kind"` // "webhook", "mail" or "invoke"
	WorkflowID  string  `json:"workflowId"`
	InstanceID  string  `json:"instanceId"`
	Name        string  `json:"name"`  // of the webhook, or the workflow of the other instance; empty for a mail
	State       string  `json:"state"` // "pending" or "dead"
	Attempts    uint32  `json:"attempts"`
	Created     string  `json:"created"`
	NextAttempt *string `json:"nextAttempt"`
	// LastStatus is that of the last answer, 0 without one.
	LastStatus uint32 `json:"lastStatus"`
	LastError  string `json:"lastError"`
}

// IncidentList answers GET incidents.
type IncidentList struct {
	Incidents []Incident `json:"incidents"`
	Next      string     `json:"next"`
}

// Incident is something that failed: an event that came by itself, or what Kind says.
type Incident struct {
	ID         string `json:"id"`
	WorkflowID string `json:"workflowId"`
	InstanceID string `json:"instanceId"` // of what failed last; empty: it was never created
	Event      string `json:"event"`      // of what failed last; empty: a create
	Error      string `json:"error"`
	TS         string `json:"ts"` // when it failed last
	// Kind is "expression" for a step that failed for whoever asked for it, "loop" for an instance that sends itself events without
	// end, and "tree" for the root of too many instances. An event that came by itself, which is the only one to be retried, has none,
	// and neither values nor a user.
	Kind    string `json:"kind,omitempty"`
	Version uint64 `json:"version,omitempty"`
	// File, Line and Expression are where it failed; Line is 0 when it was no single place.
	File       string          `json:"file,omitempty"`
	Line       int             `json:"line,omitempty"`
	Expression string          `json:"expression,omitempty"`
	Values     []IncidentValue `json:"values,omitempty"`
	User       string          `json:"user,omitempty"`
	First      string          `json:"first,omitempty"`
	Count      uint64          `json:"count,omitempty"`
}

// IncidentValue is what an expression has read.
type IncidentValue struct {
	Path string `json:"path"`
	// Value is JSON, cut when it is long; nil: there was none.
	Value *string `json:"value"`
}

// TimerList answers GET timers.
type TimerList struct {
	Timers []RunningTimer `json:"timers"`
	Next   string         `json:"next"`
}

// RunningTimer is a timer of an instance that has not come yet.
type RunningTimer struct {
	Timer
	WorkflowID string `json:"workflowId"`
	InstanceID string `json:"instanceId"`
}

// ScheduleList answers GET schedules.
type ScheduleList struct {
	Schedules []Schedule `json:"schedules"`
}

// Schedule creates instances of a workflow at times.
type Schedule struct {
	WorkflowID string `json:"workflowId"`
	Name       string `json:"name"`
	Cron       string `json:"cron"`
	Zone       string `json:"zone"`
	Paused     bool   `json:"paused"`
	// Last is when an instance was created last, Next when one will be; nil: never.
	Last *string `json:"last"`
	Next *string `json:"next"`
	// LastError is why the last run created none.
	LastError string `json:"lastError"`
}

// OperationRequest is the body of POST outbox/{id}, incidents/{id} and schedules/{workflowId}/{name}.
type OperationRequest struct {
	// Action is "retry" or "drop", and of a schedule "pause", "resume" or "run".
	Action string `json:"action"`
}

// StopRequest is the body of POST instance/{workflowId}/{instanceId}/stop.
type StopRequest struct {
	// Tree is true: with an instance all that it has invoked ends.
	Tree bool `json:"tree"`
}

// MigrationRequest is the body of POST instances/{workflowId}/migrate.
type MigrationRequest struct {
	// Plan is an object, or a string with YAML.
	Plan json.RawMessage `json:"plan"`
	// Filter is an object; nothing matches all.
	Filter json.RawMessage `json:"filter,omitempty"`
	DryRun bool            `json:"dryRun,omitempty"`
	// Limit is the most instances, 1 to 1000. 0: 1000.
	Limit int `json:"limit,omitempty"`
	// Cursor is MigrationAnswer.Next of the answer before; empty is the first.
	Cursor string `json:"cursor,omitempty"`
}

// MigrationAnswer answers it.
type MigrationAnswer struct {
	Matched  int                `json:"matched"`
	Migrated int                `json:"migrated"`
	Refused  []MigrationRefusal `json:"refused"`
	// Next goes into the next request; nil when there are no more instances.
	Next *string `json:"next"`
}

// MigrationRefusal is an instance that stayed as it was, and why.
type MigrationRefusal struct {
	InstanceID string `json:"instanceId"`
	Reason     string `json:"reason"`
}
