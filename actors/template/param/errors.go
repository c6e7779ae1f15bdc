package param

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Every error about the content of a file is a *Fault that wraps one of these; any other error is the reader's own.
var (
	ErrNotTemplate = errors.New("not a template")
	ErrEncrypted   = errors.New("encrypted")
	ErrTooLarge    = errors.New("over a limit")
)

// Fault is an error about the content of a file.
type Fault struct {
	Kind error // ErrNotTemplate, ErrEncrypted or ErrTooLarge
	// Reason says what is wrong, or which limit it is. Everyone who may read the file may see it.
	Reason string
}

func (f *Fault) Error() string { return f.Kind.Error() + ": " + f.Reason }

// Unwrap returns the kind, for errors.Is.
func (f *Fault) Unwrap() error { return f.Kind }

// NotTemplate returns a Fault of the kind ErrNotTemplate.
func NotTemplate(reason string) error { return &Fault{ErrNotTemplate, reason} }

// TooLarge returns a Fault of the kind ErrTooLarge that names the limit, as in "more than 10000 parameters".
func TooLarge(limit int64, what string) error {
	if of, bytes := strings.CutPrefix(what, "bytes "); bytes {
		switch {
		case limit > 0 && limit%(1<<20) == 0:
			limit, what = limit>>20, "MiB "+of
		case limit > 0 && limit%(1<<10) == 0:
			limit, what = limit>>10, "KiB "+of
		}
	}
	return &Fault{ErrTooLarge, "more than " + strconv.FormatInt(limit, 10) + " " + what}
}

// quotedBytesMax bounds what one Quote repeats of a file.
const quotedBytesMax = 64

// Quote returns a piece of a file for a Reason: escaped, at most 64 characters.
func Quote(s string) string {
	if len(s) > quotedBytesMax {
		s = s[:quotedBytesMax]
	}
	for q := strconv.QuoteToASCII(s); ; q = strconv.QuoteToASCII(s) {
		if len(q) <= quotedBytesMax {
			return q
		}
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
}
