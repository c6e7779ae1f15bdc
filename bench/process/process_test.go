package process

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
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

// TestNoPortIsGivenTwice: a port that was drawn is let go until the server listens, so that another draw or a
// connection could have it. 32768 is where the systems' own begin.
func TestNoPortIsGivenTwice(t *testing.T) {
	before := map[string]bool{}
	for range 500 {
		addr, err := FreeAddr()
		require.NoError(t, err)
		assert.True(t, !before[addr] && netip.MustParseAddrPort(addr).Port() < 32_768, "got %s", addr)
		before[addr] = true
	}
}

// TestAPortOfAnotherProgramIsNotGiven: the tests of packages run beside each other, and each draws.
func TestAPortOfAnotherProgramIsNotGiven(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has names that leave no file")
	}
	port := -os.Getpid() // none that is drawn, and nobody else's
	other, err := net.Listen("unix", claimName(port))
	require.NoError(t, err)
	assert.False(t, claim(port), "it is given while another program has it")
	require.NoError(t, other.Close())
	assert.True(t, claim(port) && !claim(port), "it is not given once when nobody has it")
	assert.NoError(t, claims.of[port].Close())
	delete(claims.of, port)
}
