// Package job gives work of instances to programs that ask for it. A job is made in the commit that enters its state and
// ends in the commit that leaves it; between the two, this package decides who has it, and for how long.
package job

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"troupe/actors/identity"
	"troupe/statemachine/data"
)

// Bounds of Activation.
const (
	ActivatedMax    = 1000 // jobs of one activation; fewer when their data is larger than 8 MiB
	WaitMax         = time.Minute
	LeaseMin        = time.Second
	LeaseDefault    = 5 * time.Minute // also the timeout of a type that names none
	PriorityDefault = 50              // of 0 to 100; the highest comes first
)

// Activation asks for jobs.
type Activation struct {
	Caller *identity.Principal
	Types  []string
	Worker string        // a name for lists; it identifies nobody
	Max    int           // 1 to ActivatedMax
	Lease  time.Duration // LeaseMin up to the timeout of the type, which bounds it; 0: that
	Wait   time.Duration // for the first job: 0 to WaitMax
}

// Leased is a job that its caller has until Deadline.
type Leased struct {
	JobID, Lease, Type     string
	WorkflowID             string
	Version                uint64
	InstanceID             string
	StateMachineID, NodeID string
	Attempt, AttemptsLeft  int // Attempt counts from 1
	Priority               int
	Created, Deadline      time.Time
	Data                   data.Value
	Traceparent            string // "": nobody follows it
}

// Action is what is asked of a job.
type Action string

// The actions. Complete, Fail and Extend need a lease, Retry and Cancel do not.
const (
	Complete Action = "complete"
	Fail     Action = "fail"
	Extend   Action = "extend"
	Retry    Action = "retry"
	Cancel   Action = "cancel"
)

// Item is one job of a request. Which fields it has depends on the action.
type Item struct {
	JobID, Lease string
	Output       data.Value     // Complete; nil: none
	Message      string         // Fail
	RetryIn      *time.Duration // Fail; nil: as the type says, also with Later
	Final        bool           // Fail: no more attempts
	Later        bool           // Fail: it counts as no attempt, and comes back after the type's delay
	By           time.Duration  // Extend: the lease ends so long from now
}

// Request is an action upon jobs. The answer has one error for each item, in order; nil: done, and durable.
type Request struct {
	Caller *identity.Principal
	Action Action
	Items  []Item
}

// State is where a job is.
type State string

// The states. A job whose attempts have all failed is Failed while its instance still waits in the state that made it,
// because nothing takes the failure; then it is an incident, too.
const (
	Waiting State = "waiting" // also one whose next attempt is due later
	Running State = "running" // somebody has a lease
	Failed  State = "failed"
)

// Query selects jobs. Empty fields select all.
type Query struct {
	Caller     *identity.Principal
	Type       string
	State      State
	WorkflowID string
	JobID      string // one job, with its data
	Limit      int
	Cursor     string
}

// Listed is a job in a list. It has no lease, which is its holder's secret.
type Listed struct {
	JobID, Type            string
	State                  State
	WorkflowID             string
	Version                uint64
	InstanceID             string
	StateMachineID, NodeID string
	Attempts, AttemptsLeft int // Attempts counts those that have begun
	Priority               int
	Created                time.Time
	Due                    time.Time  // of the next attempt, when that comes later; zero: now
	Worker                 string     // Running, or who had it last
	Deadline               time.Time  // Running
	Message                string     // of the last attempt that failed
	Data                   data.Value // only with Query.JobID, for who may read the instance
}

// Page is an answer to a Query.
type Page struct {
	Jobs []Listed
	Next string // "": there are no more
}

// TypeCount is what the nodes together know of a type.
type TypeCount struct {
	Type                     string
	Waiting, Running, Failed int64
	Oldest                   time.Time // of those waiting; zero: none waits
	Workers                  []string  // seen in the last minute
}

func (c *TypeCount) sawOldest(created int64) {
	if at := time.UnixMilli(created).UTC(); c.Oldest.IsZero() || at.Before(c.Oldest) {
		c.Oldest = at
	}
}

func (c *TypeCount) add(of *TypeCount) {
	c.Waiting, c.Running, c.Failed = c.Waiting+of.Waiting, c.Running+of.Running, c.Failed+of.Failed
	if !of.Oldest.IsZero() {
		c.sawOldest(of.Oldest.UnixMilli())
	}
	c.Workers = slices.Compact(slices.Sorted(slices.Values(append(c.Workers, of.Workers...))))
}

func sorted(by map[string]*TypeCount) (out []TypeCount) {
	for _, c := range slices.SortedFunc(maps.Values(by), func(a, b *TypeCount) int { return cmp.Compare(a.Type, b.Type) }) {
		if c.Waiting+c.Running+c.Failed > 0 || len(c.Workers) > 0 {
			out = append(out, *c)
		}
	}
	return out
}
