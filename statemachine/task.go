package statemachine

import (
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

// Assign returns the instance with a task that belongs to somebody; "" is nobody. It returns ErrNoTask.
func (*Definition) Assign(in *Instance, id ElementID, assignee string) (Instance, error) {
	next := *in
	i := slices.IndexFunc(in.State.Tasks, func(t record.TaskState) bool { return t.ID == id })
	if i < 0 {
		return next, ErrNoTask
	}
	next.State.Tasks = slices.Clone(in.State.Tasks)
	next.State.Tasks[i].Assignee = assignee
	return next, nil
}

// beginTask begins the task of a node that was entered, behind its entry actions. An expression that fails gives no assignee
// and no due time: the work is there all the same.
func (m *macrostep) beginTask(n *chart.Node) {
	r := n.Task
	t := record.TaskState{ID: m.nextPart(), Node: n, Created: m.scope.Now}
	if r.Assignee != nil {
		if v, err := r.Assignee.Eval(&m.scope); err == nil && v.Kind() == data.String && isUser(v.Text()) {
			t.Assignee = v.Text()
		}
	}
	if r.HasDue {
		if due, err := m.due(r.Due); err == nil {
			t.Due = due.UTC().Truncate(time.Millisecond)
		}
	}
	m.in.State.Tasks = append(own(m.in.State.Tasks, &m.ownsTasks), t)
	if !t.Due.IsZero() && m.d.RaisesOverdue {
		m.begin(record.TimerState{Due: t.Due, Event: chart.TaskOverdue, Send: t.OverdueName(), Data: t.OverdueData(m.in.ID)})
	}
}

// isUser reports whether a user can have the name. A task of anybody else would keep all others from it.
func isUser(name string) bool { return IsIdentifier(name) && name != System }

// endTask ends the task of a node that is left.
func (m *macrostep) endTask(n *chart.Node) {
	m.look(len(m.in.State.Tasks))
	i := slices.IndexFunc(m.in.State.Tasks, func(t record.TaskState) bool { return t.Node == n })
	if i < 0 {
		return
	}
	t := m.in.State.Tasks[i]
	if m.decides(n) {
		m.decided = append(m.decided, t.Task())
	}
	m.in.State.Tasks = slices.Delete(own(m.in.State.Tasks, &m.ownsTasks), i, i+1)
	if !t.Due.IsZero() && m.d.RaisesOverdue {
		m.end(func(other *record.TimerState) bool { return other.Send == t.OverdueName() })
	}
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
	for i := range m.in.State.Tasks {
		if of := &m.in.State.Tasks[i]; of.Node == t.Source {
			return of.Assignee != "" && of.Assignee != m.caller.ID
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
