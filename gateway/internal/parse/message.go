package parse

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"troupe/actors/failure"
	"troupe/statemachine/data"
)

// Malformed returns an error of a request that cannot be read. Parts that come from the request must go through Quote.
func Malformed(format string, args ...any) error {
	return failure.Refuse(failure.ErrInvalid, format, args...)
}

const (
	quotedCharsMax  = 64  // gateway/INTERFACE.md, "Messages"
	MessageBytesMax = 512 // of a message in all
)

// Quote returns s as it may stand in a message: between quotes, escaped to visible ASCII, at most 64 characters of it.
func Quote(s string) string {
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

// Clip cuts a message to MessageBytesMax.
func Clip(s string) string { return data.Clip(s, MessageBytesMax) }
