package persistence

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/internal/disk"
)

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
