// Package bulk does one thing to many instances: it sends each that matches a filter an event, migrates it, resets it, or deletes
// it. A job is a row in Meta, which every node has; how far it is, each shard has itself. A goroutine for each shard
// that is led here works on the running jobs, one page of instances after the other:
//
//	read a page of matching ids ─► write it down ─► act on each ─► write the outcome, and where the next page begins
//
// A page that was written down is finished, by another leader too, whether or not its instances match still; and what
// was done to one is not done again: an event or a reset has the job's idempotency key, a migrated instance has the other version,
// a deleted one is gone. So each instance has its turn exactly once. DESIGN.md has the reasons.
package bulk

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/statemachine/data"
)

// Status says how a job stands.
type Status string

const (
	Running Status = "running"
	Paused  Status = "paused"
	Done    Status = "done"
	// Cancelled: somebody has ended it, or its creator has lost the right.
	Cancelled Status = "cancelled"
)

// Action is what somebody wants with a job.
type Action string

const (
	Pause  Action = "pause"
	Resume Action = "resume"
	Cancel Action = "cancel"
)

// Reset is to what each instance is reset, and why.
type Reset struct {
	To     uint64 `json:"to"`
	Reason string `json:"reason"`
}

// Job is a job as it is stored. One of Event, Plan, Reset and Delete is set; Filter, Data and Plan are taken out when it has ended.
type Job struct {
	ID         string     `json:"id"` // a ULID
	WorkflowID string     `json:"workflowId"`
	Filter     string     `json:"filter,omitempty"` // its text; empty is all
	Event      string     `json:"event,omitempty"`
	Data       data.Value `json:"data,omitempty"` // of the event: a compact object
	Plan       []byte     `json:"plan,omitempty"` // the text of a plan of migration, whose name in faults is File
	File       string     `json:"file,omitempty"`
	From       uint64     `json:"from,omitempty"` // the version that the plan is for, 1 or more
	Reset      *Reset     `json:"reset,omitempty"`
	Delete     bool       `json:"delete,omitempty"`
	By         string     `json:"by"`
	Created    time.Time  `json:"created"`
	Total      *int64     `json:"total"`  // how many matched then; nil: counting would have taken long
	Status     Status     `json:"status"` // as somebody wants it; Done only where Filter, Data and Plan were taken out
}

// key is the idempotency key of the job's events and resets, and fingerprint what stands for them.
func (j *Job) key() string { return "bulk:" + j.ID }

func (j *Job) fingerprint() [32]byte {
	if j.Reset != nil {
		return sha256.Sum256(append([]byte(j.key()+"\x00"), write(j.Reset)...))
	}
	return sha256.Sum256(slices.Concat([]byte(j.key()), []byte{0}, []byte(j.Event), []byte{0}, j.Data))
}

// place is the job in the keys of its rows.
func (j *Job) place() (id [16]byte) {
	parsed, _ := ulid.ParseStrict(j.ID)
	return parsed
}

// isOlder reports whether the job was created before an instance, whose id begins with when that was.
func (j *Job) isOlder(instance string) bool {
	id, err := ulid.ParseStrict(instance)
	return err == nil && ulid.Time(id.Time()).After(j.Created)
}

// Failure is an instance that a job could not change.
type Failure struct {
	InstanceID string `json:"instanceId"`
	Error      string `json:"error"`
}

// FailuresMax is how many failures are kept.
const FailuresMax = 100

// progress is how far a job is in a shard, as it is stored.
type progress struct {
	Page     []string  `json:"page,omitempty"`   // whose turn it is
	Cursor   string    `json:"cursor,omitempty"` // behind the page; empty: nothing is
	Done     int64     `json:"done"`
	Failed   int64     `json:"failed"`
	Failures []Failure `json:"failures,omitempty"`
	End      Status    `json:"end,omitempty"` // Done or Cancelled; empty: it goes on
}

func (p *progress) fail(instance string, err error) {
	p.Failed++
	if len(p.Failures) < FailuresMax {
		p.Failures = append(p.Failures, Failure{instance, reasonOf(err)})
	}
}

// reasonOf is the text for the caller, which quotes no data.
func reasonOf(err error) string {
	f := failure.Of(err)
	if f.Reason != "" {
		return f.Reason
	}
	return f.Kind.Error()
}

// State is a job with what came of it so far.
type State struct {
	Job
	Done, Failed int64
	Failures     []Failure
}

func (s *State) add(parts []progress, shards int) {
	done, cancelled := 0, false
	for i := range parts {
		p := &parts[i]
		s.Done += p.Done
		s.Failed += p.Failed
		s.Failures = append(s.Failures, p.Failures[:min(len(p.Failures), FailuresMax-len(s.Failures))]...)
		switch p.End {
		case Done:
			done++
		case Cancelled:
			cancelled = true
		}
	}
	switch {
	case s.isOver():
	case done == shards:
		s.Status = Done
	case cancelled:
		s.Status = Cancelled
	}
}

func (s *State) isOver() bool { return s.Status == Done || s.Status == Cancelled }

func read(stored []byte, to any) error {
	if err := json.Unmarshal(stored, to); err != nil {
		return fmt.Errorf("bulk job: %w", errors.Join(persistence.ErrCorrupt, err))
	}
	return nil
}

func write(of any) []byte {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err) // texts, numbers and JSON
	}
	return text
}
