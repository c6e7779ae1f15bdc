package chart

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"troupe/statemachine/schema"
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

// Pause is the longest time between two tries, after so many that have failed.
func (r *Retry) Pause(failed int) time.Duration {
	return time.Duration(math.Min(float64(r.Delay)*math.Pow(r.Backoff, float64(max(failed-1, 0))), float64(r.MaxDelay)))
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
