package formportal

import (
	"slices"
	"time"

	"troupe/actors/form"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/schema"
)

// Template is one file of forms/ or checklists/ (cmd/troupe/HOME.md, "Forms", and cmd/troupe/HOME.md, "Checklists").
type Template struct {
	Kind        form.Kind
	ID          string
	Name        statemachine.Text // the id when the file has none
	Description statemachine.Text // may be no text
	Enabled     bool              // false: offered to nobody

	// Roles are those that are offered the template, in the order of the file; at least one unless the template is
	// disabled.
	Roles []string
	// Workflows are those that a form is bound to, in the order of the file. None: a form can be plain.
	Workflows   []string
	AnyWorkflow bool   // the file does not say which workflows, so that a form may be bound to any that declares Submit
	Submit      string // the event that the submit button sends when the form is bound to a workflow; may be empty
	// Schema is a form's JSON Schema 2020-12, with what it refers to in other files put into its $defs, so that it can
	// be read alone.
	Schema data.Value
	// UI are layout hints, an object; absent when the file has none. UIFor has them for a reader.
	UI data.Value
	// Items are what a checklist asks, in the order of the file; at least one. A form has none.
	Items []Item
	// Digest stands for Schema, or for the ids of Items and which are required: a draft that was written for another
	// one may not fit.
	Digest   form.Digest
	Modified time.Time       // when the file was last changed, to the millisecond
	Warnings document.Faults // what the author should look at although it is allowed

	schema *schema.Schema // what Check asks; never nil
	texts  data.Value     // Schema with the texts in all languages; absent when each is in one
}

// Item is one line of a checklist.
type Item struct {
	ID       string
	Label    statemachine.Text // the id when the file has none
	Help     statemachine.Text // may be no text
	Required bool              // must be ticked before the checklist can be submitted
}

// Check checks what was filled in: a form's data against its schema, and for a checklist {"itemId": true or false} with
// every required item true.
func (t *Template) Check(v data.Value) error { return t.schema.Check(v) }

// Strays returns the places of what was filled in that do not fit the template any more, as schema.Schema.Unreachable
// does.
func (t *Template) Strays(v data.Value) []schema.Unreachable { return t.schema.Unreachable(v) }

// RoleOf returns the role through which a caller sees the template: the first role of the template that the caller has.
func (t *Template) RoleOf(callerRoles []string) (string, bool) {
	for _, role := range t.Roles {
		if slices.Contains(callerRoles, role) {
			return role, true
		}
	}
	return "", false
}

// BoundTo reports whether a form may be bound to the workflow. declares reports whether the workflow declares an event.
func (t *Template) BoundTo(workflow string, declares func(event string) bool) bool {
	if t.AnyWorkflow {
		return declares(t.Submit)
	}
	return slices.Contains(t.Workflows, workflow)
}
