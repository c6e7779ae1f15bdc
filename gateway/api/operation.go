package api

import "encoding/json"

// Pending answers GET instance/{workflowId}/{instanceId}/pending: what an instance waits for.
type Pending struct {
	Timers     []Timer           `json:"timers"`
	Jobs       []ListedJob       `json:"jobs"`
	Deliveries []PendingDelivery `json:"deliveries"`
	Children   []Child           `json:"children"`
	// Ended is "done" when all state machines have reached a final node, and "cancelled" when the instance was stopped, or its
	// parent has cancelled it; nil while it goes on.
	Ended   *string `json:"ended"`
	Version uint64  `json:"version"` // that of the definition that the instance runs under
}

// Child is an instance that another one has invoked.
type Child struct {
	WorkflowID string `json:"workflowId"`
	InstanceID string `json:"instanceId"`
	Status     string `json:"status"` // "running", "done", "failed" or "cancelled"
}

// Timer is an event that comes to an instance on its own.
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
	ID          string  `json:"id"`
	Kind        string  `json:"kind"` // "webhook", "mail" or "invoke"
	Name        string  `json:"name"` // of the webhook, or the workflow of the other instance; empty for a mail
	State       string  `json:"state"`
	Attempts    uint32  `json:"attempts"`
	NextAttempt *string `json:"nextAttempt"`   // nil when there is none
	URL         string  `json:"url,omitempty"` // URL, LastStatus and LastError are for holders of mod-workflows
	LastStatus  uint32  `json:"lastStatus,omitempty"`
	LastError   string  `json:"lastError,omitempty"`
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
	URL         string  `json:"url,omitempty"` // where a webhook goes; empty for others, and where it is unknown
	NextAttempt *string `json:"nextAttempt"`
	LastStatus  uint32  `json:"lastStatus"` // that of the last answer, 0 without one
	LastError   string  `json:"lastError"`
}

// IncidentList answers GET incidents.
type IncidentList struct {
	Incidents []Incident `json:"incidents"`
	Next      string     `json:"next"`
}

// Incident is something that failed: an event that came on its own, or what Kind says.
type Incident struct {
	ID         string `json:"id"`
	WorkflowID string `json:"workflowId"`
	InstanceID string `json:"instanceId"` // of what failed last; empty: it was never created
	Event      string `json:"event"`      // of what failed last; empty: a create
	Error      string `json:"error"`
	TS         string `json:"ts"` // when it failed last
	// Kind is "expression" for a step that failed for anyone who asked for it, "loop" for an instance that sends itself events without
	// end, and "tree" for the root of too many instances. An event that came on its own, which is the only one to be retried, has none,
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
	Path  string  `json:"path"`
	Value *string `json:"value"` // JSON, cut when it is long; nil: there was none
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
	WorkflowID string  `json:"workflowId"`
	Name       string  `json:"name"`
	Cron       string  `json:"cron"`
	Zone       string  `json:"zone"`
	Paused     bool    `json:"paused"`
	Last       *string `json:"last"` // when an instance was created last, Next when one will be; nil: never
	Next       *string `json:"next"`
	LastError  string  `json:"lastError"` // why the last run created none
}

// OperationRequest is the body of POST outbox, outbox/{id}, incidents/{id}, schedules and schedules/{workflowId}/{name}.
type OperationRequest struct {
	Action string `json:"action"` // "retry" or "drop", of a schedule "pause", "resume" or "run", of all that is held back "resume"
}

// StopRequest is the body of POST instance/{workflowId}/{instanceId}/stop.
type StopRequest struct {
	Tree bool `json:"tree"` // true: with an instance all that it has invoked ends
}

// ResetRequest is the body of POST instance/{workflowId}/{instanceId}/reset, and what a bulk job does to each instance.
type ResetRequest struct {
	To     uint64 `json:"to"` // the number of an entry of the history, from 1
	Reason string `json:"reason"`
}

// MigrationRequest is the body of POST instances/{workflowId}/migrate.
type MigrationRequest struct {
	Plan   json.RawMessage `json:"plan"`             // an object, or a string with YAML
	Filter json.RawMessage `json:"filter,omitempty"` // an object; nothing matches all
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
	Next     *string            `json:"next"` // Next goes into the next request; nil when there are no more instances
}

// MigrationRefusal is an instance that stayed as it was, and why.
type MigrationRefusal struct {
	InstanceID string `json:"instanceId"`
	Reason     string `json:"reason"`
}

// Health answers GET admin/api/v1/health: how the node that answers is. Counters run from Started on.
type Health struct {
	TS      string       `json:"ts"`
	Started string       `json:"started"`
	Ready   bool         `json:"ready"`
	Build   Build        `json:"build"`
	Parts   []HealthPart `json:"parts"`
	// Cluster is what "verbose" of /readyz has; nil on a standalone server.
	Cluster  any           `json:"cluster"`
	Requests RequestCounts `json:"requests"`
	// Vitals is nil while nobody counts them.
	*Vitals
}

// Load answers GET admin/api/v1/load.
type Load struct {
	Minutes []Minute `json:"minutes"` // the oldest first
	// Nodes is how many nodes did it, and Missing how many others the cluster has, which do not answer.
	Nodes   int `json:"nodes"`
	Missing int `json:"missing"`
}

// Minute is what all nodes did in one minute, and what waited at its end.
type Minute struct {
	TS       string `json:"ts"` // its end
	Requests int64  `json:"requests"`
	Events   int64  `json:"events"`
	Refused  int64  `json:"refused"`
	// P50Milliseconds and P99Milliseconds are nil when no request was answered.
	P50Milliseconds *float64 `json:"p50Milliseconds"`
	P99Milliseconds *float64 `json:"p99Milliseconds"`
	Backlog         *int64   `json:"backlog"` // nil: it could not be counted
}

