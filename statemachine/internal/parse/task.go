package parse

import (
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
)

const taskPriorityMax = 100

func (b *builder) task(n *chart.Node, v *document.Node) {
	if n.Machine == n || n.Kind == chart.Final || n.Kind.IsHistory() {
		return
	}
	named := namedIn(n.On)
	if v == nil {
		if len(named) > 0 {
			n.Task = &chart.TaskRule{Candidates: named, Priority: chart.TaskPriorityDefault}
		}
		b.Definition.HasTasks = b.Definition.HasTasks || n.Task != nil
		return
	}
	if v.Kind == document.Bool {
		if b.Bool(v) {
			n.Task = &chart.TaskRule{Candidates: named, Priority: chart.TaskPriorityDefault}
			b.Definition.HasTasks = true
		}
		return
	}
	if !b.Mapping(v, clause.TaskKeys) {
		return
	}
	b.Definition.HasTasks = true
	n.Task = &chart.TaskRule{
		Title: b.Caption(v.Field("title")), Description: b.Caption(v.Field("description")), Candidates: named, Priority: chart.TaskPriorityDefault,
	}
	if at := v.Field("for"); at != nil {
		n.Task.Candidates = nil
		if r := b.Rule(at); r != nil {
			n.Task.Candidates = []*chart.Rule{r}
			b.RefuseEvent(at, r)
		}
	}
	if at := v.Field("assignee"); at != nil {
		n.Task.Assignee = b.PublicTemplate(at, "assignee")
	}
	if at := v.Field("due"); at != nil {
		n.Task.Due, n.Task.HasDue = b.Delay(at), true
		b.RefusePrivate(at, n.Task.Due.Value, "due")
	}
	if at := v.Field("priority"); at != nil {
		i, ok := b.Int(at)
		if ok && (i < 0 || i > taskPriorityMax) {
			b.Add(at, "must be 0 to %d", taskPriorityMax)
		}
		n.Task.Priority = int(i)
	}
	if at := v.Field("form"); at != nil {
		if n.Task.Form = b.Text(at); !chart.IsIdentifier(n.Task.Form) {
			b.Add(at, "%q is not the identifier of a form template", data.Shorten(at.Text))
		}
		b.Definition.TaskForms = append(b.Definition.TaskForms, chart.TaskForm{Form: n.Task.Form, At: n.Position(), Line: at.Line, Column: at.Column})
	}
}

// namedIn are the rules of transitions on outside events that name roles, users or privileges.
func namedIn(transitions []*chart.Transition) (rules []*chart.Rule) {
	for _, t := range transitions {
		if r := t.Allow; t.IsOutside() && r != nil && len(r.Roles)+len(r.Users)+len(r.Privileges) > 0 {
			rules = append(rules, r)
		}
	}
	return rules
}

// settleTasks notes who hears of a task that becomes overdue.
func (b *builder) settleTasks() {
	if b.Definition.HasTasks && b.Definition.Declared.Exact[chart.TaskOverdue] {
		b.Definition.RaisesOverdue = true
		b.Definition.AddServiceEvent(chart.TaskOverdue)
	}
}
