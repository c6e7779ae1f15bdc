package simulation

import (
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/job"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Job is work for programs that an instance waits for.
type Job struct {
	statemachine.Job
	JobID    string
	Attempts int       // that have failed
	Next     time.Time // when a program may have it
	Message  string    // of the last attempt that has failed
}

// attempts is what is known of a job beside its instance.
type attempts struct {
	failed  int
	next    time.Time
	message string
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
		out = append(out, Job{j, job.IDOf(in.id, j.ID), of.failed, of.next, of.message})
	}
	slices.SortStableFunc(out, func(a, b Job) int { return b.Priority - a.Priority })
	return out
}

// CompleteJob has a program complete the next job of a type that the instance waits for; absent: without output. failure.ErrNotFound: there
// is none; failure.ErrNotAllowed: its next attempt comes later; failure.ErrUnprocessable: the output does not fit.
func (w *World) CompleteJob(in *Instance, typ string, output data.Value) error {
	rules, j, err := w.nextJob(in, typ)
	if err == nil {
		err = job.CheckOutput(rules.Job(typ), output)
	}
	if err != nil {
		return err
	}
	in.hearJob(&job.Settled{ID: j.ID, Attempts: j.Attempts + 1}, output)
	return w.settle()
}

// FailJob has a program fail it, as CompleteJob does. Final: it is not tried again.
func (w *World) FailJob(in *Instance, typ, message string, final bool) error {
	rules, j, err := w.nextJob(in, typ)
	if err != nil {
		return err
	}
	of := rules.Job(typ)
	if of == nil { // NB: the newest version has no such jobs any more
		of = in.of.Job(typ)
	}
	j.Attempts++
	if final || j.Attempts > of.RetryLimit {
		in.hearJob(&job.Settled{ID: j.ID, Failed: true, Attempts: j.Attempts, Message: message}, nil)
		return w.settle()
	}
	in.noteAttempts(j.ID, attempts{j.Attempts, w.now.Add(of.Pause(j.Attempts)), message})
	return nil
}

// nextJob is the first that a program may have now, with the rules that hold for it.
func (w *World) nextJob(in *Instance, typ string) (rules *statemachine.Definition, first Job, err error) {
	if rules, err = w.Definition(in.Workflow(), 0); err != nil {
		return nil, first, err
	}
	for _, j := range in.Jobs() {
		switch {
		case j.Type != typ || j.Failed:
		case !j.Next.After(w.now):
			return rules, j, nil
		case first.JobID == "":
			first = j
		}
	}
	if first.JobID == "" {
		return nil, first, failure.Refuse(failure.ErrNotFound, "no job %s waits", typ)
	}
	return nil, first, failure.Refuse(failure.ErrNotAllowed, "the next attempt at job %s comes at %s", typ, first.Next.Format(statemachine.TimeLayout))
}

// hearJob takes the end of a job.
func (in *Instance) hearJob(s *job.Settled, output data.Value) {
	now, brought := in.world.now, s.Data(in.id, output)
	known := in.attempts[s.ID]
	delete(in.attempts, s.ID)
	result, err := in.of.Callback(&in.state, s.ID, s.Failed, brought, now)
	if err == nil { // NB: it is no step of the instance's own
		in.adopt(&result, 0)
		return
	}
	in.take(result, err, func() (statemachine.Instance, error) {
		in.noteAttempts(s.ID, attempts{s.Attempts, known.next, s.Message}) // NB: it stays, as an incident
		return in.of.FailCallback(&in.state, s.ID, s.Failed, brought, now)
	})
}

func (in *Instance) noteAttempts(id statemachine.ElementID, of attempts) {
	if in.attempts == nil {
		in.attempts = map[statemachine.ElementID]attempts{}
	}
	in.attempts[id] = of
}
