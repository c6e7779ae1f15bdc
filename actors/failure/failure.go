// Package failure has the errors with which the actors answer: why a request
// failed, as far as the caller may know. The gateway's table turns them into
// statuses. Whatever is wrapped behind one of them is for the log, unless its
// comment says that the text is meant for the caller.
package failure

import (
	"errors"
	"fmt"

	"troupe/persistence"
)

// Each is wrapped with the operation and its subject.
var (
	// ErrInvalid: the request is malformed or says what the definition does not
	// allow (400). The text is meant for the caller.
	ErrInvalid = errors.New("invalid content")
	// ErrForbidden: the caller has no right to the workflow, or may not send
	// this event (403). Nothing was stored.
	ErrForbidden = errors.New("access denied")
	// ErrNotFound: no such workflow or instance, or none that the caller may
	// see (404).
	ErrNotFound = errors.New("not found")
	// ErrNotAllowed: nothing takes the event now and the definition says reject
	// (409 EventNotAllowed). Nothing was stored.
	ErrNotAllowed = errors.New("event not allowed")
	// ErrPrecondition: If-Match names another sequence number (412).
	ErrPrecondition = errors.New("precondition failed")
	// ErrTooLarge: the resulting record would exceed its limit (413).
	ErrTooLarge = errors.New("record too large")
	// ErrKeyReused: the idempotency key was used for another request (422).
	ErrKeyReused = errors.New("idempotency key reused")
	// ErrBusy: a limit of capacity is reached; nothing was applied, a retry
	// helps (503, or 429 when one instance is the bottleneck).
	ErrBusy = errors.New("busy")
	// ErrInstanceBusy: too many requests wait for this one instance (429).
	ErrInstanceBusy = errors.New("instance busy")
	// ErrQuota: a quota is used up; nothing was applied (429). The error is a
	// quota.Error, whose text is meant for the caller.
	ErrQuota = errors.New("quota is used up")
	// ErrUnavailable: the service is draining, or the store takes nothing now
	// (503). Nothing was applied.
	ErrUnavailable = errors.New("unavailable")
	// ErrOutcomeUnknown: the commit was not confirmed in time (504). Retry with
	// the same idempotency key.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrExecution: an action failed and nothing handled it, or stored data
	// cannot be read (500 MarshallingError). Nothing was stored.
	ErrExecution = errors.New("workflow data could not be processed")
	// ErrInternal: a bug of ours, contained to this request (500).
	ErrInternal = errors.New("internal error")
)

// OfStore translates what the store says into what callers are told; nil stays nil.
func OfStore(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, persistence.ErrOutcomeUnknown):
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	case errors.Is(err, persistence.ErrStalled), errors.Is(err, persistence.ErrDiskFull), errors.Is(err, persistence.ErrClosed):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.Is(err, persistence.ErrCorrupt):
		return fmt.Errorf("%w: %w", ErrExecution, err)
	}
	return fmt.Errorf("%w: %w", ErrInternal, err)
}
