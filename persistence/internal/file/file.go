// Package file reads and replaces the small files of a store: FORMAT, ID and the
// integrity checkpoint. Each is replaced as a whole, so that after a crash it is the
// old or the new one, and is a text that ends with a checksum of what is before it.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TmpSuffix ends the name of a file that is to replace the one without it. What a crash leaves of those can be removed.
const TmpSuffix = ".tmp"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Read returns all bytes of a file.
func Read(fsys vfs.FS, path string) (data []byte, err error) {
	f, err := fsys.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data = make([]byte, info.Size())
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // shorter than Stat said: the caller sees what there is
	}
	return data[:n], err
}

// Replace replaces a file in dir: after a crash it is the old or the new one, and
// once Replace has returned nil, the new one. A file system may change data.
func Replace(fsys vfs.FS, dir, name string, data []byte) error {
	tmp := fsys.PathJoin(dir, name+TmpSuffix)
	f, err := fsys.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, fsys.PathJoin(dir, name)); err != nil {
		return err
	}
	return SyncDir(fsys, dir)
}

// SyncDir makes the entries of a directory durable.
func SyncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Seal appends the last line of a text: the checksum of all before it.
func Seal(text []byte) []byte {
	return fmt.Appendf(text, "crc %08x\n", crc32.Checksum(text, castagnoli))
}

// Unseal returns the text in front of the checksum, and false when it is not the text that was sealed.
func Unseal(data []byte) ([]byte, bool) {
	i := bytes.LastIndex(data, []byte("crc "))
	if i < 0 || !bytes.Equal(Seal(bytes.Clone(data[:i])), data) {
		return nil, false
	}
	return data[:i], true
}
