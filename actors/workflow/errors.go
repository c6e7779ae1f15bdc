package workflow

import (
	"errors"

	"troupe/actors/failure"
	"troupe/statemachine"
)

// errAsleep: the instance was put to sleep between looking it up and asking it;
// the router looks again. It never leaves the package.
var errAsleep = errors.New("instance is asleep")

// stepError translates what the state machine says.
func stepError(err error) error {
	switch {
	case errors.Is(err, statemachine.ErrUnknownEvent), errors.Is(err, statemachine.ErrInvalidData), errors.Is(err, statemachine.ErrNotSettable):
		return failure.Refuse(failure.ErrInvalid, "%w", err)
	case errors.Is(err, statemachine.ErrForbidden):
		return failure.ErrForbidden
	case errors.Is(err, statemachine.ErrRejected):
		return failure.ErrNotAllowed
	case errors.Is(err, statemachine.ErrTooLarge):
		return failure.ErrTooLarge
	}
	return failure.Errorf(failure.ErrExecution, "%w", err)
}
