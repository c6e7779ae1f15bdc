// Package failure has the one error with which the actors and the gateway answer: why a request failed, as far as the
// caller may know. The gateway's table turns its kind into a status.
package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"troupe/persistence"
	"troupe/statemachine"
)

// Kind says why a request failed. It is an error itself: errors.Is(err, ErrNotFound) asks for the kind of an error, and
// a kind alone can be returned.
type Kind uint8

const (
	ErrInvalid      Kind = iota + 1 // the request is malformed or says what the definition does not allow (400)
	ErrUnauthorized                 // the credential or the password is not good, for every cause alike (401)
	// ErrForbidden: the caller lacks the right to the workflow or the event, or the privilege, or the request comes
	// from another site (403).
	ErrForbidden
	ErrNotFound // there is no such thing, or none that the caller may see (404)
	ErrMethod   // the path has no such method (405)
	// ErrNotAllowed: no transition takes the event now and the definition says reject, or a form takes no draft or
	// submission now (409 EventNotAllowed).
	ErrNotAllowed
	// ErrClaimed: the task is assigned to someone else (409 Claimed). Nothing was stored.
	ErrClaimed
	// ErrEnded: the instance was stopped, or cancelled by its parent, and accepts no more events, or a job has ended
	// (409 Ended).
	ErrEnded
	// ErrConflict: this server is not run in a way that has what the request is about, or it belongs to somebody else
	// (409 Conflict).
	ErrConflict
	ErrExists // there is something else under this name already, which is not replaced (409 AlreadyExists)
	// ErrInUse: another instance needs this one, its parent or its child (409 InUse). Nothing was stored.
	ErrInUse
	ErrKeyTaken  // another instance of the workflow that has not ended has the key (409 KeyTaken)
	ErrNotKept   // the history does not have all that made an entry (409 NotKept)
	ErrLeaseLost // the job is no longer its worker's: another has it, or its lease ran out and it was taken (409 LeaseLost)
	// ErrGone: what the request goes on from is no longer kept (410). Nothing was done.
	ErrGone
	ErrPrecondition  // If-Match names another sequence number of the instance, or another revision of the draft (412)
	ErrTooLarge      // the record would exceed its limit, or a body or a file does (413)
	ErrMediaType     // the body is not of a type that is read (415)
	ErrKeyReused     // the idempotency key was used for another request (422)
	ErrUnprocessable // the file is not a template that can be read, or the output of a job does not fit its schema (422)
	ErrInstanceBusy  // too many requests wait for this one instance (429)
	ErrQuota         // the caller asks for more than is allowed over time (429)
	// ErrBusy: a limit of capacity is reached (503). Nothing was applied, a retry helps.
	ErrBusy
	// ErrUnavailable: the service is draining, or the store takes nothing now (503). Nothing was applied.
	ErrUnavailable
	ErrNotLeader      // another node leads the shard that the request needs, which Error.Shard names
	ErrOutcomeUnknown // the commit was not confirmed in time, or the request was given up in the middle (504)
	// ErrExecution: an action failed and nothing handled it, or stored data cannot be read (500 MarshallingError).
	ErrExecution
	ErrInternal // a bug of ours, contained to this request (500)

	Kinds // one more than the last
)

var texts = [Kinds]string{
	ErrInvalid:        "invalid content",
	ErrUnauthorized:   "unauthorized",
	ErrForbidden:      "access denied",
	ErrNotFound:       "not found",
	ErrMethod:         "method not allowed",
	ErrNotAllowed:     "event not allowed",
	ErrClaimed:        "claimed",
	ErrEnded:          "ended",
	ErrConflict:       "conflict",
	ErrExists:         "exists already",
	ErrInUse:          "in use",
	ErrKeyTaken:       "key taken",
	ErrNotKept:        "not kept",
	ErrLeaseLost:      "lease lost",
	ErrGone:           "gone",
	ErrPrecondition:   "precondition failed",
	ErrTooLarge:       "too large",
	ErrMediaType:      "media type not supported",
	ErrKeyReused:      "idempotency key reused",
	ErrUnprocessable:  "not a template",
	ErrInstanceBusy:   "instance busy",
	ErrQuota:          "quota is used up",
	ErrBusy:           "busy",
	ErrUnavailable:    "unavailable",
	ErrNotLeader:      "led by another node",
	ErrOutcomeUnknown: "outcome unknown",
	ErrExecution:      "workflow data could not be processed",
	ErrInternal:       "internal error",
}

func (k Kind) Error() string { return texts[k] }

func (k Kind) failure() *Error { return &Error{Kind: k} }

