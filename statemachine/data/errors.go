package data

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

var (
	// ErrSyntax is wrapped by every error of Clean: the bytes are not one JSON value as this package wants it.
	ErrSyntax = errors.New("invalid JSON")
	// ErrPath is wrapped by the errors of ParsePath and Set: the path is malformed, or does not fit the value that it is to
	// change. The author of the path has to correct it.
	ErrPath = errors.New("bad path")
	// ErrDepth is wrapped by the errors of Set and From when the result would be nested deeper than MaxDepth.
	ErrDepth = errors.New("nested too deep")
	// ErrType is wrapped by the errors of From: the Go value has no JSON form. It is a fault of the caller.
	ErrType = errors.New("no JSON form")
)

// SyntaxError says what is wrong with a text given to Clean, and where. It wraps ErrSyntax.
type SyntaxError struct {
	// Offset counts bytes from 0.
	Offset int
	// Reason is safe to show to the sender: of the input it repeats at most 64 characters, escaped.
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%v at byte %d: %s", ErrSyntax, e.Offset, e.Reason)
}

func (e *SyntaxError) Unwrap() error { return ErrSyntax }

// Clip returns s cut to at most most bytes, without splitting a character, and with "…" at the end if it was cut.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// Quote returns s in a form that is safe in a message to the sender of s: in quotes,
// with all unprintable characters escaped, and cut to 64 characters.
func Quote(s string) string {
	const maxChars = 64
	if len(s) < maxChars*utf8.UTFMax {
		if q := strconv.Quote(s); utf8.RuneCountInString(q) <= maxChars {
			return q
		}
	}
	q, chars := []byte{'"'}, 1
	for {
		_, size := utf8.DecodeRuneInString(s)
		c := strconv.Quote(s[:size])
		c = c[1 : len(c)-1]
		chars += utf8.RuneCountInString(c)
		if chars+len(`..."`) > maxChars {
			return string(q) + `..."`
		}
		q, s = append(q, c...), s[size:]
	}
}
