package message

import (
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Event asks to send one event to an instance.
type Event struct {
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

	// Counted: the caller's quota has counted it. It and what follows are set on the way.
	Counted bool
	// As is Caller as the rules see it, and Rules are those of the workflow as of now; nil: not looked up yet.
	As    *statemachine.Caller
	Rules *statemachine.Definition
}

// Draft asks to keep a draft, or to drop it.
type Draft struct {
	form.Request
	// Data is a checked, compact object; absent drops the draft.
	Data data.Value
	// Template is what the draft was written for; zero: nobody knows.
	Template form.Digest
	form.DraftCondition

	// Saved is what the actor made of it.
	Saved form.Draft
}

// Recipient gets the answer to a request that was posted. Its methods must not block.
type Recipient interface {
	// Begin is called when the instance comes to the request; never for a create whose key
	// was held or had an answer. An error is the answer, and nothing is done.
	Begin(Turn) error
	// Refused is called when nothing was done, before the instance comes to its next
	// request, and perhaps again; Answered comes before or after it.
	Refused(err error)
	// Answered is called once; never when GiveUp has said failure.ErrBusy.
	Answered(reply *Reply, err error)
}

// Turn is when an instance comes to a request.
type Turn struct {
	// Shard is that of the instance.
	Shard uint16
	// Life is the same for requests of which none is done unless all before it are, or their
	// outcome is not known; an instance that is read again has another one. nil without replicas,
	// where nobody comes to a request before what became of the one in front is told.
	Life any
}
