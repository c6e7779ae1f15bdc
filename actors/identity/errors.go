package identity

import (
	"errors"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

var (
	errNoUser       = failure.Errorf(failure.ErrNotFound, "no such user, or disabled")
	errNoCredential = failure.Errorf(failure.ErrNotFound, "no such credential")
	errFull         = failure.Errorf(failure.ErrBusy, "too many credentials")
	errStopped      = failure.Errorf(failure.ErrUnavailable, "identity service is stopped")
	errElsewhere    = failure.Elsewhere(uint16(key.Meta))
	// errNotFresh: this node is cut off or its disk is full, so what it knows of credentials may be old.
	errNotFresh = failure.Errorf(failure.ErrUnavailable, "cut off from the node that leads the credentials, or without room for what it says")
	// errWaiting and errNoAnswer: it is not known whether a credential is a new one.
	errWaiting  = failure.Errorf(failure.ErrBusy, "too many unknown credentials wait for the node that leads them")
	errNoAnswer = failure.Errorf(failure.ErrUnavailable, "the node that leads the credentials does not answer")
	// ErrCorrupt marks a stored row that cannot be read.
	ErrCorrupt = errors.New("corrupt credential row")
)
