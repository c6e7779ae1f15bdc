// Package folder makes what happens to folders of the operating system durable. The store itself goes through a virtual
// file system (persistence/internal/file); this is for what stands beside it, such as backups and exports.
package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Sync makes the entries of a folder durable.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Make makes a folder, and what is missing above it, durably.
func Make(dir string, mode fs.FileMode) error {
	above := filepath.Dir(dir)
	if _, err := os.Stat(dir); err == nil || above == dir {
		return err
	}
	if err := Make(above, mode); err != nil {
		return err
	}
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return Sync(above)
}
