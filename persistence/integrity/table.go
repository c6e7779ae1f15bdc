package integrity

import (
	"bytes"
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

// Table is one table of a database's present version.
type Table struct {
	Bytes  int64
	number uint64
	// smallest and largest are the bounds that the MANIFEST has.
	smallest, largest []byte
	// part: the database uses a part of the file, to which the bounds belong.
	part bool
}

// Name is the name of the table's file.
func (t Table) Name() string { return tableName(t.number) }

// Bounds are the first and the last key, as the MANIFEST has them.
func (t Table) Bounds() (first, last []byte) { return t.smallest, t.largest }

func tableName(number uint64) string { return fmt.Sprintf("%06d.sst", number) }

// Tables lists the tables of the present version, newest first.
func Tables(db *pebble.DB) ([]Table, error) {
	levels, err := db.SSTables()
	if err != nil {
		return nil, err
	}
	var tables []Table
	for _, level := range levels {
		for _, info := range level {
			tables = append(tables, Table{
				Bytes: int64(info.Size), number: uint64(info.BackingSSTNum),
				smallest: info.Smallest.UserKey, largest: info.Largest.UserKey, part: info.Virtual,
			})
		}
	}
	slices.SortFunc(tables, func(a, b Table) int { return cmp.Compare(b.number, a.number) })
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

// CheckTable reads every block of the table, whose file is in dir, and compares its first and last key with what the
// MANIFEST says: that is how a table in the place of another is found, whose checksums are all right. It returns
// ErrDamaged, or the file system's own error.
func CheckTable(t Table, fsys vfs.FS, dir string, o sstable.ReaderOptions) (err error) {
	defer func() {
		if r := recover(); r != nil { // a damaged footer can lead anywhere
			err = Damaged(t.Name(), fmt.Sprint(r))
		}
	}()
	f, err := fsys.Open(fsys.PathJoin(dir, t.Name()))
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, o)
	if err != nil {
		return errors.Join(Damaged(t.Name(), err.Error()), readable.Close())
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.ValidateBlockChecksums(); err != nil {
		return Damaged(t.Name(), err.Error())
	}
	if t.smallest == nil {
		return nil
	}
	return checkBounds(t, r)
}

// TableFiles lists the tables in a folder, whether or not a MANIFEST names them: CheckTable does not compare their bounds.
func TableFiles(fsys vfs.FS, dir string) (tables []Table, err error) {
	names, err := fsys.List(dir)
	for _, name := range names {
		var number uint64
		if n, err := fmt.Sscanf(name, "%d.sst", &number); n == 1 && err == nil && tableName(number) == name {
			tables = append(tables, Table{number: number})
		}
	}
	return tables, err
}

// checkBounds compares the first and the last key with those in the MANIFEST.
func checkBounds(t Table, r *sstable.Reader) error {
	first, last, err := bounds(r)
	switch {
	case err != nil:
		return Damaged(t.Name(), err.Error())
	case first == nil:
		return Damaged(t.Name(), "it has no keys")
	case t.part && bytes.Compare(first, t.smallest) <= 0 && bytes.Compare(last, t.largest) >= 0:
		return nil
	case t.part:
		return Damaged(t.Name(), "it does not have the part that the MANIFEST says")
	case !bytes.Equal(first, t.smallest):
		return Damaged(t.Name(), "its first key is not the one that the MANIFEST has")
	case !bytes.Equal(last, t.largest):
		return Damaged(t.Name(), "its last key is not the one that the MANIFEST has")
	}
	return nil
}

// bounds returns the first and the last key of a table, counting the ends of ranges that
// it deletes; nil when it has none.
func bounds(r *sstable.Reader) (first, last []byte, err error) {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, nil, err
	}
	if kv := it.First(); kv != nil {
		first = slices.Clone(kv.K.UserKey)
	}
	if kv := it.Last(); kv != nil {
		last = slices.Clone(kv.K.UserKey)
	}
	if err = it.Close(); err != nil {
		return nil, nil, err
	}
	ranges, err := r.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if ranges == nil || err != nil {
		return first, last, err
	}
	defer ranges.Close()
	begin, err := ranges.First()
	if begin != nil && (first == nil || bytes.Compare(begin.Start, first) < 0) {
		first = slices.Clone(begin.Start)
	}
	if err != nil {
		return nil, nil, err
	}
	end, err := ranges.Last()
	if end != nil && bytes.Compare(end.End, last) > 0 {
		last = slices.Clone(end.End)
	}
	return first, last, err
}
