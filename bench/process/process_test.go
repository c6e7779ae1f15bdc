package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAServerThatEndsIsAnErrorWithItsLastWords(t *testing.T) {
	_, err := Start(t.Context(), filepath.Join(t.TempDir(), "log"), "/bin/sh", "-c", "echo no such home; exit 3")
	assert.True(t, err != nil && strings.Contains(err.Error(), "no such home") && strings.Contains(err.Error(), "exit status 3"), "got %v", err)
}

// TestAProgramThatDoesNotServe is named as that, without an empty log behind it.
func TestAProgramThatDoesNotServe(t *testing.T) {
	for program, want := range map[string]string{"true": ": the program does not serve: it ended", "false": ": the program does not serve: it ended: exit status 1"} {
		_, err := Start(t.Context(), filepath.Join(t.TempDir(), "log"), program, "serve")
		assert.True(t, err != nil && strings.HasSuffix(err.Error(), want), "%s: got %v, want it to end with %q", program, err, want)
	}
}

func TestAProcessThatHasEndedSaysSo(t *testing.T) {
	p, err := Launch(t.Context(), filepath.Join(t.TempDir(), "log"), "nowhere", "/bin/sh", "-c", "echo the port is taken; read line")
	require.NoError(t, err)
	<-p.Ended() // nothing is on its standard input
	err = p.Failure()
	assert.True(t, errors.Is(err, ErrEnded) && strings.Contains(err.Error(), "the port is taken"), "behind its end: %v", err)
	p, err = Launch(t.Context(), filepath.Join(t.TempDir(), "log"), "nowhere", "/bin/sh", "-c", "exec sleep 600")
	require.NoError(t, err)
	assert.NoError(t, p.Failure(), "while it runs")
	p.Kill()
}

func TestWhatAProcessHasUsed(t *testing.T) {
	own, err := ProcessorTime(os.Getpid())
	assert.True(t, err == nil && own >= 0, "processor time: got %v, %v", own, err)
	assert.GreaterOrEqual(t, ResidentBytes(os.Getpid()), int64(1<<20), "memory")
	ended, end := context.WithCancel(t.Context())
	end()
	assert.GreaterOrEqual(t, PeakBytes(ended, os.Getpid()), int64(1<<20), "the most memory")
	const nobody = 1 << 30 // above the largest number of a process
	used, err := ProcessorTime(nobody)
	assert.True(t, err != nil && ResidentBytes(nobody) == 0, "a process that is not there: got %v", used)
}

func TestOutputIsWhatACommandPrints(t *testing.T) {
	got, err := Output(t.Context(), "/bin/sh", "-c", "echo one; echo two >&2")
	assert.True(t, got == "one" && err == nil, "got %q, %v, want one", got, err)
	_, err = Output(t.Context(), "/bin/sh", "-c", "echo two >&2; exit 3")
	assert.True(t, err != nil && strings.Contains(err.Error(), "exit status 3\ntwo"), "got %v, want the status and what it says", err)
}
