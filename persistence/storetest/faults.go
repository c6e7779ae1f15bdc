package storetest

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Faults is errorfs.Wrap also for logs that are used once more: what errorfs.FS.ReuseForWrite of Pebble v2.1.7 returns
// never asks the injector.
func Faults(fs vfs.FS, inject errorfs.Injector) vfs.FS { return faultyFS{errorfs.Wrap(fs, inject)} }

type faultyFS struct{ *errorfs.FS }

func (f faultyFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Rename(from, to); err != nil {
		return nil, err
	}
	return f.OpenReadWrite(to, c)
}
