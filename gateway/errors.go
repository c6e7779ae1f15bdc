package gateway

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"troupe/statemachine/data"
)

// ErrStopped is what Start answers on a server that was started or stopped
// before: a server is used once, make a new one.
var ErrStopped = errors.New("gateway was used before")

// What the gateway itself refuses. Each has a row in the table of errormapping.go,
// as have the errors of the packages it calls.
var (
	errMalformed    = errors.New("malformed request")         // 400
	errUnauthorized = errors.New("unauthorized")              // 401
	errCrossOrigin  = errors.New("cross-origin request")      // 403
	errPrivilege    = errors.New("privilege missing")         // 403
	errNotFound     = errors.New("not found")                 // 404
	errMethod       = errors.New("method not allowed")        // 405
	errTooLarge     = errors.New("body too large")            // 413
	errMediaType    = errors.New("media type not supported")  // 415
	errBusy         = errors.New("too many requests at once") // 503
	errNotReady     = errors.New("starting or stopping")      // 503
)

// errAborted ends a request whose reply can no longer be written as it should. It
// has no row: the connection is closed instead.
var errAborted = errors.New("reply cannot be finished")

// refusal is an error whose text is meant for the caller.
type refusal struct {
	cause error // one of the sentinels above
	text  string
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.cause }

// refuse returns an error of the given cause with a text for the caller. Parts
// that come from the request must go through quote.
func refuse(cause error, format string, args ...any) error {
	return &refusal{cause: cause, text: fmt.Sprintf(format, args...)}
}

const (
	quotedCharsMax  = 64  // gateway/INTERFACE.md, "Messages"
	messageBytesMax = 512 // of a message in all
)

// quote returns s as it may stand in a message: between quotes, escaped to
// visible ASCII, at most 64 characters of it.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	room := quotedCharsMax
	for len(s) > 0 {
		_, size := utf8.DecodeRuneInString(s)
		escaped := strconv.QuoteToASCII(s[:size])
		escaped = escaped[1 : len(escaped)-1]
		if len(escaped) > room {
			b.WriteString(`"…`)
			return b.String()
		}
		room -= len(escaped)
		b.WriteString(escaped)
		s = s[size:]
	}
	b.WriteByte('"')
	return b.String()
}

// clip cuts a message to messageBytesMax.
func clip(s string) string { return data.Clip(s, messageBytesMax) }
