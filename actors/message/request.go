// Package message is what callers ask of instances, and what they are answered: plain
// data, which the gateway fills in and the actors read. It knows neither an actor nor a mailbox.
package message

import (
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Retry identifies a request that may be repeated. The zero value means that
// the caller gave no key.
type Retry struct {
	// Key is the Idempotency-Key or event.id: 1 to 255 visible ASCII characters.
	Key string
	// Fingerprint is a hash of what was asked; the same key with another
	// fingerprint is failure.ErrKeyReused.
	Fingerprint [32]byte
}

// Create asks for a new instance.
type Create struct {
	Caller     *identity.Principal
	WorkflowID string
	// Public and Private are the objects of the body's data; absent when it had
	// none. They are checked and compact.
	Public, Private data.Value
	// Form makes the instance a form; nil: it is none.
	Form  *form.Form
	Retry Retry
	// Refusal answers a new request; nil: it is done. A repetition still gets its first
	// answer, while its caller has the right to the workflow.
	Refusal error
	// NoQuota: quotas do not apply. It is for people at forms (group A).
	NoQuota bool
	// WithHistory says whether the reply carries svcHistory.
	WithHistory bool

	// Counted: the caller's quota has counted it. It is the router's, in another package.
	Counted bool
}

// Submit asks to submit a form. Its Refusal answers a new request; a repetition
// still gets its first answer.
type Submit struct {
	form.Request
	// Data is a checked, compact object.
	Data  data.Value
	Retry Retry
	// WithHistory says whether the reply carries svcHistory.
	WithHistory bool
}

// Load asks for one instance.
type Load struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	WithHistory            bool

	// As and Rules are as those of Event.
	As    *statemachine.Caller
	Rules *statemachine.Definition
}

// View is an instance as those see it who read it inside its actor. It is valid during the call.
type View struct {
	ID       key.ID
	Of       *statemachine.Definition
	Instance *statemachine.Instance
	// Form is nil when the instance is none. It never changes, so that it may be kept.
	Form *form.Form
}

// Events is what a caller may send to an instance now.
type Events struct {
	Sequence uint64
	// Of is the definition that the instance runs under.
	Of     *statemachine.Definition
	Events []statemachine.Available
}

// History asks for a part of an instance's history.
type History struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	// Limit is the most entries that the page may have, 1 to 1,000.
	Limit int
	// Cursor is Page.Next of the page before; empty is the first page.
	Cursor string
	// WithData asks for what the events brought.
	WithData bool
	// Descending: the newest entry comes first. A cursor is of one order.
	Descending bool
}

// Page is a part of a history, in the order that was asked for.
type Page struct {
	// Entries is the JSON of the entries, joined by commas.
	Entries []byte
	// Next is the cursor of the next page; empty when there is none.
	Next string
}

// Migration gives an instance another version of its workflow.
type Migration struct {
	Plan   *statemachine.Plan
	Caller *statemachine.Caller
	// DryRun: nothing changes.
	DryRun bool
}
