package gateway

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"troupe/actors/failure"
	"troupe/statemachine/data"
)

// ErrStopped is what Start answers on a server that was started or stopped
// before: a server is used once, make a new one.
var ErrStopped = errors.New("gateway was used before")

// errCrossOrigin: the request comes from a page of another site.
var errCrossOrigin = failure.Refuse(failure.ErrForbidden, "requests from pages of other sites are not allowed")

// errAborted ends a request whose reply can no longer be written as it should. It
// is not answered: the connection is closed instead.
var errAborted = errors.New("reply cannot be finished")

// malformed returns an error of a request that cannot be read. Parts that come from
// the request must go through quote.
func malformed(format string, args ...any) error {
	return failure.Refuse(failure.ErrInvalid, format, args...)
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
