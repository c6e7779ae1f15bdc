package statemachine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/packed"
)

// Task is work for people that an instance waits for.
type Task struct {
	ID PartID
	At Position
	// Created is when the node was entered, and Due when the work should be done; zero for none.
	Created, Due time.Time
	Priority     int
	// Assignee has the task; "" when it is nobody's.
	Assignee string
	// Form is the template of a form for the data of its events; "" for none.
	Form string
}

// task is a Task as the machine keeps it.
type task struct {
	id           PartID
	node         *chart.Node
	created, due time.Time
	assignee     string
}

func (t *task) public() Task {
	return Task{
		ID: t.id, At: t.node.Position(), Created: t.created, Due: t.due, Priority: t.node.Task.Priority, Assignee: t.assignee, Form: t.node.Task.Form,
	}
}

// Tasks returns the open tasks of the instance, in the order in which they began.
func (in *Instance) Tasks() []Task {
	if len(in.tasks) == 0 {
		return nil
	}
	out := make([]Task, len(in.tasks))
	for i := range in.tasks {
		out[i] = in.tasks[i].public()
	}
	return out
}

// TaskChanges compares with the instance before: a task that is assigned to somebody else is in both.
func (in *Instance) TaskChanges(before *Instance) (ended, begun []Task) {
	if len(in.tasks) == len(before.tasks) && (len(in.tasks) == 0 || &in.tasks[0] == &before.tasks[0]) {
		return nil, nil
	}
	old, now := before.Tasks(), in.Tasks()
	for _, t := range old {
		if !slices.Contains(now, t) {
			ended = append(ended, t)
		}
	}
	for _, t := range now {
		if !slices.Contains(old, t) {
			begun = append(begun, t)
		}
	}
	return ended, begun
}

// Assign returns the instance with a task that belongs to somebody; "" is nobody. It returns ErrNoTask.
func (*Definition) Assign(in *Instance, id PartID, assignee string) (Instance, error) {
	next := *in
	i := slices.IndexFunc(in.tasks, func(t task) bool { return t.id == id })
	if i < 0 {
		return next, ErrNoTask
	}
	next.tasks = slices.Clone(in.tasks)
	next.tasks[i].assignee = assignee
	return next, nil
}

// beginTask begins the task of a node that was entered, behind its entry actions. An expression that fails gives no assignee
// and no due time: the work is there all the same.
func (m *macrostep) beginTask(n *chart.Node) {
	r := n.Task
	t := task{id: m.nextPart(), node: n, created: m.scope.Now}
	if r.Assignee != nil {
		if v, err := r.Assignee.Eval(&m.scope); err == nil && v.Kind() == data.String && isUser(v.Text()) {
			t.assignee = v.Text()
		}
	}
	if r.HasDue {
		if due, err := m.due(r.Due); err == nil {
			t.due = due.UTC().Truncate(time.Millisecond)
		}
	}
	m.in.tasks = append(own(m.in.tasks, &m.ownsTasks), t)
	if !t.due.IsZero() && m.d.RaisesOverdue {
		m.begin(timer{due: t.due, event: chart.TaskOverdue, send: t.overdueName(), data: m.overdueData(&t)})
	}
}

// isUser reports whether a user can have the name. A task of anybody else would keep all others from it.
func isUser(name string) bool { return IsIdentifier(name) && name != System }

// endTask ends the task of a node that is left.
func (m *macrostep) endTask(n *chart.Node) {
	m.look(len(m.in.tasks))
	i := slices.IndexFunc(m.in.tasks, func(t task) bool { return t.node == n })
	if i < 0 {
		return
	}
	t := m.in.tasks[i]
	if m.decides(n) {
		m.decided = append(m.decided, t.public())
	}
	m.in.tasks = slices.Delete(own(m.in.tasks, &m.ownsTasks), i, i+1)
	if !t.due.IsZero() && m.d.RaisesOverdue {
		m.end(func(other *timer) bool { return other.send == t.overdueName() })
	}
}

// overdueName is the name under which the timer of a task that becomes overdue is cancelled. No action can say it.
func (t *task) overdueName() string { return string(chart.TaskOverdue) + "\x00" + t.id.String() }

