package persistence

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/key"
)

// faultEnv makes the test binary play a process whose disk fails.
const faultEnv = "PERSISTENCE_TEST_FAULT"

// TestADiskFaultEndsTheProcess holds persistence/PROMISES.md, "P3". It runs a
// process with the default Fatal, for faults in every kind of file, and opens the
// store that the process leaves.
func TestADiskFaultEndsTheProcess(t *testing.T) {
	if spec := os.Getenv(faultEnv); spec != "" {
		playFaultyProcess(spec)
		return
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, spec := range []string{"log/sync", "log/write", "MANIFEST/sync", "MANIFEST/write"} {
		t.Run(spec, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run", "^TestADiskFaultEndsTheProcess$")
			cmd.Env = append(os.Environ(), faultEnv+"="+spec+"/"+dir)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			exit := (*exec.ExitError)(nil)
			require.True(t, errors.As(err, &exit) && exit.ExitCode() == 1, "the process ended with %v, want exit code 1\n%s", err, stderr.String())
			assert.Contains(t, stderr.String(), "ending the process", "log")
			s, err := Open(dir, Options{MemTableBytes: 64 << 10})
			require.NoError(t, err, "open what is left")
			defer s.Close()
			acked := 0
			for lines := bufio.NewScanner(&stdout); lines.Scan(); {
				if name, ok := strings.CutPrefix(lines.Text(), "acked "); ok {
					acked++
					wantSetting(t, s, name, name)
				}
			}
			assert.NotZero(t, acked, "nothing was acknowledged before the fault")
		})
	}
}

// playFaultyProcess commits until the fault ends the process. spec is file,
// operation and directory.
func playFaultyProcess(spec string) {
	parts := strings.SplitN(spec, "/", 3)
	kinds := syncKinds
	if parts[1] == "write" {
		kinds = []errorfs.OpKind{errorfs.OpFileWrite}
	}
	var armed atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !armed.Load() || !strings.Contains(op.Path, parts[0]) {
			return nil
		}
		for _, kind := range kinds {
			if op.Kind == kind {
				return &os.PathError{Op: parts[1], Path: op.Path, Err: syscall.EIO}
			}
		}
		return nil
	})
	s, err := Open(parts[2], Options{
		FS: errorfs.Wrap(vfs.Default, inject), MemTableBytes: 64 << 10,
		Log: zerolog.New(os.Stderr), CommitWaitMax: 2 * time.Minute,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	for n := range 3000 {
		if n == 20 {
			armed.Store(true)
		}
		name := fmt.Sprintf("%04d", n)
		w := s.NewBatch(key.Meta)
		w.Set(key.Setting(nil, name), []byte(name))
		w.Set(key.Setting(nil, "filler"), make([]byte, 1<<10))
		c := make(waitFor, 1)
		s.Append(w, c)
		if <-c == nil {
			fmt.Fprintln(os.Stdout, "acked", name)
		}
	}
	os.Exit(4) // the fault did not end it
}

// panicEnv makes the test binary play a process in which the journal's committer panics.
const panicEnv = "PERSISTENCE_TEST_PANIC"

// TestAPanicOfTheJournalEndsTheProcess on purpose: what it had not told yet, nobody else knows.
func TestAPanicOfTheJournalEndsTheProcess(t *testing.T) {
	if dir := os.Getenv(panicEnv); dir != "" {
		s, err := Open(dir, Options{})
		if err == nil {
			w := s.NewBatch(key.Meta)
			w.Set(key.Setting(nil, "a"), []byte("1"))
			s.Append(w, badWaiter{})
			err = s.Close()
		}
		_, _ = fmt.Fprintln(os.Stdout, "still there", err)
		return
	}
	if testing.Short() {
		t.Skip("starts a process")
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAPanicOfTheJournalEndsTheProcess$")
	cmd.Env = append(os.Environ(), panicEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	assert.True(t, err != nil && strings.Contains(string(out), "panic: a waiter") && !strings.Contains(string(out), "still there"), "%v %v", err, out)
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	defer s.Close()
	wantSetting(t, s, "a", "1")
}

type badWaiter struct{}

func (badWaiter) Committed(error) { panic("a waiter") }
