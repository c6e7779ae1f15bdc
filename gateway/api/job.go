package api

import "encoding/json"

// Job is work of an instance that its worker has until Deadline.
type Job struct {
	JobID          string          `json:"jobId"`
	Lease          string          `json:"lease"` // proves that the job is its worker's
	Type           string          `json:"type"`
	WorkflowID     string          `json:"workflowId"`
	Version        uint64          `json:"version"`
	InstanceID     string          `json:"instanceId"`
	StateMachineID string          `json:"stateMachineId"`
	NodeID         string          `json:"nodeId"`
	Attempt        int             `json:"attempt"`      // from 1
	AttemptsLeft   int             `json:"attemptsLeft"` // after this one
	Priority       int             `json:"priority"`
	Created        string          `json:"created"`
	Deadline       string          `json:"deadline"`
	Data           json.RawMessage `json:"data"`
	Traceparent    string          `json:"traceparent,omitempty"`
}

// JobActivation asks POST jobs/activate for jobs. Lease and Wait are durations of ISO 8601.
type JobActivation struct {
	Types  []string `json:"types"`
	Worker string   `json:"worker,omitempty"`
	Max    int      `json:"max,omitempty"`   // 0: 1
	Lease  string   `json:"lease,omitempty"` // empty: as long as the type allows
	Wait   string   `json:"wait,omitempty"`  // empty: not at all
}

// ActivatedJobs answers it.
type ActivatedJobs struct {
	Jobs   []Job  `json:"jobs"`
	Paused string `json:"paused,omitempty"` // why there are none at present
}

// JobAction is one job of a request. Which members it has depends on what is asked.
type JobAction struct {
	JobID   string          `json:"jobId"`
	Lease   string          `json:"lease,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
	Message string          `json:"message,omitempty"`
	RetryIn string          `json:"retryIn,omitempty"`
	Final   bool            `json:"final,omitempty"`
	Later   bool            `json:"later,omitempty"`
	By      string          `json:"by,omitempty"`
}

// JobActions asks POST jobs/complete, fail, extend, retry or cancel.
type JobActions struct {
	Jobs []JobAction `json:"jobs"`
}

// JobResult is what came of one job of a request.
type JobResult struct {
	Status  int    `json:"status"`
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
}

// JobResults answers it, in the order of the jobs.
type JobResults struct {
	Results []JobResult `json:"results"`
}

// ListedJob is a job as operators see it.
type ListedJob struct {
	JobID          string          `json:"jobId"`
	Type           string          `json:"type"`
	State          string          `json:"state"` // "waiting", "running" or "failed"
	WorkflowID     string          `json:"workflowId"`
	Version        uint64          `json:"version"`
	InstanceID     string          `json:"instanceId"`
	StateMachineID string          `json:"stateMachineId"`
	NodeID         string          `json:"nodeId"`
	Attempts       int             `json:"attempts"` // that have begun
	AttemptsLeft   int             `json:"attemptsLeft"`
	Priority       int             `json:"priority"`
	Created        string          `json:"created"`
	Due            *string         `json:"due"`      // when it waits for its next attempt; nil: it need not
	Worker         *string         `json:"worker"`   // who has it, or had it last
	Deadline       *string         `json:"deadline"` // of who has it
	Message        *string         `json:"message"`  // of the last attempt that failed
	Data           json.RawMessage `json:"data,omitempty"`
}

// JobList answers GET jobs.
type JobList struct {
	Jobs []ListedJob `json:"jobs"`
	Next *string     `json:"next"`
}

// JobType is how many jobs of a type there are.
type JobType struct {
	Type    string   `json:"type"`
	Waiting int64    `json:"waiting"`
	Running int64    `json:"running"`
	Failed  int64    `json:"failed"`
	Oldest  *string  `json:"oldest"`  // when the oldest of those waiting was created
	Workers []string `json:"workers"` // that were there in the last minute
}

// JobTypes answers GET jobs/types.
type JobTypes struct {
	Types []JobType `json:"types"`
}
