package admin

import (
	"errors"
	"net/http"

	"troupe/actors/failure"
)

var (
	// ErrNoServer is what Dial and the calls of a Client answer when nobody
	// listens at the socket. Nothing was done; the caller may open the store itself.
	ErrNoServer = errors.New("no server is running there")
	// ErrInUse is what Start answers when a server listens at the socket
	// already. The caller should not start a second one.
	ErrInUse = errors.New("a server is running there already")
	// ErrNotSocket is what Start answers when the socket's path exists and is not a socket. A person has to look at it.
	ErrNotSocket = errors.New("the path exists and is not a socket")
	// ErrUnknownRequest is wrapped by what a Client answers when the server does not
	// know the request, because the two are of different versions.
	ErrUnknownRequest = errors.New("the server does not know this request")
	// ErrFailed is wrapped by what a Client answers when the server had an error
	// that is in no other row. The outcome is unknown.
	ErrFailed = errors.New("the server failed")
)

// errorMapping says how an error is sent: label names the cause on both sides.
type errorMapping struct {
	cause  error
	status int
	label  string
}

// errorMappings is never changed. Errors that are in no row are sent as the last one.
var errorMappings = []errorMapping{
	{failure.ErrNotFound, http.StatusNotFound, "NotFound"},
	{failure.ErrInvalid, http.StatusBadRequest, "Invalid"},
	{failure.ErrConflict, http.StatusConflict, "Conflict"},
	{failure.ErrNotAllowed, http.StatusConflict, "NotAllowed"},
	{failure.ErrForbidden, http.StatusForbidden, "Forbidden"},
	{failure.ErrBusy, http.StatusServiceUnavailable, "Busy"},
	{failure.ErrUnavailable, http.StatusServiceUnavailable, "Unavailable"},
	{failure.ErrNotLeader, http.StatusMisdirectedRequest, "Elsewhere"},
	{failure.ErrOutcomeUnknown, http.StatusGatewayTimeout, "OutcomeUnknown"},
	{ErrUnknownRequest, http.StatusBadRequest, "Request"},
	{ErrFailed, http.StatusInternalServerError, "Failed"},
}

func mappingOf(err error) errorMapping {
	for _, f := range errorMappings {
		if errors.Is(err, f.cause) {
			return f
		}
	}
	return errorMappings[len(errorMappings)-1]
}

func causeOf(label string) error {
	for _, f := range errorMappings {
		if f.label == label {
			return f.cause
		}
	}
	return ErrFailed
}
