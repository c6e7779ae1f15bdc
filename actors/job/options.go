package job

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/actors/query"
	"troupe/actors/trace"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Options configures a Service. All fields but the last four are required.
type Options struct {
	Store *persistence.Store
	Clock func() time.Time
	Log   zerolog.Logger
	// Types returns what the newest versions that have a type say of it, by workflow.
	Types func(typ string) []catalog.JobType
	// Finish gives an instance the end of a job, and Again has it begin one again that has failed for good. done is called once, when that is
	// durable, or with the reason why it is not. They must not block.
	Finish  func(f *Finish, done func(error))
	Again   func(workflow string, of key.Job, done func(error))
	Queries *query.Service
	// MayRead reports whether a caller may read an instance.
	MayRead func(caller *identity.Principal, workflow, instance string) bool
	Tracer  *trace.Tracer // nil: nobody collects traces
	// Held is why no job is given now. Nil, or a nil error: they are. When that ends, Resumed is called.
	Held func() error
	// Fanout and Peers reach the nodes that lead other shards. Nil: the store is standalone.
	Fanout *fanout.Service
	Peers  fanout.Peers
}

// Finish is the end of a job, by the holder of a lease.
type Finish struct {
	Workflow string
	Job      key.Job
	Lease    string
	Failed   bool
	Output   data.Value // nil for none
	Trace    string     // the value of trace.Header; "": nobody follows it
}

// Grant is what a caller may have of the jobs of a type and workflow.
type Grant struct {
	Type, Workflow string
	Timeout        time.Duration
	Retries        int
	Running        int     // limits of the type; 0: none
	PerSecond      float64 // likewise
	Most           int     // that are given; below 0: any number
}

// grants says what a caller may have.
func (o *Options) grants(caller *identity.Principal, types []string) (grants []Grant, err error) {
	now := o.Clock()
	for i, typ := range types {
		if slices.Contains(types[:i], typ) {
			continue
		}
		known := o.Types(typ)
		if len(known) == 0 {
			return nil, failure.Refuse(failure.ErrNotFound, "no definition has jobs of the type %q", typ)
		}
		before := len(grants)
		for _, t := range known {
			if mayHave(caller, t.JobType, now) {
				grants = append(grants, Grant{typ, t.Workflow, t.Timeout, t.RetryLimit, t.Running, t.PerSecond, -1})
			}
		}
		if len(grants) == before {
			return nil, failure.Refuse(failure.ErrForbidden, "permission denied: jobs of the type %s need %s, or a right of jobs.%s.allow", typ, identity.Jobs, typ)
		}
	}
	return grants, nil
}

// mayHave: t is nil for a type that no version has.
func mayHave(caller *identity.Principal, t *statemachine.JobType, now time.Time) bool {
	return caller.Has(identity.Jobs) || t != nil && t.Lets(catalog.CallerOf(caller), now)
}

func (g *Grant) isLimited() bool { return g.Running > 0 || g.PerSecond > 0 }

// may says whether a caller may change a job. A nil one may.
func (o *Options) may(caller *identity.Principal, action Action, typ, workflow string) error {
	if caller == nil || caller.Has(identity.Workflows) && (action == Retry || action == Cancel) {
		return nil
	}
	var of *statemachine.JobType
	for _, t := range o.Types(typ) {
		if t.Workflow == workflow {
			of = t.JobType
		}
	}
	if !mayHave(caller, of, o.Clock()) {
		return failure.Refuse(failure.ErrForbidden, "permission denied: jobs of the type %s of %s need %s, or a right of jobs.%s.allow", typ, workflow, identity.Jobs, typ)
	}
	return nil
}

// policyOf is what a workflow says of a type. If it does not say, the usual rules hold.
func (o *Options) policyOf(of *key.Offer) *statemachine.JobType {
	for _, t := range o.Types(of.Type) {
		if t.Workflow == of.Workflow {
			return t.JobType
		}
	}
	return &statemachine.JobType{
		Retry:   statemachine.Retry{RetryLimit: 3, Delay: 5 * time.Second, MaxDelay: time.Hour, Backoff: 2, Jitter: true},
		Timeout: LeaseDefault,
	}
}

// pauseBefore is the time before the next attempt, after so many.
func pauseBefore(of *statemachine.Retry, attempts int) time.Duration {
	pause := of.Pause(attempts)
	if of.Jitter {
		pause -= time.Duration(float64(pause/2) * rand.Float64())
	}
	return pause
}
