package statemachine

import (
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

// beginJob begins the job of a node that was entered.
func (m *macrostep) beginJob(inv *chart.Invoke) {
	j := record.JobState{Invoke: inv, Begun: m.scope.Now, Priority: chart.JobPriorityDefault}
	if m.tooManyChildren() {
		return
	}
	var err error
	if inv.Job.Data != nil {
		j.Data, err = inv.Job.Data.Eval(&m.scope)
	}
	if p := inv.Job.Priority; p != nil && err == nil {
		var v data.Value
		if v, err = p.Eval(&m.scope); err == nil {
			j.Priority, err = chart.JobPriority(v)
		}
	}
	if err != nil {
		m.raiseError(err)
		return
	}
	bytes := len(j.Data)
	for i := range m.in.State.Jobs {
		bytes += len(m.in.State.Jobs[i].Data)
	}
	if bytes > maxJobBytes {
		m.fail(errJobsLarge)
		return
	}
	j.ID = m.nextPart()
	m.in.State.Jobs = append(slices.Clip(m.in.State.Jobs), j)
}

// tooManyChildren fails the step that would begin one more child or job.
func (m *macrostep) tooManyChildren() bool {
	running := len(m.in.State.Jobs)
	for i := range m.in.State.Children {
		if m.in.State.Children[i].Status == ChildRuns {
			running++
		}
	}
	if running >= maxChildren {
		m.fail(errTooManyChildren)
	}
	return running >= maxChildren
}

func (m *macrostep) endJobs(n *chart.Node) {
	if ofNode := func(j record.JobState) bool { return j.Invoke.Node == n }; slices.ContainsFunc(m.in.State.Jobs, ofNode) {
		m.in.State.Jobs = slices.DeleteFunc(slices.Clone(m.in.State.Jobs), ofNode)
	}
}

// settleJob is Callback for a job.
func (d *Definition) settleJob(in *Instance, at int, failed bool, eventData data.Value, now time.Time) (Result, error) {
	next, of := *in, &chart.ChildTransition{Invoke: in.State.Jobs[at].Invoke, Failed: failed}
	next.State.Jobs = slices.Delete(slices.Clone(in.State.Jobs), at, at+1)
	r, err := d.step(&next, &Event{Name: of.Event(), Data: eventData, Caller: chart.SystemCaller, Now: now}, trigger{name: of.Event(), child: of})
	if err == nil && failed && r.Outcome != Moved {
		message, _ := eventData.Lookup("message")
		return Result{}, executionError{reason: message.Text()}
	}
	return r, err
}

// failJob is FailCallback for a job. Of one that has failed, the incident has the job begin again.
func failJob(in *Instance, at int, failed bool, eventData data.Value, now time.Time) Instance {
	next := *in
	of := &chart.ChildTransition{Invoke: in.State.Jobs[at].Invoke, Failed: failed}
	if failed {
		next.State.SetJobFailed(at, true)
	} else {
		next.State.Jobs = slices.Delete(slices.Clone(in.State.Jobs), at, at+1)
	}
	return next.WithIncident(record.TimerState{Due: now, Child: of, Data: eventData})
}

// FailedJob is the job whose failure is the incident of that timer; false when it is another incident, or none.
func (d *Definition) FailedJob(in *Instance, timer ElementID) (id ElementID, ok bool) {
	at := in.State.TimerAt(timer)
	if at < 0 {
		return id, false
	}
	t := &in.State.Timers[at]
	if t.Child == nil || !t.Child.Failed {
		return id, false
	}
	if at = in.State.JobOf(t.Child.Invoke); at < 0 {
		return id, false
	}
	return in.State.Jobs[at].ID, true
}

// RetryJob returns the instance with a job that has failed for good as one that waits again, without its incident. It returns ErrNoChild when
// the instance has no such job.
func (d *Definition) RetryJob(in *Instance, id ElementID) (Instance, error) {
	next, at := *in, in.State.JobAt(id)
	if at < 0 || !in.State.Jobs[at].Failed {
		return next, ErrNoChild
	}
	inv := in.State.Jobs[at].Invoke
	next.State.Timers = slices.DeleteFunc(slices.Clone(in.State.Timers), func(t record.TimerState) bool { return t.Child != nil && t.Child.Failed && t.Child.Invoke == inv })
	next.State.SetJobFailed(at, false)
	return next, nil
}
