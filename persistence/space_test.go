package persistence

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"

	"troupe/persistence/internal/engine"
)

// TestATableThatFindsNoSpaceShutsTheStoreUntilItDoes holds what follows of
// persistence/PROMISES.md, "F6". Pebble repeats a failed flush without a pause, so
// this test and the next run on real time.
func TestATableThatFindsNoSpaceShutsTheStoreUntilItDoes(t *testing.T) {
	t.Parallel()
	f := &faultyFS{suffix: ".sst", kinds: []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpCreate}}
	s := open(t, small(errorfs.Wrap(vfs.NewMem(), f)))
	mustCommit(t, s, "a", "1")
	f.fail(&os.PathError{Op: "write", Path: "db/1.sst", Err: syscall.ENOSPC})
	flushed, err := engine.Pebble(s.db.Load()).AsyncFlush()
	must(t, err)
	eventually(t, "the store is shut", func() bool { return errors.Is(s.Accepting(), ErrDiskFull) })
	wantError(t, "append", <-appendSetting(s, "b", "2"), ErrDiskFull)
	assert.NotZero(t, s.Metrics().BackgroundErrors, "no background error was counted")
	f.fault.Store(nil)
	<-flushed
	eventually(t, "the store has healed", func() bool { return s.Accepting() == nil })
	mustCommit(t, s, "c", "3")
}

func TestATableThatCannotBeWrittenShutsTheStoreUntilItCan(t *testing.T) {
	f := &faultyFS{suffix: ".sst", kinds: syncKinds}
	s := open(t, small(errorfs.Wrap(vfs.NewMem(), f)))
	mustCommit(t, s, "a", "1")
	f.fail(&os.PathError{Op: "sync", Path: "db/1.sst", Err: syscall.EIO})
	flushed, err := engine.Pebble(s.db.Load()).AsyncFlush()
	must(t, err)
	eventually(t, "the store is shut", func() bool { return errors.Is(s.Accepting(), ErrStalled) })
	f.fault.Store(nil)
	<-flushed
	eventually(t, "the store has healed", func() bool { return s.Accepting() == nil })
	wantSetting(t, s, "a", "1")
}
