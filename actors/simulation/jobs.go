package simulation

import (
	"fmt"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Job is work for programs that an instance waits for.
type Job struct {
	statemachine.Job
	JobID    string
	Attempts int       // that have failed
	Next     time.Time // when a program may have it
}

// attempts is what is known of a job beside its instance.
type attempts struct {
	failed int
	next   time.Time
}

// Jobs are those that the instance waits for, in the order in which a program gets them: by priority, then age.
func (in *Instance) Jobs() (out []Job) {
	if in.gone {
		return nil
	}
	for _, j := range in.state.Jobs() {
		of := in.attempts[j.ID]
		if of.next.IsZero() {
			of.next = j.Begun
		}
		out = append(out, Job{j, instanceid.PartText(in.id, j.ID.Sequence, j.ID.Number), of.failed, of.next})
	}
	slices.SortStableFunc(out, func(a, b Job) int { return b.Priority - a.Priority })
	return out
}

// CompleteJob has a program complete the next job of a type that the instance waits for. failure.ErrNotFound: there is none;
// failure.ErrNotAllowed: its next attempt comes later; failure.ErrUnprocessable: the output does not fit.
func (w *World) CompleteJob(in *Instance, kind string, output data.Value) error {
	j, policy, err := w.nextJob(in, kind)
	if err != nil {
		return err
	}
	if len(output) == 0 {
		output = data.Value("null")
	}
	if err := policy.Output.Check(output); err != nil {
		return failure.Refuse(failure.ErrUnprocessable, "output: %w", err)
	}
	in.settleJob(j, false, "output", output)
	return w.settle()
}

// FailJob has a program fail it, as CompleteJob does. Final: it is not tried again.
func (w *World) FailJob(in *Instance, kind, message string, final bool) error {
	j, policy, err := w.nextJob(in, kind)
	if err != nil {
		return err
	}
	j.Attempts++
	if !final && j.Attempts <= policy.RetryLimit {
		if in.attempts == nil {
			in.attempts = map[statemachine.ElementID]attempts{}
		}
		in.attempts[j.ID] = attempts{j.Attempts, w.now.Add(longest(policy.Delay, policy.MaxDelay, policy.Backoff, j.Attempts))}
		return nil
	}
	j.Attempts-- // NB: settleJob counts it
	in.settleJob(j, true, "message", data.AppendString(nil, message))
	return w.settle()
}

// longest is how long the attempt behind so many waits at most.
func longest(delay, most time.Duration, backoff float64, failed int) time.Duration {
	pause := float64(delay)
	for range failed - 1 {
		pause = min(pause*backoff, float64(most))
	}
	return time.Duration(min(pause, float64(most)))
}

func (w *World) nextJob(in *Instance, kind string) (j Job, policy *statemachine.JobType, err error) {
	rules, err := w.Definition(in.Workflow(), 0)
	if err != nil {
		return j, nil, err
	}
	jobs := in.Jobs()
	i := slices.IndexFunc(jobs, func(j Job) bool { return j.Type == kind && !j.Failed && !j.Next.After(w.now) })
	if i < 0 {
		i = slices.IndexFunc(jobs, func(j Job) bool { return j.Type == kind && !j.Failed })
		if i < 0 {
			return j, nil, failure.Refuse(failure.ErrNotFound, "no job %s waits", kind)
		}
		return j, nil, failure.Refuse(failure.ErrNotAllowed, "the next attempt at job %s comes at %s", kind, jobs[i].Next.Format(statemachine.TimeLayout))
	}
	if policy = rules.Job(kind); policy == nil { // NB: the newest version has no such jobs any more
		policy = in.of.Job(kind)
	}
	return jobs[i], policy, nil
}

func (in *Instance) settleJob(j Job, failed bool, key string, value data.Value) {
	delete(in.attempts, j.ID)
	brought := data.AppendString(data.Value(`{"jobId":`), j.JobID)
	brought = append(data.AppendString(append(brought, ','), key), ':')
	brought = fmt.Appendf(append(brought, value...), `,"attempts":%d}`, j.Attempts+1)
	in.hearNotice(j.ID, failed, brought)
}
