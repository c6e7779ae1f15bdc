package chart

import (
	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Action is one step of executable content: a pointer to one of the types below.
type Action any

// Assign sets paths of svcPublic and svcPrivate, in the order of the file.
type Assign struct{ Settings []Setting }

// Setting is one path that an Assign sets.
type Setting struct {
	Root  Document
	Path  data.Path // below the root; empty: the whole document
	Value *Template
}

// Raise puts an event on the internal queue.
type Raise struct {
	Event EventName
	Data  *Template // nil: none
}

// Redirect sets svcRedirect; null or "" removes it.
type Redirect struct{ To *Template }

// LogLine adds a line to Result.Logs (statemachine/DEFINITION.md, "Log lines").
type LogLine struct {
	Message *Template // no text: it is written as JSON
	Text    *Prose
}

// Choose is if / elseif / else.
type Choose struct {
	Branches []Branch
	// Lenient: a condition that fails is false and raises error.execution, as SCXML has it.
	Lenient bool
}

// Branch is one way of a Choose.
type Branch struct {
	Guard   *expr.Program // nil: else
	Actions []Action
}

// ForEach runs its body once for each element that the list had at the start.
type ForEach struct {
	List        *expr.Program
	Item, Index string // Index: "" when not wanted
	Body        []Action
}

// Dispatch is send with the rules of SCXML: to the instance itself, its parent or a child (W3C SCXML, section 6.2).
type Dispatch struct {
	Event, To, Kind *Template // to, kind: nil is none
	ID              string    // "": none
	IDTo            *Place    // where the id goes that is made; nil: none is
	Payload         Payload
	Delay           Delay
}

// SendOut is the action webhook.
type SendOut struct {
	To   string
	Body *Template // nil: none
}

// SendMail is the action mail.
type SendMail struct {
	To            *Template
	Subject, Body *Prose
}

// Place is a path that an action sets. SCXML tells only when the action runs that nothing can be set there.
type Place struct {
	Root Document
	Path data.Path
	Bad  error // why nothing can be set there; nil: it can
}

// SetPlaces is assign where some place may be a bad one.
type SetPlaces struct {
	Places []Place
	Values []*Template
}

// Block is a block of its own: an error in it does not end the one around it (W3C SCXML, section 4.9).
type Block struct{ Actions []Action }

// ForEachPlace is ForEach with variables that stay: places of the data (W3C SCXML, section 4.6).
type ForEachPlace struct {
	List  *Template
	Item  Place
	Index *Place // nil: not wanted
	Body  []Action
}

// Send has an event raised later, as a step of its own after this one.
type Send struct {
	Event EventName
	Data  *Template // nil: none
	Delay Delay
	ID    string // "": it cannot be cancelled
}

// Cancel removes what was sent under a name and has not come yet.
type Cancel struct{ ID *Template }
