package statemachine

import (
	"errors"

	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/record"
	"troupe/statemachine/schema"
)

// The errors of Create and Step. None of them changes the instance that was passed in.
var (
	// ErrUnknownEvent: the definition nowhere declares the event's name, or only the machine itself may raise it, or only the service
	// sends it. Tell the caller.
	ErrUnknownEvent = errors.New("event is not declared by the workflow")
	// ErrInvalidData: the data does not fit the JSON Schema of the event, of the workflow or of its create block, or event.data says
	// svcPublic or svcPrivate where it must not. The text names the place; tell the caller.
	ErrInvalidData = schema.ErrInvalidData
	// ErrNotSettable: the create block lets nobody set what a creator gave. The text names it; tell the caller.
	ErrNotSettable = chart.ErrNotSettable
	// ErrKey: no key of an instance can be made of what a creator gave. The text says why; tell the caller.
	ErrKey = chart.ErrKey
	// ErrForbidden: of Create, the caller may not create instances; of Step, the event's own allow does not name the caller, or a
	// transition would take the event, but not from this caller, or nothing takes it now, and nowhere in the definition would it
	// from this caller.
	ErrForbidden = errors.New("caller may not send the event")
	// ErrMayNotCreate: a user on whose behalf a child is invoked may not create it.
	ErrMayNotCreate = errors.New("the user may not create such an instance")
	// ErrClaimed: a transition would take the event from this caller, but the task is assigned to someone else of its node.
	ErrClaimed = errors.New("the task is assigned to someone else")
	// ErrRejected: nothing takes the event now, and the definition says reject.
	ErrRejected = errors.New("event is not allowed now")
	// ErrNoTask: the instance has no such open task.
	ErrNoTask = errors.New("there is no such task")
	// ErrExecution: an expression or an action failed and no transition on error.execution took it, or the step limit was reached.
	ErrExecution = fault.ErrExecution
	// ErrTooLarge: the data would grow beyond MaxDataBytes.
	ErrTooLarge = errors.New("instance data too large")
	// ErrRecord: a stored record is not readable, or names nodes that the definition does not have. Stop the instance, not the process.
	ErrRecord = record.ErrRecord
)

// ErrNoChild: the instance does not wait for such a child any more.
var ErrNoChild = errors.New("there is no such child")

// ErrEnded: the instance was stopped, or cancelled by its parent, and accepts no more events.
var ErrEnded = errors.New("the instance was stopped, or cancelled by its parent")

// ErrNoTimer: the instance has no such timer any more.
var ErrNoTimer = errors.New("there is no such timer")
