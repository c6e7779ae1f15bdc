package chart

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

// JobPriorityDefault is the priority of a job that says none, and JobPriorityMax the highest.
const (
	JobPriorityDefault = 50
	JobPriorityMax     = 100
)

// JobType is what a definition says of the jobs of one type (statemachine/DEFINITION.md, "Jobs"). That of the newest version
// counts for the jobs of all versions. Built once, then read only.
type JobType struct {
	Name  string
	Line  int   // in the file
	Allow *Rule // who may have the jobs; nil: nobody without a privilege
	Retry
	Timeout   time.Duration  // the longest lease
	Running   int            // how many leases run at a time; 0: any number
	PerSecond float64        // how many leases begin in a second; 0: any number
	Output    *schema.Schema // nil: anything
}

// Retry says when what has failed is tried again: RetryLimit times after the first; the tries wait for Delay, then Backoff times as
// long, and so on up to MaxDelay. Jitter: each waits for a random part less.
type Retry struct {
	RetryLimit      int
	Delay, MaxDelay time.Duration
	Backoff         float64
	Jitter          bool
}

// Job returns what the definition says of a type of jobs; nil when it has none of that name.
func (d *Definition) Job(name string) *JobType { return d.JobByType[name] }

// JobTypes returns those of the definition, by name.
func (d *Definition) JobTypes() []*JobType {
	return slices.SortedFunc(maps.Values(d.JobByType), func(a, b *JobType) int { return cmp.Compare(a.Name, b.Name) })
}

// Lets reports whether the definition lets the caller have jobs of the type, whatever else the caller may.
func (t *JobType) Lets(c *Caller, now time.Time) bool {
	return t.Allow != nil && t.Allow.without(c, now) == Granted
}

// JobInvoke is an invoke that has a job done instead of a child.
type JobInvoke struct {
	Type           string
	Data, Priority *Template // nil: none, and JobPriorityDefault
}

var errJobPriority = fmt.Errorf("priority must be a whole number from 0 to %d", JobPriorityMax)

// JobPriority reads a priority.
func JobPriority(v data.Value) (int, error) {
	i, ok := v.Truncate()
	if v.Kind() != data.Number || !ok || i < 0 || i > JobPriorityMax || float64(i) != v.Float64() {
		return 0, errJobPriority
	}
	return int(i), nil
}