// Error is a failed request. Only Reason, Reference and Wait are for the caller, the rest is for the log.
type Error struct {
	Kind Kind
	// Op and Subject are what was asked of what. They may be empty.
	Op, Subject string
	// Reason is the text for the caller. Empty: the kind says all.
	Reason    string
	Reference string        // Reference leads anyone who runs the service to the incident (package incident); empty: there is none
	Wait      time.Duration // the time after which the request may pass; 0 when it is not known
	Shard     uint16        // the one that is led elsewhere, of ErrNotLeader
	Cause     error         // what went wrong; it may be nil
}

func (e *Error) Error() string {
	text := e.Kind.Error()
	switch {
	case e.Cause != nil:
		text = e.Cause.Error()
	case e.Reason != "":
		text = e.Reason
	}
	if of := strings.TrimSpace(e.Op + " " + e.Subject); of != "" {
		text = of + ": " + text
	}
	return text
}

// Is reports whether target is the kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

func (e *Error) Unwrap() error { return e.Cause }

func (e *Error) failure() *Error { return e }

// Refuse returns an error whose text is meant for the caller.
func Refuse(kind Kind, format string, args ...any) error {
	cause := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Reason: cause.Error(), Cause: cause}
}

// MayNotRead is ErrForbidden for who has no right to read the instances of a workflow.
func MayNotRead(workflow string) error {
	return Refuse(ErrForbidden, "permission denied: you may not read instances of %s (allow.read)", workflow)
}

// Needs is ErrForbidden for who lacks a privilege, which it names.
func Needs[P ~string](privilege P) error {
	return Refuse(ErrForbidden, "permission denied: it needs %s", privilege)
}

// Errorf returns an error whose text is for the log.
func Errorf(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Cause: fmt.Errorf(format, args...)}
}

// Elsewhere returns ErrNotLeader for a shard.
func Elsewhere(shard uint16) error { return &Error{Kind: ErrNotLeader, Shard: shard} }

// In says which request of what an error is of; nil stays nil.
func In(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	of := Of(err)
	return &Error{Kind: of.Kind, Op: op, Subject: subject, Reason: of.Reason, Reference: of.Reference, Wait: of.Wait, Shard: of.Shard, Cause: err}
}

// OfStore translates what the store says; nil stays nil.
func OfStore(err error) error {
	if err == nil {
		return nil
	}
	of := Of(err)
	return &Error{Kind: of.Kind, Shard: of.Shard, Cause: err}
}

// OfStep translates why the state machine took no step.
func OfStep(err error) error {
	switch {
	case errors.Is(err, statemachine.ErrUnknownEvent), errors.Is(err, statemachine.ErrInvalidData), errors.Is(err, statemachine.ErrNotSettable),
		errors.Is(err, statemachine.ErrKey):
		return Refuse(ErrInvalid, "%w", err)
	case errors.Is(err, statemachine.ErrForbidden):
		return ErrForbidden
	case errors.Is(err, statemachine.ErrClaimed):
		return ErrClaimed
	case errors.Is(err, statemachine.ErrRejected):
		return ErrNotAllowed
	case errors.Is(err, statemachine.ErrEnded):
		return ErrEnded
	case errors.Is(err, statemachine.ErrTooLarge):
		return ErrTooLarge
	}
	if errors.Is(err, statemachine.ErrExecution) {
		err = unquoted{err}
	}
	return Errorf(ErrExecution, "%w", err)
}

// unquoted is an ErrExecution of the state machine for the log: why it failed may quote data of the instance.
type unquoted struct{ cause error }

func (unquoted) Error() string   { return statemachine.ErrExecution.Error() }
func (u unquoted) Unwrap() error { return u.cause }

// Why is for those who can see what it quotes.
func (u unquoted) Why() string { return u.cause.Error() }

// Why is the text of err for those who can see what it quotes: that of its method Why, where it has one, which says
// more than a log may.
func Why(err error) string {
	var of interface{ Why() string }
	if errors.As(err, &of) {
		return of.Why()
	}
	return err.Error()
}

// Of returns the outermost Error of err. An error without one gets the kind of the store's error or of the context's in
// it, else ErrInternal.
func Of(err error) *Error {
	var known interface{ failure() *Error }
	if errors.As(err, &known) {
		return known.failure()
	}
	kind := ErrInternal
	var of *persistence.ShardError
	switch {
	case errors.As(err, &of) && errors.Is(err, persistence.ErrNotLed):
		return &Error{Kind: ErrNotLeader, Shard: uint16(of.Shard), Cause: err}
	case errors.Is(err, persistence.ErrLost):
		kind = ErrOutcomeUnknown
	case errors.Is(err, persistence.ErrOutcomeUnknown), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind = ErrOutcomeUnknown
	case errors.Is(err, persistence.ErrStalled), errors.Is(err, persistence.ErrDiskFull),
		errors.Is(err, persistence.ErrReadOnly), errors.Is(err, persistence.ErrClosed):
		kind = ErrUnavailable
	case errors.Is(err, persistence.ErrCorrupt):
		kind = ErrExecution
	}
	return &Error{Kind: kind, Cause: err}
}
