package cli

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEndSignals: a signal that is ignored stays so.
func TestEndSignals(t *testing.T) {
	was := signal.Ignored(syscall.SIGHUP)
	defer func() {
		if !was {
			signal.Reset(syscall.SIGHUP)
		}
	}()
	got := EndSignals()
	assert.NotEqual(t, was, slices.Contains(got, os.Signal(syscall.SIGHUP)), "SIGHUP ignored, %v", got)
	signal.Ignore(syscall.SIGHUP)
	got = EndSignals()
	assert.False(t, slices.Contains(got, os.Signal(syscall.SIGHUP)), "beside nohup: got %v", got)
}
