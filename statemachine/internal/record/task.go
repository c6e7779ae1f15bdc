package record

import (
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// Task is work for people that an instance waits for.
type Task struct {
	ID ElementID
	At chart.Position
	// Created is when the node was entered, and Due when the work should be done; zero for none.
	Created, Due time.Time
	Priority     int
	// Assignee has the task; "" when it is nobody's.
	Assignee string
	// Form is the template of a form for the data of its events; "" for none.
	Form string
}

// TaskState is a Task as the machine keeps it.
type TaskState struct {
	ID           ElementID
	Node         *chart.Node
	Created, Due time.Time
	Assignee     string
}

// Task is what others see of it.
func (t *TaskState) Task() Task {
	return Task{
		ID: t.ID, At: t.Node.Position(), Created: t.Created, Due: t.Due, Priority: t.Node.Task.Priority, Assignee: t.Assignee, Form: t.Node.Task.Form,
	}
}

// Tasks returns the open tasks of the instance, in the order in which they began.
func (in *Instance) Tasks() []Task {
	if len(in.State.Tasks) == 0 {
		return nil
	}
	out := make([]Task, len(in.State.Tasks))
	for i := range in.State.Tasks {
		out[i] = in.State.Tasks[i].Task()
	}
	return out
}

// TaskChanges compares with the instance before: a task that is assigned to somebody else is in both.
func (in *Instance) TaskChanges(before *Instance) (ended, begun []Task) {
	if isSame(in.State.Tasks, before.State.Tasks) {
		return nil, nil
	}
	return changes(before.Tasks(), in.Tasks())
}

// OverdueName is the name under which the timer of a task that becomes overdue is cancelled. No action can say it.
func (t *TaskState) OverdueName() string { return string(chart.TaskOverdue) + "\x00" + t.ID.String() }

// OverdueData is the data of that event in the instance with this id.
func (t *TaskState) OverdueData(instance string) data.Value {
	v := data.AppendString(data.Value(`{"taskId":`), instance+"-"+t.ID.String())
	v = data.AppendString(append(v, `,"stateMachineId":`...), string(t.Node.Machine.ID))
	v = data.AppendString(append(v, `,"nodeId":`...), string(t.Node.ID))
	v = data.AppendString(append(v, `,"due":`...), t.Due.Format(TimeLayout))
	return append(v, '}')
}
