package cli

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
)

// TestEndSignals: a signal that is ignored stays so.
func TestEndSignals(t *testing.T) {
	was := signal.Ignored(syscall.SIGHUP)
	defer func() {
		if !was {
			signal.Reset(syscall.SIGHUP)
		}
	}()
	if got := EndSignals(); slices.Contains(got, os.Signal(syscall.SIGHUP)) == was {
		t.Errorf("SIGHUP ignored: %v, got %v", was, got)
	}
	signal.Ignore(syscall.SIGHUP)
	if got := EndSignals(); slices.Contains(got, os.Signal(syscall.SIGHUP)) {
		t.Errorf("beside nohup: got %v", got)
	}
}
