package kernel

import (
	"errors"

	"troupe/actors/failure"
)

// errCrossOrigin: the request comes from a page of another site.
var errCrossOrigin = failure.Refuse(failure.ErrForbidden, "requests from pages of other sites are not allowed")

// ErrAborted ends a request whose reply can no longer be written as it should. It
// is not answered: the connection is closed instead.
var ErrAborted = errors.New("reply cannot be finished")
