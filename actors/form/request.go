package form

import (
	"troupe/actors/identity"
	"troupe/statemachine/data"
)

// Request asks for an instance as a form, or to write it. What depends on the
// form's template the caller finds out before.
type Request struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	// Event submits the form; empty: nothing does.
	Event string
	// Privilege is what it takes to write the form besides the workflow's rights;
	// empty: nothing.
	Privilege identity.Privilege
	// Refusal is why nobody can write this now; nil: it can be written.
	Refusal error
}

// View is an instance as a form, at one moment.
type View struct {
	Form     *Form
	Sequence uint64
	// When is the creation, in Unix milliseconds.
	When   int64
	Public data.Value
	// States is the JSON of the positions, Nodes the names of their nodes,
	// joined with ", ".
	States []byte
	Nodes  string
	// Editable: the caller may send the event that submits the form now.
	Editable bool
	// Draft is the caller's; nil when there is none.
	Draft *Draft
}
