package persistence

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/internal/disk"
)

func TestOpenCreatesAStoreInAnAbsentOrEmptyDirectory(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "a", "b", "data")
	empty := t.TempDir()
	must(t, os.Chmod(empty, 0o755)) // it is taken away from others
	mounted := t.TempDir()
	must(t, os.Mkdir(filepath.Join(mounted, "lost+found"), 0o700))
	for name, dir := range map[string]string{"absent": absent, "empty": empty, "root of a disk": mounted} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, dir, Options{Shards: 3})
			assert.Equal(t, uint16(3), s.Shards(), "shards")
			assert.False(t, s.OpenedAfterCrash(), "a new store says that it crashed")
			must(t, s.Close())
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("directory: got %v, %v, want mode 0700", info.Mode(), err)
			}
		})
	}
}

// closeStore makes a store with setting a and closes it.
func closeStore(t testing.TB, o Options) {
	t.Helper()
	s := mustOpen(t, "db", o)
	mustCommit(t, s, "a", "1")
	must(t, s.Close())
}

func putFile(t testing.TB, fs vfs.FS, name, content string) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin("db", name), vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write([]byte(content))
	require.NoError(t, err)
	must(t, f.Close())
}

// TestDiskBytesAreThoseOfTheFiles: the size that people read is that of the folder.
func TestDiskBytesAreThoseOfTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	onDisk := func() (size uint64) {
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				size += uint64(info.Size())
			}
			return err
		})
		require.NoError(t, err)
		return size
	}
	assert.GreaterOrEqual(t, s.Metrics().DiskBytes, uint64(1<<20))
	if err := s.Close(); err != nil { // else files come and go
		t.Fatal(err)
	}
	got, want := disk.Bytes(vfs.Default, dir), onDisk()
	assert.True(t, got == want && want != 0, "got %d, want %d", got, want)
}
