package persistence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// liveTable is one table of the present version.
type liveTable struct {
	number uint64
	size   int64
	info   pebble.SSTableInfo
}

// liveTables lists the tables of the present version, newest first.
func liveTables(db *pebble.DB) ([]liveTable, error) {
	levels, err := db.SSTables()
	if err != nil {
		return nil, err
	}
	var tables []liveTable
	for _, level := range levels {
		for _, info := range level {
			tables = append(tables, liveTable{number: uint64(info.BackingSSTNum), size: int64(info.Size), info: info})
		}
	}
	slices.SortFunc(tables, func(a, b liveTable) int { return cmp.Compare(b.number, a.number) })
	return tables, nil
}

// sumTable reads the end of a table.
func sumTable(fsys vfs.FS, dir string, number uint64) (tableSum, error) {
	f, err := fsys.Open(fsys.PathJoin(dir, tableName(number)))
	if err != nil {
		return tableSum{}, err
	}
	defer func() { _ = f.Close() }() // read or synced before; nothing is lost with it
	info, err := f.Stat()
	if err != nil {
		return tableSum{}, err
	}
	tail := make([]byte, min(info.Size(), tailBytes))
	if n, err := f.ReadAt(tail, info.Size()-int64(len(tail))); n < len(tail) {
		return tableSum{}, err
	}
	return tableSum{number: number, size: info.Size(), tail: crc32.Checksum(tail, castagnoli)}, nil
}

// checkTable reads every block of a table and compares its first and last key
// with what the MANIFEST says: that is how a table in the place of another is
// found, whose checksums are all right.
func checkTable(fsys vfs.FS, dir string, t liveTable, o sstable.ReaderOptions) (err error) {
	defer func() {
		if r := recover(); r != nil { // a damaged footer can lead anywhere
			err = damagedFile(tableName(t.number), fmt.Sprint(r))
		}
	}()
	f, err := fsys.Open(fsys.PathJoin(dir, tableName(t.number)))
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, o)
	if err != nil {
		return errors.Join(damagedFile(tableName(t.number), err.Error()), readable.Close())
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.ValidateBlockChecksums(); err != nil {
		return damagedFile(tableName(t.number), err.Error())
	}
	return checkBounds(r, t)
}

func checkBounds(r *sstable.Reader, t liveTable) error {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return damagedFile(tableName(t.number), err.Error())
	}
	defer func() { _ = it.Close() }() // what it read was checked
	first := it.First()
	if first == nil {
		return damagedFile(tableName(t.number), "it has no keys")
	}
	if !slices.Equal(first.K.UserKey, t.info.Smallest.UserKey) {
		return damagedFile(tableName(t.number), "its first key is not the one that the MANIFEST has")
	}
	last := it.Last()
	if last == nil || !slices.Equal(last.K.UserKey, t.info.Largest.UserKey) {
		return damagedFile(tableName(t.number), "its last key is not the one that the MANIFEST has")
	}
	return nil
}
