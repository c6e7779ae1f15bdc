package gateway

import (
	"errors"

	"troupe/actors/failure"
)

// ErrStopped is what Start answers on a server that was started or stopped
// before: a server is used once, make a new one.
var ErrStopped = errors.New("gateway was used before")

// errCrossOrigin: the request comes from a page of another site.
var errCrossOrigin = failure.Refuse(failure.ErrForbidden, "requests from pages of other sites are not allowed")

// errAborted ends a request whose reply can no longer be written as it should. It
// is not answered: the connection is closed instead.
var errAborted = errors.New("reply cannot be finished")
