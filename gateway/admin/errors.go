package admin

import (
	"errors"
	"net/http"

	"troupe/actors/identity"
)

var (
	// ErrNoServer is what Dial and the calls of a Client answer when nobody
	// listens at the socket. Nothing was done; the caller opens the store itself.
	ErrNoServer = errors.New("no server is running there")
	// ErrInUse is what Start answers when a server listens at the socket
	// already. The caller should not start a second one.
	ErrInUse = errors.New("a server is running there already")
	// ErrNotSocket is what Start answers when something else stands at the
	// socket's path. Somebody has to look what it is.
	ErrNotSocket = errors.New("there is something that is not a socket")
	// ErrRequest is wrapped by what a Client answers when the server did not
	// understand it, as it happens between two versions.
	ErrRequest = errors.New("the server does not know this request")
	// ErrFailed is wrapped by what a Client answers when the server ran into an
	// error without a meaning here. The outcome is unknown.
	ErrFailed = errors.New("the server could not do it")
)

// fault is how an error travels: the word stands for the cause on both sides.
type fault struct {
	cause  error
	status int
	word   string
}

// faults is never changed. The last row is for what is in none.
var faults = []fault{
	{identity.ErrNoUser, http.StatusNotFound, "NoUser"},
	{identity.ErrNoCredential, http.StatusNotFound, "NoCredential"},
	{identity.ErrInvalid, http.StatusBadRequest, "Invalid"},
	{identity.ErrBusy, http.StatusServiceUnavailable, "Busy"},
	{identity.ErrFull, http.StatusServiceUnavailable, "Full"},
	{identity.ErrStopped, http.StatusServiceUnavailable, "Stopped"},
	{ErrRequest, http.StatusBadRequest, "Request"},
	{ErrFailed, http.StatusInternalServerError, "Failed"},
}

func faultOf(err error) fault {
	for _, f := range faults {
		if errors.Is(err, f.cause) {
			return f
		}
	}
	return faults[len(faults)-1]
}

// causeOf is the way back from a word to its error.
func causeOf(word string) error {
	for _, f := range faults {
		if f.word == word {
			return f.cause
		}
	}
	return ErrFailed
}