// overdueData is the data of the event.
func (m *macrostep) overdueData(t *task) data.Value {
	v := data.AppendString(data.Value(`{"taskId":`), m.in.ID+"-"+t.id.String())
	v = data.AppendString(append(v, `,"stateMachineId":`...), string(t.node.Machine.ID))
	v = data.AppendString(append(v, `,"nodeId":`...), string(t.node.ID))
	v = data.AppendString(append(v, `,"due":`...), t.due.Format(TimeLayout))
	return append(v, '}')
}

// decides reports whether a transition of the node itself takes what a caller has sent.
func (m *macrostep) decides(n *chart.Node) bool {
	return m.deciding != nil && slices.ContainsFunc(m.deciding, func(t *chart.Transition) bool { return t.Source == n })
}

// isHeld reports whether a transition is kept from the caller because somebody else has the task of its node
// (statemachine/DEFINITION.md, "Claims").
func (m *macrostep) isHeld(t *chart.Transition) bool {
	if t.Source.Task == nil || t.Allow == nil || m.caller.OverridesClaims {
		return false
	}
	for i := range m.in.tasks {
		if of := &m.in.tasks[i]; of.node == t.Source {
			return of.assignee != "" && of.assignee != m.caller.ID
		}
	}
	return false
}

// IsCandidate decides whether the caller may take over a task. It asks nothing that depends on an event.
func (v View) IsCandidate(t *Task, c *Caller, now time.Time) bool {
	r := v.Of.TaskRuleAt(t.At)
	if r == nil {
		return false
	}
	if len(r.Candidates) == 0 {
		return true
	}
	var scope *expr.Scope
	for _, names := range r.Candidates {
		if !names.IsPlain() && scope == nil {
			scope = v.scope(c, now)
		}
		if names.Foresee(c, scope, (*chart.Rule).ReadsEvent) != Denied {
			return true
		}
	}
	return false
}

// TaskText is what people read of a task. Title is never empty.
type TaskText struct{ Title, Description Text }

// TaskText makes the texts of a task. One that fails to be made falls back: the title to the label of the node, and that to its id.
func (v View) TaskText(t *Task) (out TaskText) {
	if r := v.Of.TaskRuleAt(t.At); r != nil && (r.Title != nil || r.Description != nil) {
		scope := v.scope(chart.SystemCaller, t.Created)
		out.Title, _ = r.Title.Eval(scope, chart.MaxTitle)
		out.Description, _ = r.Description.Eval(scope, maxDescription)
	}
	if len(out.Title) == 0 {
		out.Title = v.Of.LabelOf(t.At).Label
	}
	return out
}

// maxDescription is the longest description of a task, in characters; a longer one is cut.
const maxDescription = 2000

// TaskEvents lists those of the available events that a transition of the task's own node takes.
func TaskEvents(t *Task, available []Available) (out []Available) {
	for _, a := range available {
		if slices.ContainsFunc(a.Transitions, func(tr AvailableTransition) bool { return tr.From == t.At }) {
			out = append(out, a)
		}
	}
	return out
}

// appendTasks writes the tasks, their nodes by name, as appendMemory does.
func (in *Instance) appendTasks(dst []byte) []byte {
	for i := range in.tasks {
		t := &in.tasks[i]
		dst = t.id.append(dst)
		dst = packed.AppendText(dst, t.node.Machine.ID)
		dst = packed.AppendText(dst, t.node.ID)
		dst = packed.AppendTime(dst, t.created)
		due := int64(0)
		if !t.due.IsZero() {
			due = t.due.UnixMilli()
		}
		dst = binary.AppendVarint(dst, due)
		dst = packed.AppendText(dst, t.assignee)
	}
	return dst
}

// errTasks: the tasks do not fit the definition, or what is active.
var errTasks = fmt.Errorf("%w: tasks", ErrRecord)

// restoreTasks reads what appendTasks wrote.
func (d *Definition) restoreTasks(in *Instance, b []byte) error {
	rd := packed.NewReader(b)
	for !rd.Whole() {
		t := task{id: readPart(&rd)}
		machine, name := d.RegionByID[MachineID(rd.Text())], NodeID(rd.Text())
		t.created = rd.Time()
		if due := rd.Varint(); due != 0 {
			t.due = time.UnixMilli(due).UTC()
		}
		t.assignee = string(rd.Text())
		if rd.Failed() || machine == nil || machine.Machine != machine {
			return errTasks
		}
		if t.node = d.Find(machine, name); t.node == nil || t.node.Task == nil || !in.at.Active.Has(t.node.Index) {
			return errTasks
		}
		in.tasks = append(in.tasks, t)
	}
	return nil
}
