package statemachine

import (
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// task reads what work a node has for people. Without the key it has some when a transition of its own names who may take it.
func (b *builder) task(n *node, v *document.Node) {
	if n.machine == n || n.kind == final || n.kind.isHistory() {
		return
	}
	named := namedIn(n.on)
	if v == nil {
		if len(named) > 0 {
			n.task = &taskRule{candidates: named, priority: taskPriorityDefault}
		}
		b.d.tasked = b.d.tasked || n.task != nil
		return
	}
	if v.Kind == document.Bool {
		if b.Bool(v) {
			n.task = &taskRule{candidates: named, priority: taskPriorityDefault}
			b.d.tasked = true
		}
		return
	}
	b.shown(v)
	if !b.known(v, taskKeys) {
		return
	}
	b.d.tasked = true
	n.task = &taskRule{
		title: b.caption(v.Field("title")), description: b.caption(v.Field("description")), candidates: named, priority: taskPriorityDefault,
	}
	if at := v.Field("for"); at != nil {
		n.task.candidates = nil
		if r := b.rule(at); r != nil {
			n.task.candidates = []*rule{r}
			b.refuseEvent(at, r)
		}
	}
	if at := v.Field("assignee"); at != nil {
		n.task.assignee = b.publicTemplate(at, "assignee")
	}
	if at := v.Field("due"); at != nil {
		n.task.due, n.task.hasDue = b.delay(at), true
		b.refusePrivate(at, n.task.due.value, "due")
	}
	if at := v.Field("priority"); at != nil {
		i, ok := b.Int(at)
		if ok && (i < 0 || i > taskPriorityMax) {
			b.Add(at, "must be 0 to %d", taskPriorityMax)
		}
		n.task.priority = int(i)
	}
	if at := v.Field("form"); at != nil {
		if n.task.form = b.Text(at); !IsIdentifier(n.task.form) {
			b.Add(at, "%q is not the identifier of a form template", data.Shorten(at.Text))
		}
		b.d.taskForms = append(b.d.taskForms, TaskForm{Form: n.task.form, At: n.position(), Line: at.Line, Column: at.Column})
	}
}

// namedIn are the rules of transitions on outside events that name roles, users or privileges.
func namedIn(transitions []*transition) (rules []*rule) {
	for _, t := range transitions {
		if r := t.allow; t.isOutside() && r != nil && len(r.roles)+len(r.users)+len(r.privileges) > 0 {
			rules = append(rules, r)
		}
	}
	return rules
}

// isOutside reports whether what callers send may take the transition.
func (t *transition) isOutside() bool {
	return t.onDone == nil && t.after == nil && t.told == nil && !IsReserved(t.event.name)
}

// refuseEvent adds a fault when a rule of candidates reads the event: lists of tasks have none.
func (b *builder) refuseEvent(at *document.Node, r *rule) {
	for ; r != nil; r = r.deny {
		if r.readsEvent() {
			b.Add(at, "who is a candidate cannot depend on the event: there is none when tasks are listed")
			return
		}
	}
}

// publicTemplate reads a value that people see.
func (b *builder) publicTemplate(at *document.Node, what string) *template {
	t := b.template(at)
	b.refusePrivate(at, t, what)
	if t != nil && t.constant == nil && t.program == nil {
		b.Add(at, "%s must be a text, or one expression", what)
	}
	return t
}

// refusePrivate adds a fault when a value that people see reads svcPrivate.
func (b *builder) refusePrivate(at *document.Node, t *template, what string) {
	if t != nil && t.program != nil && t.program.Reads("svcPrivate") {
		b.Add(at, "%s may not read svcPrivate: %s", what, captionVariables["svcPrivate"])
	}
}

// settleTasks notes who hears of a task that becomes overdue.
func (b *builder) settleTasks() {
	if b.d.tasked && b.d.declared.exact[taskOverdue] {
		b.d.raisesOverdue = true
		b.d.own(taskOverdue)
	}
}
