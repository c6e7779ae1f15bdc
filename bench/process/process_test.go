package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAServerThatEndsIsAnErrorWithItsLastWords(t *testing.T) {
	_, err := Start(t.Context(), filepath.Join(t.TempDir(), "log"), "/bin/sh", "-c", "echo no such home; exit 3")
	if err == nil || !strings.Contains(err.Error(), "no such home") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
}

func TestProcessorTimeIsTheSumOfTwoFields(t *testing.T) {
	// The name has a blank and a bracket.
	text := "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0 5 6 7"
	got, err := parseStat([]byte(text))
	if err != nil || got != 2*time.Second {
		t.Errorf("got %v, %v; want 2s", got, err)
	}
	for _, text := range []string{"", "42 (a) S 1 2", "42 (a) S 1 2 3 4 5 6 7 8 9 10 x 50"} {
		if _, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
	if own, err := ProcessorTime(os.Getpid()); err != nil || own < 0 {
		t.Errorf("own: got %v, %v", own, err)
	}
	if ResidentBytes(os.Getpid()) < 1<<20 {
		t.Errorf("own memory: got %d bytes", ResidentBytes(os.Getpid()))
	}
}
