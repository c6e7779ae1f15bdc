package request

import (
	"time"

	"troupe/actors/form"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Summary is an instance as people see it. It is only read.
type Summary struct {
	// Of is the definition that the instance runs under.
	Of       *statemachine.Definition
	Sequence uint64
	// Title is no text when the definition has none or it fails.
	Title statemachine.Text
	At    []statemachine.Position
	// Values are those of the columns of Of, absent where the instance has none.
	Values           []data.Value
	Created, Updated time.Time
	// Requester is the user who created the instance.
	Requester string
	// IsDone: all its state machines have reached a final node. IsEnded: its parent has cancelled it.
	IsDone, IsEnded bool
	// Form is nil when the instance is none.
	Form *form.Form
}

// Trace is where an instance stands and the way that it came. It is only read.
type Trace struct {
	Of       *statemachine.Definition
	Sequence uint64
	At       []statemachine.Position
	// Steps are the entries of its history, the newest first, as far as they were read.
	Steps []Step
}

// Step is an entry of a history.
type Step struct {
	Event      statemachine.EventName // empty for the creation
	Start, End []statemachine.NodeID
}
