package job

import (
	"time"

	"troupe/actors/internal/instanceid"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Origin is the commit that changes the jobs of an instance.
type Origin struct {
	Shard    key.Shard
	Workflow string
	Version  uint64
	Instance key.ID
	At       time.Time
	Trace    string   // the value of trace.Header for the jobs that it begins; "": nobody follows it
	Settled  *Settled    // nil: no lease has ended with it
}

// Settled is how a job has come to its end, in the commit that takes that.
type Settled struct {
	ID      statemachine.ElementID
	Lease   string // "": nobody had it
	Failed  bool
	Message string // why
}

// IDOf is what programs call a job of an instance.
func IDOf(instance key.ID, id statemachine.ElementID) string {
	return instanceid.Text(instance) + "-" + id.String()
}
