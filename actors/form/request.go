package form

import (
	"troupe/actors/identity"
	"troupe/statemachine/data"
)

// Request asks for an instance as a form, or to write it. What depends on the form's template the caller finds out
// before.
type Request struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	Event                  string             // Event submits the form; empty: nothing does
	Privilege              identity.Privilege // what it takes to write the form besides the workflow's rights; empty: nothing
	Refusal                error              // why nobody can write this now; nil: it can be written
}

// View is an instance as a form, at one moment.
type View struct {
	Form     *Form
	Sequence uint64
	When     int64 // the creation, in Unix milliseconds
	Public   data.Value
	States   []byte // the JSON of the positions, Nodes the names of their nodes, joined with ", "
	Nodes    string
	Editable bool   // the caller may send the event that submits the form now
	Draft    *Draft // the caller's; nil when there is none
}
