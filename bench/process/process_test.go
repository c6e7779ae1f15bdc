package process

import (
	"context"
	"errors"
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

// TestAProgramThatDoesNotServe is named as that, without an empty log behind it.
func TestAProgramThatDoesNotServe(t *testing.T) {
	for program, want := range map[string]string{"true": ": the program does not serve: it ended", "false": ": the program does not serve: it ended: exit status 1"} {
		if _, err := Start(t.Context(), filepath.Join(t.TempDir(), "log"), program, "serve"); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want it to end with %q", program, err, want)
		}
	}
}

func TestAProcessThatHasEndedSaysSo(t *testing.T) {
	p, err := Launch(t.Context(), filepath.Join(t.TempDir(), "log"), "nowhere", "/bin/sh", "-c", "echo the port is taken; read line")
	if err != nil {
		t.Fatal(err)
	}
	<-p.Ended() // nothing is on its standard input
	if err := p.Failure(); !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("behind its end: %v", err)
	}
	p, err = Launch(t.Context(), filepath.Join(t.TempDir(), "log"), "nowhere", "/bin/sh", "-c", "exec sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Failure(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	p.Kill()
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
