package formportal

import (
	"fmt"
	"slices"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/schema"
)

func (t *Template) fits(d *statemachine.Definition, event statemachine.EventName) bool {
	return !slices.ContainsFunc(d.Mismatches(event, t.schema), func(m schema.Mismatch) bool { return sayMisfit("", m).isFault })
}

// TaskForms are the templates that tasks may name.
type TaskForms struct {
	Find func(id string) *Template // Find returns the template of a form; nil when there is none
	// IDs are those of all, for suggestions. Part: there may be others, of which nothing is known.
	IDs  []string
	Part bool
}

// Check returns what is wrong with the forms that tasks of a definition have: each exists, and some event of its task takes what it
// sends; where the template names one of these events, that one does. file is the definition's.
func (f *TaskForms) Check(file string, d *statemachine.Definition) (faults, warnings document.Faults) {
	for _, of := range d.TaskForms {
		add := func(to *document.Faults, reason, suggestion string) {
			*to = append(*to, document.Fault{File: file, Line: of.Line, Column: of.Column, Reason: reason, Suggestion: suggestion})
		}
		t, events := f.Find(of.Form), d.TaskSends(of.At)
		switch {
		case t == nil && f.Part:
		case t == nil:
			add(&faults, fmt.Sprintf("no form has the id %s", data.Quote(of.Form)), document.DidYouMean(of.Form, f.IDs))
		case len(events) == 0:
			add(&faults, "the task has a form, and no event of its own to send", "give the node a transition on an event")
		case t.namesAnother(events):
			var names []string
			for _, name := range events {
				names = append(names, string(name))
			}
			add(&faults, fmt.Sprintf("the form %s sends the event %s, which the task does not take", data.Quote(t.ID), data.Quote(t.Submit)), document.DidYouMean(t.Submit, names))
		default:
			for _, said := range t.misfitsOf(d, events) {
				to := &warnings
				if said.isFault {
					to = &faults
				}
				add(to, fmt.Sprintf("form %s: %s", data.Quote(t.ID), said.reason), said.suggestion)
			}
		}
	}
	return faults, warnings
}

// namesAnother reports whether the template says that it sends an event which is none of these.
func (t *Template) namesAnother(events []statemachine.EventName) bool {
	byItself := t.AnyWorkflow && t.Submit == usualSubmit
	return t.Submit != "" && !byItself && !slices.Contains(events, statemachine.EventName(t.Submit))
}

// misfitsOf says where a task's events do not take what the form sends: the one that the template names, or all.
func (t *Template) misfitsOf(d *statemachine.Definition, events []statemachine.EventName) (out []misfit) {
	if slices.Contains(events, statemachine.EventName(t.Submit)) {
		events = []statemachine.EventName{statemachine.EventName(t.Submit)}
	}
	for _, event := range events {
		var of []misfit
		for _, m := range d.Mismatches(event, t.schema) {
			of = append(of, sayMisfit("the event "+data.Quote(string(event)), m))
		}
		if !slices.ContainsFunc(of, func(m misfit) bool { return m.isFault }) {
			return of
		}
		out = append(out, of...)
	}
	return out
}
