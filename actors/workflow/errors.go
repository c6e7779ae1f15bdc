package workflow

import (
	"errors"
	"fmt"

	"troupe/actors/failure"
	"troupe/statemachine"
)

// errAsleep: the instance was put to sleep between looking it up and asking it;
// the router looks again. It never leaves the package.
var errAsleep = errors.New("instance is asleep")

// stepError translates what the state machine says.
func stepError(err error) error {
	switch {
	case errors.Is(err, statemachine.ErrUnknownEvent), errors.Is(err, statemachine.ErrInvalidData):
		return fmt.Errorf("%w: %w", failure.ErrInvalid, err)
	case errors.Is(err, statemachine.ErrForbidden):
		return failure.ErrForbidden
	case errors.Is(err, statemachine.ErrRejected):
		return failure.ErrNotAllowed
	case errors.Is(err, statemachine.ErrTooLarge):
		return failure.ErrTooLarge
	}
	return fmt.Errorf("%w: %w", failure.ErrExecution, err)
}
