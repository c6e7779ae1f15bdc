package trace

import (
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Job is an attempt at work that an instance waits for.
type Job struct {
	Workflow, Instance string
	ID, Type, Worker   string
	Attempt            int
}

// Leased begins the span of an attempt: from when a worker gets the job until it has said what came of it, or its time is
// over. Before it is one of the time that the job has waited, since waited; zero: it did not.
func (t *Tracer) Leased(parent string, of *Job, waited time.Time) *Span {
	if t == nil || parent == "" {
		return nil
	}
	if !waited.IsZero() {
		past := t.begin(outside(parent), "wait for a worker", Internal, trace.WithTimestamp(waited))
		past.say(of)
		past.End(nil)
	}
	span := t.begin(outside(parent), "job "+of.Type, Internal)
	span.say(of)
	span.Set("troupe.worker", of.Worker)
	return span
}

func (s *Span) say(of *Job) {
	s.Set("troupe.workflow", of.Workflow, "troupe.instance", of.Instance, "troupe.job", of.ID, "troupe.job_type", of.Type, "troupe.attempt", strconv.Itoa(of.Attempt))
}
