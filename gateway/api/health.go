package api

// Health answers GET admin/api/v1/health: how the node that answers is. Counters run from Started on.
type Health struct {
	TS      string       `json:"ts"`
	Started string       `json:"started"`
	Ready   bool         `json:"ready"`
	Build   Build        `json:"build"`
	Parts   []HealthPart `json:"parts"`
	// Cluster is what "verbose" of /readyz has; nil on a server that stands alone.
	Cluster  any           `json:"cluster"`
	Requests RequestCounts `json:"requests"`
	// Vitals is nil while nobody counts them.
	*Vitals
}

// Build says from what the program was made.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// HealthPart is a part of the service.
type HealthPart struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	// Optional parts do not keep the service from being ready.
	Optional bool `json:"optional"`
	// Reason says why the part is not ready.
	Reason string `json:"reason,omitempty"`
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
