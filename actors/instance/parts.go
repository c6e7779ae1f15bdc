package instance

import (
	"cmp"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/internal/instanceid"
	"troupe/actors/job"
	"troupe/actors/outbox"
	"troupe/actors/task"
	"troupe/actors/timer"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

func (i *Actor) putDeliveries(w *persistence.Batch, c *Call, of *outcome) {
	n := c.withNotices()
	n.sentAt = i.env.Clock().Add(of.delay) // NB: the time of the entry may be ahead of a clock that was set back
	outbox.Put(w, outbox.Origin{
		Shard: i.shard, Workflow: i.workflowID, Version: i.of.Version, Instance: i.id, Sequence: i.state.Sequence, At: i.state.UpdatedAt, Due: n.sentAt, Trace: c.span.Parent(),
	}, of.sends)
	for k := range of.sends {
		if queue := outbox.QueueOf(&of.sends[k]); !slices.Contains(n.sent, queue) {
			n.sent = append(n.sent, queue)
		}
	}
}

func (i *Actor) putTimers(w *persistence.Batch, c *Call, ch *change, ended, begun []statemachine.Timer) {
	i.env.Incidents.LogFailed(i.of, i.workflowID, i.id, ch.fault, begun)
	began := timer.Put(w, &timer.Origin{
		Shard: i.shard, Workflow: i.workflowID, Instance: i.id, At: i.env.Clock(), Fault: ch.fault, Of: i.of, Trace: c.span.Parent(),
	}, ended, begun)
	if n := c.withNotices(); n.began.IsZero() || !began.IsZero() && began.Before(n.began) {
		n.began = began
	}
}

// putJobs writes what a step changes in the jobs of the instance. was is what it was.
func (i *Actor) putJobs(w *persistence.Batch, c *Call, ch *change, was *statemachine.Instance) {
	ended, begun := i.state.JobChanges(was)
	var kept []statemachine.Job
	if ch.of != nil {
		kept = slices.DeleteFunc(i.state.Jobs(), func(j statemachine.Job) bool {
			return slices.ContainsFunc(begun, func(b statemachine.Job) bool { return b.ID == j.ID })
		})
	}
	if len(ended)+len(begun)+len(kept) == 0 {
		return
	}
	n, of := c.withNotices(), &job.Origin{
		Shard: i.shard, Workflow: i.workflowID, Version: i.of.Version, Instance: i.id, At: i.env.Clock(), Trace: c.span.Parent(), Settled: ch.settled,
	}
	n.jobs = append(append(n.jobs, job.Put(w, of, ended, begun)...), job.Move(w, of, i.env.Store.Load, kept)...)
}

// putTasks writes what a step changes in the tasks of the instance. before is its definition until now, and was what it was.
func (i *Actor) putTasks(w *persistence.Batch, c *Call, ch *change, before *statemachine.Definition, was *statemachine.Instance, ended, begun []statemachine.Task) (changed bool) {
	if len(ended)+len(begun) == 0 {
		return false
	}
	of := &task.Origin{
		Shard: i.shard, Workflow: i.workflowID, Instance: i.id, Before: before, Of: i.of, User: ch.caller, Event: string(ch.entry.Event), At: i.state.UpdatedAt,
	}
	earlier := *was // NB: a copy, so that only steps that change tasks have one on the heap
	task.Put(w, of, ended, begun, ch.decided, statemachine.View{Instance: &earlier, Of: before}.TaskText)
	i.tellTasks(c, task.ChangeOf(of, ended, begun))
	return true
}

// tellTasks has those who watch told of a change when it is durable. In a cluster they get what becomes visible in the replicas.
func (i *Actor) tellTasks(c *Call, change *task.Change) {
	if i.env.Store.Standalone() && i.env.Tasks.IsWatched() {
		n := c.withNotices()
		n.tasks = append(n.tasks, change)
	}
}

// dropTaskDrafts adds the drafts for tasks that end with a change, or that have no form any more.
func (i *Actor) dropTaskDrafts(ch *change) error {
	ended, begun := ch.next.TaskChanges(&i.state)
	for _, t := range ended {
		if t.Form == "" || slices.ContainsFunc(begun, func(b statemachine.Task) bool { return b.ID == t.ID && b.Form != "" }) {
			continue
		}
		store, err := i.rows()
		if err != nil {
			return err
		}
		err = store.Scan(key.TaskDraftPrefix(nil, i.shard, i.id, t.ID.Sequence, t.ID.Number), func(key, _ []byte) error {
			ch.gone = append(ch.gone, slices.Clone(key))
			return nil
		})
		if err != nil {
			return failure.OfStore(err)
		}
	}
	return nil
}

func (i *Actor) setForm(attachment []byte) error {
	i.form = nil
	if len(attachment) == 0 {
		return nil
	}
	f, err := form.Parse(attachment)
	if i.form = f; f != nil {
		f.Stored = attachment
	}
	return err
}

// putForm brings the form up to date with the present state, and writes the row of its owner's list where that changes.
// statesBefore are the positions that there were. It comes before putRecord, which writes the form itself.
func (i *Actor) putForm(w *persistence.Batch, ch *change, statesBefore []byte) {
	created := ch.form
	if created == nil && i.form == nil {
		return
	}
	at, done := i.state.UpdatedAt, i.of.IsDone(&i.state)
	newID := func() string { return instanceid.Text(i.env.IDs.Draw(at)) }
	var next form.Form
	if created != nil {
		next = created.Begin(i.of.States(&i.state), done, at, newID)
	} else {
		next = i.form.Next(i.of.States(&i.state), done, at, newID)
		if next.Moved() && !i.form.Moved() { // by whatever event: the caller's draft is over
			w.Delete(key.Draft(nil, i.shard, i.id, ch.caller))
		}
	}
	attachment := next.Append(nil)
	changed := string(attachment) != string(i.attachment()) || string(i.of.States(&i.state)) != string(statesBefore)
	before := i.form
	next.Stored = attachment
	i.form = &next
	if changed {
		row := form.Row{Form: next, WorkflowID: i.workflowID, Nodes: statemachine.NodeNames(i.of.Positions(&i.state))}
		row.Put(w, i.spot(), before)
	}
}

// spot is what the keys of the instance's list rows have of it.
func (i *Actor) spot() form.Spot {
	return form.Spot{Shard: i.shard, ID: i.id, Made: i.state.CreatedAt.UnixMilli()}
}

// readCreatorRow finds out what the row takes that anyone who created the instance has of it, if a change may write it.
func (i *Actor) readCreatorRow(ch *change) error {
	switch {
	case ch.form != nil, i.form != nil:
	case ch.created:
		i.creatorRow.Begin(ch.caller)
	case form.IsMoved(i.of, cmp.Or(ch.of, i.of), &i.state, &ch.next):
		return i.creatorRow.Look(i.rows, i.spot())
	}
	return nil
}