// Backups answers GET admin/api/v1/backups.
type Backups struct {
	Backups []Backup `json:"backups"`
}

// Backup is where a server backs up its home to.
type Backup struct {
	To           string  `json:"to"`
	EverySeconds float64 `json:"everySeconds"`
	KeepSeconds  float64 `json:"keepSeconds"` // 0: for good
	// Moment is that of the newest backup there, and Bytes its size; nil: there is none, or it cannot be read.
	Moment *string `json:"moment"`
	Bytes  *int64  `json:"bytes"`
	Error  string  `json:"error,omitempty"` // why the latest run failed, or the newest backup cannot be read
}

// Exports answers GET admin/api/v1/exports.
type Exports struct {
	Exports []Export `json:"exports"`
}

// Export is how far an export of the settings is. Rows and Gaps are counted since the start.
type Export struct {
	Name      string   `json:"name"`
	To        string   `json:"to"`        // without secrets
	Workflows []string `json:"workflows"` // empty: all
	// Position is when the newest entry was committed that the target has confirmed; nil: none since the start.
	Position   *string `json:"position"`
	LagSeconds float64 `json:"lagSeconds"` // how long the oldest entry waits that was not confirmed
	Rows       int64   `json:"rows"`
	Gaps       int64   `json:"gaps"`
	Error      string  `json:"error,omitempty"` // of the latest attempt, when it failed
}

// Build says from what the program was made.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// HealthPart is a part of the service.
type HealthPart struct {
	Name     string `json:"name"`
	Ready    bool   `json:"ready"`
	Optional bool   `json:"optional"`         // Optional parts do not keep the service from being ready
	Reason   string `json:"reason,omitempty"` // Reason says why the part is not ready
}

// RequestCounts are about requests. InFlight, Places, Connections and Watchers are present values.
type RequestCounts struct {
	Answered    uint64 `json:"answered"`
	Failed      uint64 `json:"failed"` // with 5xx, or cut
	Shed        uint64 `json:"shed"`
	InFlight    int64  `json:"inFlight"`
	Places      int64  `json:"places"`
	Connections int64  `json:"connections"`
	Watchers    int64  `json:"watchers"`
}

// Vitals are what a node holds, and what it has done.
type Vitals struct {
	Store StoreVitals `json:"store"`
	Work  WorkVitals  `json:"work"`
}

// StoreVitals are about the store. DiskBytes, FreeBytes and Waiting are present values.
type StoreVitals struct {
	DiskBytes uint64 `json:"diskBytes"`
	FreeBytes int64  `json:"freeBytes"` // on the file system; -1 when it does not say
	Waiting   int    `json:"waiting"`   // commits not answered yet
	Committed uint64 `json:"committed"`
	Syncs     uint64 `json:"syncs"`
	// SyncMicroseconds is the mean of one sync, over all of them.
	SyncMicroseconds int64  `json:"syncMicroseconds"`
	Stalls           uint64 `json:"stalls"`
	Faults           uint64 `json:"faults"` // failed background work, and reads of damaged data
}

// WorkVitals are about instances. Awake and LateMilliseconds are present values.
type WorkVitals struct {
	Awake            int64 `json:"awake"`
	Creates          int64 `json:"creates"`
	Events           int64 `json:"events"`
	Incidents        int64 `json:"incidents"`
	Fired            int64 `json:"fired"` // timers
	LateMilliseconds int64 `json:"lateMilliseconds"`
	Delivered        int64 `json:"delivered"`
	Dead             int64 `json:"dead"`
}

// BulkRequest is the body of POST bulk.
type BulkRequest struct {
	WorkflowID string          `json:"workflowId"`
	Filter     json.RawMessage `json:"filter,omitempty"` // an object; nothing matches all
	Action     BulkAction      `json:"action"`
	DryRun     bool            `json:"dryRun,omitempty"`
}

// BulkAction is what is done to each instance. One member is set.
type BulkAction struct {
	Event   *BulkEvent     `json:"event,omitempty"`
	Migrate *BulkMigration `json:"migrate,omitempty"`
	Reset   *ResetRequest  `json:"reset,omitempty"`
	Delete  bool           `json:"delete,omitempty"`
}

// BulkEvent is sent to each instance.
type BulkEvent struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"` // an object
}

// BulkMigration gives each instance another version.
type BulkMigration struct {
	Plan json.RawMessage `json:"plan"` // an object, or a string with YAML
}

// BulkCreated answers it.
type BulkCreated struct {
	ID *string `json:"id"` // nil for a dry run
	// Count is how many instances match; nil when counting would have taken long.
	Count *int64 `json:"count"`
}

// BulkList answers GET bulk, the newest first.
type BulkList struct {
	Bulk []BulkJob `json:"bulk"`
}

// BulkJob is a job, and what came of it so far.
type BulkJob struct {
	ID         string        `json:"id"`
	WorkflowID string        `json:"workflowId"`
	Action     string        `json:"action"`          // "event", "migrate", "reset" or "delete"
	Event      string        `json:"event,omitempty"` // its name
	Reset      *ResetRequest `json:"reset,omitempty"`
	User       string        `json:"user"`
	Created    string        `json:"created"`
	Status     string        `json:"status"` // "running", "paused", "done" or "cancelled"
	Done       int64         `json:"done"`
	Failed     int64         `json:"failed"`
	Total      *int64        `json:"total"` // BulkCreated.Count
	Failures   []BulkFailure `json:"failures"`
}

// BulkFailure is an instance that stayed as it was, and why.
type BulkFailure struct {
	InstanceID string `json:"instanceId"`
	Error      string `json:"error"`
}
