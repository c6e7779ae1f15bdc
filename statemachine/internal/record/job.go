package record

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/packed"
)

// Job is work for programs that an instance waits for: it begins when its node is entered, and ends at the latest when that is left.
type Job struct {
	ID   ElementID
	Type string
	// At is the node that has it done, and Begun when that was entered.
	At       chart.Position
	Begun    time.Time
	Priority int
	Data     data.Value // nil for none
	// Failed: it has failed for good, and nothing took that. The incident of that is a timer; Definition.RetryJob begins the job again.
	Failed bool
}

// JobState is a Job as the machine keeps it.
type JobState struct {
	ID       ElementID
	Invoke   *chart.Invoke
	Begun    time.Time
	Priority int
	Data     data.Value
	Failed   bool
}

// Job is what others see of it.
func (j *JobState) Job() Job {
	return Job{j.ID, j.Invoke.Job.Type, j.Invoke.Node.Position(), j.Begun, j.Priority, j.Data, j.Failed}
}

// Jobs returns the jobs that the instance waits for, in the order in which they began.
func (in *Instance) Jobs() []Job {
	if len(in.State.Jobs) == 0 {
		return nil
	}
	out := make([]Job, len(in.State.Jobs))
	for i := range in.State.Jobs {
		out[i] = in.State.Jobs[i].Job()
	}
	return out
}

// JobChanges compares with the instance before: a job that has failed for good, or begins again, is in both.
func (in *Instance) JobChanges(before *Instance) (ended, begun []Job) {
	if isSame(in.State.Jobs, before.State.Jobs) {
		return nil, nil
	}
	return jobsWithout(before.State.Jobs, in.State.Jobs), jobsWithout(in.State.Jobs, before.State.Jobs)
}

func jobsWithout(jobs, others []JobState) (out []Job) {
	for i := range jobs {
		if k := jobAt(others, jobs[i].ID); k < 0 || others[k].Failed != jobs[i].Failed {
			out = append(out, jobs[i].Job())
		}
	}
	return out
}

func jobAt(jobs []JobState, id ElementID) int {
	return slices.IndexFunc(jobs, func(j JobState) bool { return j.ID == id })
}

// JobAt is the place of a job; -1: the instance does not wait for it.
func (s *State) JobAt(id ElementID) int { return jobAt(s.Jobs, id) }

// WithoutJob returns the instance without the job at a place and its incident, and what takes its end.
func (in *Instance) WithoutJob(at int, failed bool) (next Instance, end *chart.ChildTransition) {
	next = in.withoutJobIncident(at)
	next.State.Jobs = slices.Delete(slices.Clone(in.State.Jobs), at, at+1)
	return next, &chart.ChildTransition{Invoke: in.State.Jobs[at].Invoke, Failed: failed}
}

// WithJobIncident returns the instance with the end of a job that could not be taken. One that has failed stays, so that it can begin again.
func (in *Instance) WithJobIncident(at int, failed bool, eventData data.Value, now time.Time) Instance {
	next, end := in.WithoutJob(at, failed)
	if failed {
		next.setJobFailed(in, at, true)
	}
	return next.WithIncident(TimerState{Due: now, Child: end, Data: eventData})
}

func (in *Instance) withoutJobIncident(at int) Instance {
	next := *in
	if j := &in.State.Jobs[at]; j.Failed {
		next.State.Timers = slices.DeleteFunc(slices.Clone(in.State.Timers), func(t TimerState) bool { return j.isOf(&t) })
	}
	return next
}

func (in *Instance) setJobFailed(before *Instance, at int, failed bool) {
	in.State.Jobs = slices.Clone(before.State.Jobs)
	in.State.Jobs[at].Failed = failed
}

// FailedJob is the job whose failure is the incident of that timer; false when it is another incident, or none.
func (in *Instance) FailedJob(timer ElementID) (id ElementID, ok bool) {
	if at := in.State.TimerAt(timer); at >= 0 {
		for i := range in.State.Jobs {
			if in.State.Jobs[i].isOf(&in.State.Timers[at]) {
				return in.State.Jobs[i].ID, true
			}
		}
	}
	return id, false
}

// isOf reports whether the timer is the incident of the job.
func (j *JobState) isOf(t *TimerState) bool {
	return j.Failed && t.Child != nil && t.Child.Failed && t.Child.Invoke == j.Invoke
}

// RetryJob returns the instance with a job that has failed for good as one that waits again, and without its incident; false when it has no
// such job.
func (in *Instance) RetryJob(id ElementID) (next Instance, ok bool) {
	at := in.State.JobAt(id)
	if at < 0 || !in.State.Jobs[at].Failed {
		return *in, false
	}
	next = in.withoutJobIncident(at)
	next.setJobFailed(in, at, false)
	return next, true
}

// The flags of a job.
const (
	jobFailed byte = 1 << iota
	jobOfMachine
)

// appendJobs writes each: flags(1) sequence number begun, in ms, where the invoke stands, priority and data.
func appendJobs(dst []byte, jobs []JobState) []byte {
	for i := range jobs {
		j := &jobs[i]
		var flags byte
		if j.Failed {
			flags |= jobFailed
		}
		if j.Invoke.Node.Machine == j.Invoke.Node {
			flags |= jobOfMachine
		}
		dst = j.ID.append(append(dst, flags))
		dst = appendInvoke(packed.AppendTime(dst, j.Begun), j.Invoke)
		dst = binary.AppendUvarint(dst, uint64(j.Priority)) //nolint:gosec // not negative
		dst = packed.AppendText(dst, j.Data)
	}
	return dst
}

func restoreJobs(d *chart.Definition, b []byte) (out []JobState, err error) {
	rd := packed.NewReader(b)
	for !rd.Whole() {
		flags := rd.Byte()
		j := JobState{ID: readElement(&rd), Begun: rd.Time(), Failed: flags&jobFailed != 0}
		j.Invoke = readInvoke(d, &rd, flags&jobOfMachine != 0)
		j.Priority = int(min(rd.Uvarint(), math.MaxInt32)) //nolint:gosec // bounded
		j.Data = readData(&rd)
		if rd.Failed() || flags > jobFailed|jobOfMachine || j.Invoke == nil || j.Invoke.Job == nil || j.Priority > chart.JobPriorityMax {
			return nil, errJobs
		}
		out = append(out, j)
	}
	return out, nil
}
