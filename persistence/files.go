package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// readFile returns all bytes of a file.
func readFile(fsys vfs.FS, path string) (data []byte, err error) {
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

// writeFile replaces a file in dir: after a crash it is the old or the new one,
// and once writeFile has returned, the new one.
func writeFile(fsys vfs.FS, dir, name string, data []byte) error {
	tmp := fsys.PathJoin(dir, name+tmpSuffix)
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
	return syncDir(fsys, dir)
}

const tmpSuffix = ".tmp"

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDir creates dir and what is missing above it, for this user only, and
// makes the new entries durable.
func makeDir(fsys vfs.FS, dir string) error {
	var made []string
	for d := dir; ; d = fsys.PathDir(d) {
		if _, err := fsys.Stat(d); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		made = append(made, d)
		if fsys.PathDir(d) == d {
			break
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range made {
		if err := syncDir(fsys, fsys.PathDir(d)); err != nil {
			return err
		}
	}
	return nil
}

// seal appends the last line of a text file: the checksum of all before it.
func seal(text []byte) []byte {
	return fmt.Appendf(text, "crc %08x\n", crc32.Checksum(text, castagnoli))
}

// unseal returns the text in front of the checksum, and false when it is not
// the text that was sealed.
func unseal(data []byte) ([]byte, bool) {
	i := bytes.LastIndex(data, []byte("crc "))
	if i < 0 || !bytes.Equal(seal(bytes.Clone(data[:i])), data) {
		return nil, false
	}
	return data[:i], true
}

func logName(n uint64) string   { return fmt.Sprintf("%06d.log", n) }
func tableName(n uint64) string { return fmt.Sprintf("%06d.sst", n) }
