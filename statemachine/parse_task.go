package statemachine

import (
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// task reads what work a node has for people. Without the key it has some when a transition of its own names who may take it.
func (b *builder) task(n *chart.Node, v *document.Node) {
	if n.Machine == n || n.Kind == Final || n.Kind.IsHistory() {
		return
	}
	named := namedIn(n.On)
	if v == nil {
		if len(named) > 0 {
			n.Task = &chart.TaskRule{Candidates: named, Priority: chart.TaskPriorityDefault}
		}
		b.d.HasTasks = b.d.HasTasks || n.Task != nil
		return
	}
	if v.Kind == document.Bool {
		if b.Bool(v) {
			n.Task = &chart.TaskRule{Candidates: named, Priority: chart.TaskPriorityDefault}
			b.d.HasTasks = true
		}
		return
	}
	if !b.known(v, taskKeys) {
		return
	}
	b.d.HasTasks = true
	n.Task = &chart.TaskRule{
		Title: b.caption(v.Field("title")), Description: b.caption(v.Field("description")), Candidates: named, Priority: chart.TaskPriorityDefault,
	}
	if at := v.Field("for"); at != nil {
		n.Task.Candidates = nil
		if r := b.rule(at); r != nil {
			n.Task.Candidates = []*chart.Rule{r}
			b.refuseEvent(at, r)
		}
	}
	if at := v.Field("assignee"); at != nil {
		n.Task.Assignee = b.publicTemplate(at, "assignee")
	}
	if at := v.Field("due"); at != nil {
		n.Task.Due, n.Task.HasDue = b.delay(at), true
		b.refusePrivate(at, n.Task.Due.Value, "due")
	}
	if at := v.Field("priority"); at != nil {
		i, ok := b.Int(at)
		if ok && (i < 0 || i > taskPriorityMax) {
			b.Add(at, "must be 0 to %d", taskPriorityMax)
		}
		n.Task.Priority = int(i)
	}
	if at := v.Field("form"); at != nil {
		if n.Task.Form = b.Text(at); !IsIdentifier(n.Task.Form) {
			b.Add(at, "%q is not the identifier of a form template", data.Shorten(at.Text))
		}
		b.d.TaskForms = append(b.d.TaskForms, TaskForm{Form: n.Task.Form, At: n.Position(), Line: at.Line, Column: at.Column})
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

// refuseEvent adds a fault when a rule of candidates reads the event: lists of tasks have none.
func (b *builder) refuseEvent(at *document.Node, r *chart.Rule) {
	for ; r != nil; r = r.Deny {
		if r.ReadsEvent() {
			b.Add(at, "who is a candidate cannot depend on the event: there is none when tasks are listed")
			return
		}
	}
}

// publicTemplate reads a value that people see.
func (b *builder) publicTemplate(at *document.Node, what string) *chart.Template {
	t := b.template(at)
	b.refusePrivate(at, t, what)
	if t != nil && t.Constant == nil && t.Program == nil {
		b.Add(at, "%s must be a text, or one expression", what)
	}
	return t
}

// refusePrivate adds a fault when a value that people see reads svcPrivate.
func (b *builder) refusePrivate(at *document.Node, t *chart.Template, what string) {
	if t != nil && t.Program != nil && t.Program.Reads("svcPrivate") {
		b.Add(at, "%s may not read svcPrivate: %s", what, chart.CaptionVariables["svcPrivate"])
	}
}

// settleTasks notes who hears of a task that becomes overdue.
func (b *builder) settleTasks() {
	if b.d.HasTasks && b.d.Declared.Exact[chart.TaskOverdue] {
		b.d.RaisesOverdue = true
		b.d.AddServiceEvent(chart.TaskOverdue)
	}
}
