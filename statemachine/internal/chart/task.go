package chart

import (
	"slices"
)

// TaskPriorityDefault is the priority of a task that says none.
const TaskPriorityDefault = 50

// TaskOverdue is the event that comes when a task's due time passes, if the definition declares it.
const TaskOverdue EventName = "task.overdue"

// TaskRule is what a definition says of the work that an active node has for people
// (statemachine/DEFINITION.md, "Tasks"). Built once, then read only.
type TaskRule struct {
	Title, Description *Caption
	// Candidates: the caller is one when any admits. None: all users who can read the instance are.
	Candidates []*Rule
	Assignee   *Template // nil: nobody
	Due        Delay
	HasDue     bool
	Priority   int
	Form       string
}

// Position is the node in its state machine.
func (n *Node) Position() Position { return Position{MachineID(n.Machine.ID), n.ID} }

// Candidates are who may take over a task, as far as the definition names them: anyone who is in one of the lists. Everybody: it names nobody.
type Candidates struct {
	Roles, Users, Privileges []string
	Everybody                bool
}

// Candidates returns those of the task of a node.
func (d *Definition) Candidates(at Position) (c Candidates) {
	r := d.TaskRuleAt(at)
	if r == nil {
		return c
	}
	c.Everybody = len(r.Candidates) == 0
	for _, rule := range r.Candidates {
		c.Roles, c.Users, c.Privileges = union(c.Roles, rule.Roles), union(c.Users, rule.Users), union(c.Privileges, rule.Privileges)
		c.Everybody = c.Everybody || len(rule.Roles)+len(rule.Users)+len(rule.Privileges) == 0
	}
	return c
}

func union(all, more []string) []string {
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// TaskRuleAt is the work that the node at a position has; nil for none.
func (d *Definition) TaskRuleAt(at Position) *TaskRule {
	r := d.RegionByID[at.Machine]
	if r == nil {
		return nil
	}
	if n := d.Find(r.Machine, at.Node); n != nil {
		return n.Task
	}
	return nil
}

// TaskForm is a form that the task of a node has, and where the definition says so.
type TaskForm struct {
	Form         string // the identifier of its template
	At           Position
	Line, Column int
}

// TaskSends lists the events with which callers bring the task of a node on: those that a transition of its own takes.
func (d *Definition) TaskSends(at Position) []EventName {
	r := d.RegionByID[at.Machine]
	if r == nil {
		return nil
	}
	n := d.Find(r.Machine, at.Node)
	if n == nil || n.Task == nil {
		return nil
	}
	var of []EventPattern
	for _, t := range n.On {
		if t.IsOutside() {
			of = append(append(of, t.Event), t.More...)
		}
	}
	return d.NamesOf(of...)
}

// IsOutside reports whether what callers send may take the transition.
func (t *Transition) IsOutside() bool {
	return t.OnDone == nil && t.After == nil && t.Child == nil && !IsReserved(t.Event.Name)
}
