package persistence

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func TestAFullDiskIsRefusedAndHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		free := func(mib uint64) { fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: mib << 20}) }
		free(1000)
		o := small(fs)
		o.FreeBytesMin = 100 << 20
		s := open(t, o)
		mustCommit(t, s, "a", "1")

		free(99)
		time.Sleep(2 * spaceInterval)
		wantError(t, "accepting with too little space", s.Accepting(), ErrDiskFull)
		wantError(t, "append with too little space", <-appendSetting(s, "b", "2"), ErrDiskFull)
		wantSetting(t, s, "a", "1")

		free(105) // above the mark, but not by enough
		time.Sleep(2 * spaceInterval)
		wantError(t, "accepting just above the mark", s.Accepting(), ErrDiskFull)

		free(200)
		time.Sleep(2 * spaceInterval)
		wantError(t, "accepting with space", s.Accepting(), nil)
		mustCommit(t, s, "c", "3")
	})
}

// Pebble repeats a failed flush without a pause, so these two run on real time.

func TestATableThatFindsNoSpaceShutsTheStoreUntilItDoes(t *testing.T) {
	f := &faultyFS{suffix: ".sst", kinds: []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpCreate}}
	s := open(t, small(errorfs.Wrap(vfs.NewMem(), f)))
	mustCommit(t, s, "a", "1")
	f.fail(&os.PathError{Op: "write", Path: "db/1.sst", Err: syscall.ENOSPC})
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store is shut", func() bool { return errors.Is(s.Accepting(), ErrDiskFull) })
	wantError(t, "append", <-appendSetting(s, "b", "2"), ErrDiskFull)
	if s.Metrics().BackgroundErrors == 0 {
		t.Error("no background error was counted")
	}
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
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store is shut", func() bool { return errors.Is(s.Accepting(), ErrStalled) })
	f.fault.Store(nil)
	<-flushed
	eventually(t, "the store has healed", func() bool { return s.Accepting() == nil })
	wantSetting(t, s, "a", "1")
}

func TestOpenOnAFullDiskIsRefusedWithoutChanges(t *testing.T) {
	fs := vfs.NewMem()
	closeStore(t, small(fs))
	before := listing(t, fs)
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 20})
	o := small(fs)
	o.FreeBytesMin = 1
	_, err := Open("db", o)
	wantError(t, "open", err, ErrDiskFull)
	if got := listing(t, fs); got != before {
		t.Errorf("files: got\n%s\nwant\n%s", got, before)
	}
}
