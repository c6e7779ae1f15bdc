package workflow

import (
	"troupe/actors/form"
	"troupe/actors/identity"
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

// CreateRequest asks for a new instance.
type CreateRequest struct {
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

	counted bool // by the caller's quota
}

// EventRequest asks to send one event to an instance.
type EventRequest struct {
	Caller     *identity.Principal
	WorkflowID string
	InstanceID string
	Name       string
	// ID is event.id as given; expressions can see it.
	ID string
	// Data is event.data: a checked, compact object; absent when there is none.
	Data  data.Value
	Retry Retry
	// IfMatch lists the sequence numbers that the instance may have now; nil
	// means any.
	IfMatch []uint64
	// WithHistory says whether the reply carries svcHistory.
	WithHistory bool

	counted bool                 // by the caller's quota
	caller  *statemachine.Caller // as the definition's rules see Caller; set by maySend
	form    *FormRequest         // what the event submits; nil: it submits none
}

// Recipient gets the answer to a request that was posted. Its methods must not block.
type Recipient interface {
	// Begin is called when the instance comes to the request. An error is its
	// answer, and nothing is done.
	Begin() error
	// Refused is called when nothing was done, before the instance comes to its next
	// request; Answered follows.
	Refused(err error)
	// Answered is called once.
	Answered(reply *Reply, err error)
}

// Posted is a request on its way to its instance.
type Posted struct {
	call  *call // nil: the answer comes in any case
	round int64 // of the sweep, when it was posted
}

// GiveUp says what a request has come to that was not answered in time: failure.ErrBusy
// when it will never be applied, else failure.ErrOutcomeUnknown; nil while there is time.
// An answer may still come.
func (p Posted) GiveUp() error {
	if p.call == nil {
		return nil
	}
	r := p.call.activation.router
	if r.round.Load()-p.round <= int64(r.o.ReplyWaitMax/sweepEvery) {
		return nil
	}
	return p.call.giveUp()
}

// LoadRequest asks for one instance.
type LoadRequest struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	WithHistory            bool
}

// EventsReply is what a caller may send to an instance now.
type EventsReply struct {
	Sequence uint64
	Events   []statemachine.Available
}

// HistoryRequest asks for a part of an instance's history.
type HistoryRequest struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	// Limit is the most entries that the page may have, 1 to 1,000.
	Limit int
	// Cursor is HistoryPage.Next of the page before; empty is the first page.
	Cursor string
}

// HistoryPage is a part of a history, oldest entry first.
type HistoryPage struct {
	// Entries is the JSON of the entries, joined by commas.
	Entries []byte
	// Next is the cursor of the next page; empty when there is none.
	Next string
}
