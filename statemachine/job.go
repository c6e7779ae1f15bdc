package statemachine

import (
	"slices"

	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/record"
)

// beginJob begins the job of a node that was entered.
func (m *macrostep) beginJob(inv *chart.Invoke) {
	j := record.JobState{Invoke: inv, Begun: m.scope.Now}
	if m.tooManyChildren() {
		return
	}
	var err error
	if j.Data, j.Priority, err = inv.Job.Eval(&m.scope); err != nil {
		m.raiseError(err)
		return
	}
	bytes := len(j.Data)
	for i := range m.in.State.Jobs {
		bytes += len(m.in.State.Jobs[i].Data)
	}
	if bytes > fault.MaxJobBytes {
		m.fail(fault.ErrJobsLarge)
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
	if running >= fault.MaxChildren {
		m.fail(fault.ErrTooManyChildren)
	}
	return running >= fault.MaxChildren
}

func (m *macrostep) endJobs(n *chart.Node) {
	if ofNode := func(j record.JobState) bool { return j.Invoke.Node == n }; slices.ContainsFunc(m.in.State.Jobs, ofNode) {
		m.in.State.Jobs = slices.DeleteFunc(slices.Clone(m.in.State.Jobs), ofNode)
	}
}

// settleJob is callback for a job.
func (d *Definition) settleJob(in *Instance, at int, failed bool, e *Event) (Result, error) {
	next, of := in.WithoutJob(at, failed)
	e.Name = of.Event()
	r, err := d.step(&next, e, trigger{name: e.Name, child: of})
	if err == nil && failed && r.Outcome != Moved {
		message, _ := e.Data.Lookup("message")
		return Result{}, fault.Execution{Reason: message.Text()}
	}
	return r, err
}
