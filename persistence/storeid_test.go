package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/file"
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

// TestACrashNeverLeavesAStoreThatDoesNotBelongThere cuts the power at every write
// of a creation, of taking over a store that has lost its id, and of beginning
// anew, and demands that the next start finds its way.
func TestACrashNeverLeavesAStoreThatDoesNotBelongThere(t *testing.T) {
	t.Parallel()
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

// TestCheckStoreIDSaysWhatOpenWould, without a lock: also beside the process that has the
// store open.
func TestCheckStoreIDSaysWhatOpenWould(t *testing.T) {
	home := t.TempDir()
	dir, id, other := filepath.Join(home, "data"), filepath.Join(home, ".store"), filepath.Join(home, ".other")
	assert.NoError(t, CheckStoreID(dir, id), "no store, and none is demanded")
	must(t, Create(filepath.Join(home, "elsewhere"), Options{IDFile: other}))
	s := mustOpen(t, dir, Options{IDFile: id})
	defer func() {
		assert.NoError(t, s.Close())
	}()
	tests := []struct {
		name, dir, file string
		want            error
	}{
		{"they fit", dir, id, nil},
		{"nothing is demanded", dir, filepath.Join(home, "nothing"), nil},
		{"another store", dir, other, ErrOtherStore},
		{"no folder", filepath.Join(home, "nothing"), id, ErrMissing},
		{"a folder with nothing in it", t.TempDir(), id, ErrMissing},
		{"a folder without a store", home, id, ErrOtherStore},
	}
	for _, test := range tests {
		assert.ErrorIs(t, CheckStoreID(test.dir, test.file), test.want, test.name)
	}
	must(t, os.WriteFile(id, []byte("damaged"), 0o600))
	assert.Error(t, CheckStoreID(dir, id), "a damaged file: got no error")
}

func FuzzParseFormat(f *testing.F) {
	folder := disk.Folder{FS: vfs.NewMem()}
	written := func(t testing.TB, shards int, replicas bool) []byte {
		must(t, folder.SetFormat(shards, replicas))
		text, err := file.Read(folder.FS, disk.FormatName)
		must(t, err)
		return text
	}
	f.Add(written(f, 16, false))
	f.Add([]byte("troupe store\n"))
	f.Add([]byte("troupe store\nreleased format 1\nshards 1 and more\nreplicas false\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, file.Seal(data)} {
			must(t, file.Replace(folder.FS, folder.Dir, disk.FormatName, bytes.Clone(data))) // NB: with the race detector Pebble's disk spoils what it has written
			if got, err := folder.Format(); err == nil {
				require.Equal(t, string(data), string(written(t, got.Shards, got.Replicas)), "what parses to %+v is written so", got)
			}
		}
	})
}

func TestAnIDIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := disk.Identity{Folder: disk.Folder{FS: vfs.NewMem()}, File: "id", Own: rapid.StringMatching(`[0-9a-f]{1,40}`).Draw(t, "id")}
		want.Demand(zerolog.Nop())
		got := disk.Identity{Folder: want.Folder, File: want.File}
		require.NoError(t, got.ReadDemand())
		require.Equal(t, want.Own, got.Wanted)
	})
}
