package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAServerThatEndsIsAnErrorWithItsLastWords(t *testing.T) {
	_, err := Start(t.Context(), filepath.Join(t.TempDir(), "log"), "/bin/sh", "-c", "echo no such home; exit 3")
	if err == nil || !strings.Contains(err.Error(), "no such home") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
}

func TestWhatAProcessHasUsed(t *testing.T) {
	if own, err := ProcessorTime(os.Getpid()); err != nil || own < 0 {
		t.Errorf("processor time: got %v, %v", own, err)
	}
	if own := ResidentBytes(os.Getpid()); own < 1<<20 {
		t.Errorf("memory: got %d bytes", own)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if own := PeakBytes(ended, os.Getpid()); own < 1<<20 {
		t.Errorf("the most memory: got %d bytes", own)
	}
	const nobody = 1 << 30 // above the largest number of a process
	if used, err := ProcessorTime(nobody); err == nil || ResidentBytes(nobody) != 0 {
		t.Errorf("a process that is not there: got %v", used)
	}
}

func TestOutputIsWhatACommandPrints(t *testing.T) {
	if got, err := Output(t.Context(), "/bin/sh", "-c", "echo one; echo two >&2"); got != "one" || err != nil {
		t.Errorf("got %q, %v, want one", got, err)
	}
	if _, err := Output(t.Context(), "/bin/sh", "-c", "echo two >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3\ntwo") {
		t.Errorf("got %v, want the status and what it says", err)
	}
}
