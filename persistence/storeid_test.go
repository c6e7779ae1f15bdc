package persistence

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/file"
	"troupe/persistence/key"
)

// belonging are options for a store in memory that a file says belongs there.
func belonging(fs vfs.FS) Options {
	o := small(fs)
	o.IDFile = "store-id"
	return o
}

func idFile(t testing.TB, fs vfs.FS, path string) string {
	t.Helper()
	i := disk.Identity{Folder: disk.Folder{FS: fs, Dir: "db"}, File: path}
	must(t, i.ReadDemand())
	return i.Wanted
}

// wantBelonging demands that the store is the one that its file outside names.
func wantBelonging(t testing.TB, when string, fs vfs.FS) {
	t.Helper()
	assert.Equal(t, idFile(t, fs, belonging(fs).IDFile), idFile(t, fs, "db/"+disk.IDName), "%s: the store", when)
}

func TestAStoreThatBelongsThereIsDemanded(t *testing.T) {
	fs := vfs.NewMem()
	o := belonging(fs)
	closeStore(t, o)
	wantBelonging(t, "made", fs)
	s := open(t, o) // closed only at the end, which the renaming below does not mind
	wantSetting(t, s, "a", "1")
	must(t, s.Close())

	must(t, fs.Rename("db", "away"))
	wantError(t, "open of a directory that is gone", second(Open("db", o)), ErrMissing)
	_, err := fs.Stat("db")
	assert.Error(t, err, "a directory was made")
	must(t, fs.MkdirAll("db", 0o700))
	wantError(t, "open of a place where nothing is mounted", second(Open("db", o)), ErrMissing)
	names, err := fs.List("db")
	assert.True(t, err == nil && len(names) == 0, "files in it: got %q, %v, want none", names, err)

	// Begin anew on purpose, and bring the old one back.
	must(t, Create("db", o))
	wantError(t, "create where a store is", Create("db", o), ErrExists)
	again := mustOpen(t, "db", o)
	_, err = again.Load(key.Setting(nil, "a"))
	assert.ErrorIs(t, err, ErrNotFound, "setting of the old store: got error")
	must(t, again.Close())
	must(t, errors.Join(fs.Rename("db", "new"), fs.Rename("away", "db")))
	wantError(t, "open of the old store", second(Open("db", o)), ErrOtherStore)
	wantError(t, "create over the old store", Create("db", o), ErrExists)
}

func TestAStoreThatHasLostItsIDIsTakenOver(t *testing.T) {
	fs := vfs.NewMem()
	closeStore(t, small(fs))
	must(t, fs.Remove("db/"+disk.IDName))
	o := belonging(fs)
	s := open(t, o)
	wantSetting(t, s, "a", "1")
	wantBelonging(t, "taken over", fs)
}

func TestWhatSaysWhichStoreBelongsThereMustBeWhole(t *testing.T) {
	for name, c := range map[string]struct {
		path, content, want string
	}{
		"empty":                {"store-id", "", "store-id: it is empty"},
		"cut":                  {"store-id", "troupe store id\n", "store-id: its checksum"},
		"another file":         {"store-id", string(file.Seal([]byte("troupe store\nformat 1\n"))), "store-id: it does not hold"},
		"altered in the store": {"db/" + disk.IDName, "TROUPE STORE ID\nID AB\nCRC 00000000\n", "store is damaged: " + disk.IDName},
		"none in the store":    {"db/" + disk.IDName, "-", "has no id"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			o := belonging(fs)
			closeStore(t, o)
			if c.content == "-" {
				must(t, fs.Remove(c.path))
			} else {
				putFile(t, fs, "../"+c.path, c.content)
			}
			before := fs.String()
			s, err := Open("db", o)
			assert.True(t, err != nil && strings.Contains(err.Error(), c.want), "open: got %v, %v, want %q", s, err, c.want)
			assert.Equal(t, before, fs.String(), "files")
		})
	}
}

func TestAStoreWorksWhereItsIDCannotBeKept(t *testing.T) {
	f := &faultyFS{suffix: "store-id" + file.TmpSuffix, kinds: []errorfs.OpKind{errorfs.OpCreate}}
	f.fail(&os.PathError{Op: "create", Path: "store-id", Err: syscall.EROFS})
	fs := vfs.NewMem()
	o := belonging(errorfs.Wrap(fs, f))
	var log strings.Builder
	o.Log = zerolog.New(&log)
	closeStore(t, o)
	assert.Contains(t, log.String(), "cannot be kept there", "log")
	f.fault.Store(nil)
	s := open(t, o)
	wantSetting(t, s, "a", "1")
	wantBelonging(t, "written at last", fs)
}

// TestACrashNeverLeavesAStoreThatDoesNotBelongThere cuts the power at every write
// of a creation, of taking over a store that has lost its id, and of beginning
// anew, and demands that the next start finds its way.
func TestACrashNeverLeavesAStoreThatDoesNotBelongThere(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, fs *vfs.MemFS)
		do     func(o Options) error
	}{
		"creation": {func(*testing.T, *vfs.MemFS) {}, openAndClose},
		"lost id": {func(t *testing.T, fs *vfs.MemFS) {
			closeStore(t, small(fs))
			must(t, errors.Join(fs.Remove("db/"+disk.IDName), file.SyncDir(fs, "db")))
		}, openAndClose},
		"begin anew": {func(t *testing.T, fs *vfs.MemFS) {
			closeStore(t, belonging(fs))
			must(t, errors.Join(fs.RemoveAll("db"), file.SyncDir(fs, "")))
		}, func(o Options) error { return Create("db", o) }},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			c.before(t, fs)
			var mu sync.Mutex
			var crashes []*vfs.MemFS // what each write would leave if it were the last thing
			power := errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					mu.Lock()
					defer mu.Unlock()
					crashes = append(crashes, fs.CrashClone(vfs.CrashCloneCfg{}))
				}
				return nil
			})
			must(t, c.do(belonging(errorfs.Wrap(fs, power))))
			for n, left := range crashes {
				if testing.Short() && n%8 != 0 {
					continue
				}
				err := openAndClose(belonging(left))
				if errors.Is(err, ErrMissing) && name == "begin anew" {
					err = Create("db", belonging(left)) // nothing had been done yet
				}
				require.NoError(t, err, "after a crash at write %d", n+1)
				wantBelonging(t, fmt.Sprintf("after a crash at write %d", n+1), left)
			}
			assert.GreaterOrEqual(t, len(crashes), 10, "only")
		})
	}
}

func openAndClose(o Options) error {
	s, err := Open("db", o)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return s.Close()
}
