package workflow

import (
	"troupe/actors/identity"
	"troupe/actors/workflow/request"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Package request has the fields of these.
type (
	// Retry identifies a request that may be repeated.
	Retry = request.Retry
	// CreateRequest asks for a new instance.
	CreateRequest = request.Create
	// LoadRequest asks for one instance.
	LoadRequest = request.Load
	// HistoryRequest asks for a part of an instance's history.
	HistoryRequest = request.History
	// EventsReply is what a caller may send to an instance now.
	EventsReply = request.Events
	// HistoryPage is a part of a history, in the order that was asked for.
	HistoryPage = request.Page
	// Reply is what an instance answers.
	Reply = request.Reply
	// TaskRequest asks to change who has a task.
	TaskRequest = request.TaskChange
	// TaskAction is what it wants.
	TaskAction = request.TaskAction
	// TaskForm names the form of a task.
	TaskForm = request.TaskForm
	// TaskDraft asks to keep a draft for a task, or to drop it.
	TaskDraft = request.TaskDraft
	// TaskSubmit asks to send what was filled in for a task.
	TaskSubmit = request.TaskSubmit
	// TaskView is a task with its form.
	TaskView = request.TaskView
	// CommentRequest asks to write a comment.
	CommentRequest = request.Comment
	// ActivityRequest asks for a page of what has happened to an instance.
	ActivityRequest = request.Activity
	// View is an instance as those see it who read it inside its actor.
	View = request.View
	// Pending is what an instance waits for.
	Pending = request.Pending
	// Timer is a timer of an instance.
	Timer = request.Timer
	// Child is an instance that another one has invoked.
	Child = request.Child
)

// What a TaskRequest can want.
const (
	ClaimTask   = request.Claim
	ReleaseTask = request.Release
	AssignTask  = request.Assign
)

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
	submits submission           // nil: no form
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

// Posted is a request on its way to its instance.
type Posted struct {
	call  *call // nil: the answer comes in any case
	round int64 // of the sweep, when it was posted
}

// GiveUp says what a request has come to that was not answered in time: failure.ErrBusy
// when it will never be applied, else failure.ErrOutcomeUnknown, and then an answer may still
// come; nil while there is time.
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
