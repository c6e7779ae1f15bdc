package persistence

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
	"troupe/persistence/internal/commit"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// TestAFullDiskIsRefusedAndHeals holds persistence/PROMISES.md, "P4".
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
		clocktest.Advance(2 * spaceInterval)
		wantError(t, "accepting with too little space", s.Accepting(), ErrDiskFull)
		wantError(t, "append with too little space", <-appendSetting(s, "b", "2"), ErrDiskFull)
		wantSetting(t, s, "a", "1")

		free(105) // above the limit, but not by enough
		clocktest.Advance(2 * spaceInterval)
		wantError(t, "accepting just above the limit", s.Accepting(), ErrDiskFull)

		free(200)
		clocktest.Advance(2 * spaceInterval)
		wantError(t, "accepting with space", s.Accepting(), nil)
		mustCommit(t, s, "c", "3")
	})
}

// TestATableThatFindsNoSpaceShutsTheStoreUntilItDoes holds what follows of
// persistence/PROMISES.md, "F6". Pebble repeats a failed flush without a pause, so
// this test and the next run on real time.
func TestATableThatFindsNoSpaceShutsTheStoreUntilItDoes(t *testing.T) {
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

// TestOpenOnAFullDiskServesReads until there is room, and takes writes then.
func TestOpenOnAFullDiskServesReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		free := func(mib uint64) { fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: mib << 20}) }
		free(1000)
		closeStore(t, small(fs))
		before := fs.String()
		free(1)
		o := small(fs)
		o.FreeBytesMin = 1 << 20
		s := open(t, o)
		wantSetting(t, s, "a", "1")
		wantError(t, "accepting", s.Accepting(), ErrDiskFull)
		wantError(t, "append", <-appendSetting(s, "b", "2"), ErrDiskFull)
		wantError(t, "await durable", s.AwaitDurable(), nil)
		begun := s.NewBatch(key.Meta)
		begun.Set(key.Setting(nil, "b"), []byte("2"))
		assert.Equal(t, before, fs.String(), "files")

		free(1000)
		clocktest.Advance(2 * spaceInterval)
		wantError(t, "accepting with space", s.Accepting(), nil)
		wantError(t, "commit of what was begun before", s.Commit(begun), ErrDiskFull)
		mustCommit(t, s, "c", "3")
		for name, value := range map[string]string{"a": "1", "c": "3"} {
			wantSetting(t, s, name, value)
		}
	})
}

// TestOpeningThatFindsNoRoomAfterAllServesReads: what the opening itself writes may take
// the room, at the start and later.
func TestOpeningThatFindsNoRoomAfterAllServesReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1000 << 20})
		f := &faultyFS{suffix: ".log", kinds: []errorfs.OpKind{errorfs.OpFileWriteAt}}
		o := small(errorfs.Wrap(mem, f))
		o.FreeBytesMin = 1 << 20
		first := mustOpen(t, "db", o)
		mustCommit(t, first, "a", "1")
		must(t, first.Close())
		f.fail(&os.PathError{Op: "write", Path: "log", Err: syscall.ENOSPC})
		s := open(t, o)
		for range 3 {
			met := f.met.Load()
			wantSetting(t, s, "a", "1")
			wantError(t, "accepting without room", s.Accepting(), ErrDiskFull)
			clocktest.Advance(commit.FullHold + 2*spaceInterval)
			assert.NotEqual(t, met, f.met.Load(), "opening for writing was not tried again")
		}
		f.fault.Store(nil)
		clocktest.Advance(commit.FullHold + 2*spaceInterval)
		wantError(t, "accepting with room", s.Accepting(), nil)
		mustCommit(t, s, "b", "2")
		must(t, s.Close())
		s = open(t, o)
		wantSetting(t, s, "a", "1")
		wantSetting(t, s, "b", "2")
	})
}

// TestNobodyWaitsForASnapshotWhenThereIsRoomAgain: what was opened to read is read
// to the end, while the store takes writes.
func TestNobodyWaitsForASnapshotWhenThereIsRoomAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		free := func(mib uint64) { fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: mib << 20}) }
		tables := func() (names []string) {
			all, err := fs.List("db")
			must(t, err)
			for _, name := range all {
				if strings.HasSuffix(name, ".sst") {
					names = append(names, name)
				}
			}
			return names
		}
		free(1000)
		o := small(fs)
		o.FreeBytesMin = 1 << 20
		first := mustOpen(t, "db", o)
		mustCommit(t, first, "a", "1")
		must(t, errors.Join(engine.Pebble(first.db.Load()).Flush(), first.Close()))
		before := tables()
		free(1)
		s := open(t, o)
		snapshot := s.Snapshot()
		wantError(t, "accepting without room", s.Accepting(), ErrDiskFull)

		free(1000)
		begun := time.Now()
		for range 100 {
			clocktest.Advance(spaceInterval / 10)
			wantSetting(t, s, "a", "1")
		}
		assert.Equal(t, 10*spaceInterval, time.Since(begun), "reads waited")
		wantError(t, "accepting while somebody reads", s.Accepting(), nil)
		mustCommit(t, s, "a", "2")
		require.NoError(t, errors.Join(engine.Pebble(s.db.Load()).Flush(),
			engine.Pebble(s.db.Load()).Compact(t.Context(), []byte{0}, []byte{0xFF, 0xFF, 0xFF}, false)))
		clocktest.Advance(spaceInterval) // tables are removed in the background
		wantSetting(t, s, "a", "2")
		wantSetting(t, snapshot, "a", "1")
		got := tables()
		assert.True(t, len(before) != 0 && slices.Contains(got, before[0]) && len(got) >= 2, "tables while the snapshot is open: got %q, want %q and more", got, before)
		must(t, snapshot.Close())
		clocktest.Advance(2 * spaceInterval)
		got = tables()
		assert.True(t, len(got) == 1 && !slices.Contains(before, got[0]), "tables at the end: got %q, want one and not %q", got, before)
	})
}

// TestAStoreWithASnapshotOfBeforeCloses only when that is closed.
func TestAStoreWithASnapshotOfBeforeCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		closeStore(t, small(fs))
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 20})
		o := small(fs)
		o.FreeBytesMin = 1 << 20
		s := mustOpen(t, "db", o)
		snapshot := s.Snapshot()
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1000 << 20})
		clocktest.Advance(2 * spaceInterval)
		mustCommit(t, s, "b", "2")
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatalf("close with a snapshot open: got %v, want it to wait", err)
		default:
		}
		must(t, errors.Join(snapshot.Close(), <-closed))
		wantError(t, "load after close", second(s.Load(key.Setting(nil, "a"))), ErrClosed)
		wantSetting(t, open(t, o), "b", "2")
	})
}

// TestAStoreThatFoundNoRoomCloses without having written anything.
func TestAStoreThatFoundNoRoomCloses(t *testing.T) {
	fs := vfs.NewMem()
	closeStore(t, small(fs))
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 20})
	before := fs.String()
	o := small(fs)
	o.FreeBytesMin = 1
	s := mustOpen(t, "db", o)
	assert.NoError(t, s.Close())
	assert.Equal(t, before, fs.String(), "files")
}
