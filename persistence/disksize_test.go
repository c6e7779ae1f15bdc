package persistence

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/disk"
)

// TestDiskBytesAreThoseOfTheFiles: the size that people read is that of the folder.
func TestDiskBytesAreThoseOfTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		return size
	}
	if got := s.Metrics().DiskBytes; got < 1<<20 {
		t.Errorf("got %d: the logs are laid out ahead", got)
	}
	if err := s.Close(); err != nil { // else files come and go
		t.Fatal(err)
	}
	if got, want := disk.Bytes(vfs.Default, dir), onDisk(); got != want || want == 0 {
		t.Errorf("got %d, want %d", got, want)
	}
}
