package client

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"troupe/gateway/api"
)

var (
	// ErrInvalid is wrapped when a request cannot be sent as it is: an identifier, a key or a limit that no service
	// takes, or data that is no JSON. The caller must correct it.
	ErrInvalid = errors.New("invalid request")
	// ErrOutcomeUnknown is wrapped, beside the cause, by errors of Create and Send when the service may have done what
	// was asked. Ask again with the same key, which UnknownError has: it is done once in all.
	ErrOutcomeUnknown = errors.New("it is not known whether this was done")
	// ErrProtocol is wrapped when an answer is none of this interface, or larger
	// than Options allow. Either the address is wrong or the service is newer.
	ErrProtocol = errors.New("unexpected answer")
)

// Error is what the service refused.
type Error struct {
	Status int // the HTTP status
	// Code is the member "error" of the body, such as "NotFound"; empty when the
	// answer is not from the service but from something in front of it.
	Code    string
	Message string // for people, and not to be relied on
	// RetryAfter is how long to wait before asking again; 0 when the answer does not say.
	RetryAfter time.Duration
	Faults     []api.FileFault // those of the files of a home that was refused

	notApplied bool // notApplied says that a Retry-After stood there, however short
}

// Error returns status, code and message; what does not print is escaped.
func (e *Error) Error() string {
	code, message := e.Code, e.Message
	if code == "" {
		code = http.StatusText(e.Status)
	}
	text := strings.TrimSpace(strconv.Itoa(e.Status) + " " + Printable(code))
	if message == "" {
		return text
	}
	return text + ": " + Printable(message)
}

// Printable escapes what does not print, so that it can be shown on a terminal: control characters, line ends, marks
// that turn the direction of writing, bytes that are no UTF-8.
func Printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(s[:size])
		} else {
			quoted := strconv.QuoteToASCII(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// asking puts what was asked for in front of an error of a method.
func asking(err *error, format string, names ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", Printable(fmt.Sprintf(format, names...)), *err)
	}
}

// UnknownError is an error after which nobody knows whether the request was carried
// out. It wraps ErrOutcomeUnknown and Cause.
type UnknownError struct {
	// Cause is why the last attempt failed. Where that one surely did nothing, but one
	// before it may have, its text says so.
	Cause error
	Key   string // the idempotency key with which to ask again
}

// Error returns the cause and the key.
func (u *UnknownError) Error() string {
	return fmt.Sprintf("%v; %v: ask again with the key %s", u.Cause, ErrOutcomeUnknown, u.Key)
}

// Unwrap returns ErrOutcomeUnknown and the cause.
func (u *UnknownError) Unwrap() []error { return []error{ErrOutcomeUnknown, u.Cause} }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
