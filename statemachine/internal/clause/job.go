package clause

import (
	"math"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// What a type of jobs does that tells nothing else, and the bounds of what it tells.
const (
	jobRetryLimitDefault = 3
	jobTimeoutDefault    = 5 * time.Minute
	jobTimeoutMin        = time.Second
	MaxJobTypes          = 100
)

// Jobs reads the mapping of types to what holds for their jobs.
func (b *Reader) Jobs(n *document.Node) {
	if n == nil {
		return
	}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping of types of jobs")
		return
	}
	if len(n.Fields) > MaxJobTypes && !b.Stored {
		b.Advise(n.Fields[MaxJobTypes].Key, "make several workflows of it", "a definition has at most %d types of jobs, and this one has %d", MaxJobTypes, len(n.Fields))
		return
	}
	b.Definition.JobByType = map[string]*chart.JobType{}
	for _, f := range n.Fields {
		if !chart.IsIdentifier(f.Key.Text) {
			b.Add(f.Key, "%q is not a type of jobs: letters, digits and . _ ~ -", data.Shorten(f.Key.Text))
			continue
		}
		b.Definition.JobByType[f.Key.Text] = b.jobType(f)
	}
}

func (b *Reader) jobType(f document.Field) *chart.JobType {
	t := &chart.JobType{
		Name: f.Key.Text, Line: f.Key.Line, Timeout: jobTimeoutDefault,
		Retry: chart.Retry{RetryLimit: jobRetryLimitDefault, Delay: retryDelayDefault, MaxDelay: retryDelayMax, Backoff: backoffDefault, Jitter: true},
	}
	if f.Value.Kind == document.Null || !b.Mapping(f.Value, JobKeys) {
		return t
	}
	if at := f.Value.Field("allow"); at != nil {
		if t.Allow = b.Rule(at); t.Allow != nil && t.Allow.IsPerInstance() {
			b.Add(at, "who may have jobs cannot depend on an instance or an event: programs ask for those of all instances")
		}
	}
	b.retry(&t.Retry, f.Value.Field("retry"))
	if at := f.Value.Field("timeout"); at != nil {
		before := b.Count()
		if t.Timeout = b.constantDelay(at); t.Timeout < jobTimeoutMin && b.Count() == before {
			b.Add(at, "%q: must be PT1S or longer", data.Shorten(at.Text))
		}
	}
	if at := f.Value.Field("running"); at != nil {
		if i, ok := b.Int(at); ok && (i < 1 || i > math.MaxInt32) {
			b.Advise(at, "leave it out for any number", "must be 1 or more: how many are worked on at a time")
		} else {
			t.Running = int(i)
		}
	}
	if at := f.Value.Field("perSecond"); at != nil {
		v, err := at.Data()
		if err == nil && at.Kind == document.Number {
			t.PerSecond = v.Float64()
		}
		if !(t.PerSecond > 0) || math.IsInf(t.PerSecond, 0) {
			b.Advise(at, "leave it out for any number", "must be more than 0: how many begin in a second")
		}
	}
	t.Output = b.schema(f.Value.Field("output"))
	return t
}
