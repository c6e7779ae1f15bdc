package instance

import (
	"errors"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/job"
	"troupe/actors/trace"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

var errNoJob = failure.Refuse(failure.ErrEnded, "the instance does not wait for the job any more")

// FinishJob is the request to end a job, of who has its lease.
type FinishJob struct {
	*job.Finish
	Span *trace.Span // nil: nobody follows it
}

func (req FinishJob) span() *trace.Span { return req.Span }

func (req FinishJob) part() statemachine.ElementID {
	return statemachine.ElementID{Sequence: req.Job.Sequence, Number: req.Job.Number}
}

func (req FinishJob) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	store, err := i.rows()
	if err != nil {
		return err
	}
	jobs := i.state.Jobs()
	var of *statemachine.Job
	if at := slices.IndexFunc(jobs, func(j statemachine.Job) bool { return j.ID == req.part() }); at >= 0 {
		of = &jobs[at]
	}
	settled, err := i.env.Jobs.Settle(store.Load, i.shard, i.activation.lead.Epoch, req.Finish, of)
	if err != nil {
		return err
	}
	if settled == nil { // it is answered as the first time
		i.deliver(c, nil)
		return nil
	}
	if !req.Failed {
		is, err := i.env.Catalog.JobType(i.workflowID, of.Type)
		if err == nil {
			err = job.CheckOutput(is, req.Output)
		}
		if err != nil {
			return err // NB: the lease stays as it is
		}
	}
	return i.hearJob(c, settled, settled.Data(i.id, req.Output))
}

// hearJob takes the end of a job. Nothing takes it, or an action fails: it becomes an incident.
func (i *Actor) hearJob(c *Call, s *job.Settled, brought data.Value) error {
	now := i.env.Clock()
	result, err := i.of.Callback(&i.state, s.ID, s.Failed, brought, now)
	if err == nil {
		err = i.mayAdd(&result)
	}
	if err == nil {
		ch := &change{outcome: outcomeOf(&result), cause: internal, settled: s}
		i.log(result.Logs)
		i.env.Counts.Events.Add(1)
		return i.commit(c, ch, false)
	}
	if errors.Is(err, statemachine.ErrEnded) || errors.Is(err, statemachine.ErrNoChild) {
		return errNoJob
	}
	next, restored := i.of.FailCallback(&i.state, s.ID, s.Failed, brought, now)
	if restored != nil {
		return failure.Errorf(failure.ErrInternal, "%w", restored)
	}
	i.env.Counts.Incidents.Add(1)
	return i.commit(c, &change{outcome: outcome{next: next, fault: err}, cause: internal, settled: s}, false)
}

// RetryJob is the request to have a job begin again that has failed for good.
type RetryJob struct{ ID statemachine.ElementID }

func (req RetryJob) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	return i.retryJob(c, req.ID)
}
