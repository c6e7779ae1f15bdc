// Package table writes tables that a store takes in as they are.
package table

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/file"
)

// BytesMax is about the size of the largest table.
const BytesMax = 64 << 20

// Writer writes rows, which come in the order of their keys, into tables in a folder. It belongs to one goroutine.
type Writer struct {
	FS        vfs.FS
	Dir, Name string              // Name begins those of the files
	Begin     func(vfs.File) Rows // Begin begins a table in a file

	Paths []string // of all tables so far
	table Rows     // nil between two tables
	bytes int64    // of the table being written
}

// Rows is a *sstable.Writer.
type Rows interface {
	Set(key, value []byte) error
	Close() error
}

// Set adds a row.
func (w *Writer) Set(k, value []byte) error {
	if w.table == nil {
		// NB: the name has the suffix of files that the opening of a store removes.
		path := w.FS.PathJoin(w.Dir, fmt.Sprintf("%s-%d%s", w.Name, len(w.Paths), file.TmpSuffix))
		f, err := w.FS.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		w.Paths = append(w.Paths, path)
		w.table, w.bytes = w.Begin(f), 0
	}
	if err := w.table.Set(k, value); err != nil {
		return err
	}
	if w.bytes += int64(len(k) + len(value)); w.bytes > BytesMax {
		return w.End()
	}
	return nil
}

// End ends a table; the next row begins another one.
func (w *Writer) End() error {
	table := w.table
	w.table = nil
	if table == nil {
		return nil
	}
	return table.Close()
}

// Remove removes the files, after End.
func (w *Writer) Remove() {
	for _, path := range w.Paths {
		_ = w.FS.Remove(path) // the opening of the store removes what stays
	}
	w.Paths = nil
}
