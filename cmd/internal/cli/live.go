package cli

import (
	"errors"
	"io"
)

// LiveLine is a line on a terminal that is written again and again. On anything else nothing is said.
type LiveLine struct {
	to io.Writer // nil: nothing is said
}

// NewLiveLine makes the line of a stream.
func NewLiveLine(to io.Writer) *LiveLine {
	if !IsTerminal(to) {
		return &LiveLine{}
	}
	return &LiveLine{to}
}

// IsLive reports whether somebody sees it.
func (l *LiveLine) IsLive() bool { return l.to != nil }

// clearLine takes the cursor to the begin of the line and erases it (ECMA-48, EL).
const clearLine = "\r\x1b[K"

// Say writes the line anew.
func (l *LiveLine) Say(text string) {
	if l.to != nil {
		_, _ = io.WriteString(l.to, clearLine+text)
	}
}

// Clear erases the line.
func (l *LiveLine) Clear() {
	if l.to != nil {
		_, _ = io.WriteString(l.to, clearLine)
	}
}

// ErrInterrupted is what a command says that a signal has ended.
var ErrInterrupted = errors.New("interrupted")
