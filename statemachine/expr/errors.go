package expr

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// ErrEval is wrapped by every error of Program.Bool and Program.Value: the expression failed on this scope. A guard is then
	// false, an action fails. The same scope fails again.
	ErrEval = errors.New("expression failed")

	// ErrLimit is wrapped, beside ErrEval, when the evaluation was stopped
	// because it cost too much or made a value that is too large.
	ErrLimit = errors.New("limit exceeded")

	// ErrName is wrapped by the errors of Env.With: the name cannot be a variable. The author has to choose another one.
	ErrName = errors.New("bad variable name")
)

// CompileError says what is wrong with an expression's text. Env.Compile and Env.CompileBool return no other error.
type CompileError struct {
	// Line and Column are where, from 1, inside the expression. Columns count characters.
	Line, Column int
	// Reason is one line of plain text, for the author of the expression.
	Reason string
	// Fields are those that the variable has of which the expression names another; nil for every other reason.
	Fields []string
	// More are the other errors of the same text, in order.
	More []*CompileError
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason)
}

// maxReasonChars bounds the texts of errors. A text may quote the expression or a key that it computed.
const maxReasonChars = 200

// oneLine makes a message fit for a log line: no line breaks, nothing that a terminal would obey, and not long.
func oneLine(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	var b strings.Builder
	chars := 0
	for _, r := range s {
		if chars++; chars > maxReasonChars {
			b.WriteString("…")
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

func evalError(reason string) error {
	return fmt.Errorf("%w: %s", ErrEval, oneLine(reason))
}

func limitError(reason string) error {
	return fmt.Errorf("%w: %w: %s", ErrEval, ErrLimit, oneLine(reason))
}
