package persistence

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// TestDiskBytesAreThoseOfTheFiles: the size that people read is that of the folder.
func TestDiskBytesAreThoseOfTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
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
	before := onDisk()
	if got := s.Metrics().DiskBytes; got < before || got > onDisk() || before < 1<<20 {
		t.Errorf("got %d, want %d: the logs are laid out ahead", got, before)
	}
}
