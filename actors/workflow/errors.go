package workflow

import (
	"errors"
	"fmt"

	"troupe/persistence"
	"troupe/statemachine"
)

// What a call on Router can answer besides success. Each is wrapped with the
// operation and its subject; the gateway's table turns them into statuses.
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
	// ErrQuota: one of Options.Quotas is used up; nothing was applied (429). The
	// error is a QuotaError, whose text is meant for the caller.
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

// errAsleep: the instance was put to sleep between looking it up and asking it;
// the router looks again. It never leaves the package.
var errAsleep = errors.New("instance is asleep")

// storeError translates what the store says into what callers are told.
func storeError(err error) error {
	switch {
	case errors.Is(err, persistence.ErrOutcomeUnknown):
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	case errors.Is(err, persistence.ErrStalled), errors.Is(err, persistence.ErrDiskFull), errors.Is(err, persistence.ErrClosed):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.Is(err, persistence.ErrCorrupt):
		return fmt.Errorf("%w: %w", ErrExecution, err)
	}
	return fmt.Errorf("%w: %w", ErrInternal, err)
}

// stepError translates what the state machine says.
func stepError(err error) error {
	switch {
	case errors.Is(err, statemachine.ErrUnknownEvent), errors.Is(err, statemachine.ErrInvalidData):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case errors.Is(err, statemachine.ErrForbidden):
		return ErrForbidden
	case errors.Is(err, statemachine.ErrRejected):
		return ErrNotAllowed
	case errors.Is(err, statemachine.ErrTooLarge):
		return ErrTooLarge
	}
	return fmt.Errorf("%w: %w", ErrExecution, err)
}
