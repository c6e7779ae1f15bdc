// Package logtest keeps what is logged, for tests that look for it.
package logtest

import (
	"strings"
	"sync"
)

// Log is an io.Writer that keeps what it gets. It is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// Write implements io.Writer.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// String is all that was logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count is how often the log has a text.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
