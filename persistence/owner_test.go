package persistence

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/file"
)

// secondEnv makes the test binary play a second process on a directory.
const secondEnv = "PERSISTENCE_TEST_SECOND"

// TestASecondProcessIsRefusedWithoutTheLockFile: somebody removed LOCK by hand.
func TestASecondProcessIsRefusedWithoutTheLockFile(t *testing.T) {
	if dir := os.Getenv(secondEnv); dir != "" {
		s, err := Open(dir, plain)
		fmt.Fprintln(os.Stdout, err)
		if err == nil {
			_ = s.Close()
		}
		return
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	s := mustOpen(t, dir, plain)
	defer s.Close()
	mustCommit(t, s, "a", "1")
	must(t, os.Remove(filepath.Join(dir, disk.LockName)))
	cmd := exec.Command(os.Args[0], "-test.run", "^TestASecondProcessIsRefusedWithoutTheLockFile$")
	cmd.Env = append(os.Environ(), secondEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	assert.True(t, err == nil && strings.Contains(string(out), ErrLocked.Error()), "the second process: got %v and %s, want %q", err, out, ErrLocked)
	if locks, err := os.ReadFile("/proc/locks"); err == nil && len(locks) > 0 {
		assert.Contains(t, string(out), fmt.Sprintf("by process %d;", os.Getpid()))
	}
	mustCommit(t, s, "b", "2")
}

// TestAFolderUnderTwoNamesIsOneStore: a lock by name would not see it.
func TestAFolderUnderTwoNamesIsOneStore(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, other))
	s := mustOpen(t, dir, plain)
	wantError(t, "open again", second(Open(dir, plain)), ErrLocked)
	wantError(t, "open again to read", second(Open(dir, Options{ReadOnly: true})), ErrLocked)
	wantError(t, "open by the other name", second(Open(other, plain)), ErrLocked)
	must(t, s.Close())
	s = mustOpen(t, other, plain)
	must(t, s.Close())
}

// TestAStoreThatIsNotItsOwnAnyMoreEndsTheProcess: where no lock keeps a second
// process out, what it does to the files is noticed. testdata/store/checkpoint.txt has more of it.
func TestAStoreThatIsNotItsOwnAnyMoreEndsTheProcess(t *testing.T) {
	log := func(t *testing.T, dir string) string {
		logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
		require.True(t, err == nil && len(logs) != 0, "logs: got %q, %v", logs, err)
		return logs[len(logs)-1]
	}
	for name, c := range map[string]struct {
		hurt func(t *testing.T, dir string) error
		want string
	}{
		"another log": {func(t *testing.T, dir string) error {
			data, err := os.ReadFile(log(t, dir))
			if err != nil {
				return err
			}
			copied := filepath.Join(dir, "copy")
			if err := os.WriteFile(copied, data, 0o600); err != nil {
				return err
			}
			return os.Rename(copied, log(t, dir))
		}, ".log"},
		"another directory": {func(_ *testing.T, dir string) error {
			if err := os.Rename(dir, dir+".old"); err != nil {
				return err
			}
			return os.CopyFS(dir, os.DirFS(dir+".old"))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			o := plain
			o.CheckpointInterval, o.CommitWaitMax = time.Millisecond, time.Minute
			died := deaths(&o)
			s := mustOpen(t, dir, o)
			end := committed(t, s, "a", "1")
			eventually(t, "the checkpoint knows of the commit, and rests", func() bool {
				data, err := os.ReadFile(filepath.Join(dir, integrity.CheckpointName))
				if err != nil {
					return false
				}
				c, err := parseCheckpoint(data)
				return err == nil && c.seq == end
			})
			must(t, c.hurt(t, dir))
			reason := <-died
			assert.True(t, strings.Contains(reason, c.want) && strings.Contains(reason, "acknowledged since"), "%v %v", reason, c.want)
			wantError(t, "append", <-appendSetting(s, "b", "2"), ErrStalled)
			assert.Error(t, s.Close(), "close of a store that died: got no error")
		})
	}
}

// TestACheckpointOfOnesOwnIsKnownAfterFailedWrites: the first took its place all the
// same, the second did not.
func TestACheckpointOfOnesOwnIsKnownAfterFailedWrites(t *testing.T) {
	var step atomic.Int32
	faults := errorfs.InjectorFunc(func(op errorfs.Op) error {
		replaced := strings.HasSuffix(op.Path, integrity.CheckpointName+file.TmpSuffix)
		switch {
		case step.Load() == 1 && op.Kind == errorfs.OpRename && replaced:
			step.Store(2)
		case op.Kind == errorfs.OpOpenDir && step.CompareAndSwap(2, 3):
			return syscall.EIO
		case step.Load() == 3 && op.Kind == errorfs.OpCreate && replaced:
			return syscall.EMFILE
		}
		return nil
	})
	o := small(errorfs.Wrap(vfs.NewMem(), faults))
	o.CheckpointInterval = time.Millisecond
	died := deaths(&o)
	s := open(t, o)
	var end uint64
	fresh := func() bool { // the checkpoint knows of all commits
		c, err := loadCheckpoint(s.fs)
		return err == nil && c.seq == end
	}
	for first := true; first || !fresh(); first = false { // again when it was begun before the commit
		step.Store(1)
		end = committed(t, s, "a", "1")
		eventually(t, "the checkpoint took its place, and its write failed", func() bool { return step.Load() == 3 })
	}
	select {
	case err := <-appendSetting(s, "b", "2"):
		wantError(t, "commit", err, nil)
	case reason := <-died:
		t.Fatalf("died: %s", reason)
	}
	before := s.Metrics().CheckpointErrors
	eventually(t, "the store has looked at its files some more times", func() bool { return s.Metrics().CheckpointErrors > before+2 })
	require.Empty(t, died)
	step.Store(0)
	end = committed(t, s, "c", "3")
	eventually(t, "the checkpoint is written again", fresh)
}
