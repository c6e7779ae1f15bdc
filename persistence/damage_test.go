package persistence_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// damage is one way to harm the files of a store.
type damage struct {
	kind string // "flip", "zero", "truncate", "remove", "swap", "stale"
	file string
	// with says where, for messages: an offset, a length or another file's name.
	with string
	// erasesEnd says that no whole record is left behind the damaged place: no later
	// one can tell that there was one.
	erasesEnd bool
	do        func(fs *vfs.MemFS)
}

func (d damage) String() string { return fmt.Sprintf("%s %s %s", d.kind, d.file, d.with) }

// fileType names the sort of file, for the report.
func fileType(name string) string {
	switch {
	case strings.HasSuffix(name, ".log"):
		return "log"
	case strings.HasSuffix(name, ".sst"):
		return "table"
	case strings.HasPrefix(name, "marker."):
		return "marker"
	}
	kind, _, _ := strings.Cut(name, "-")
	return kind
}

const dir = "db"

// damages lists what to do to the files of image: per file, n random flips of
// one bit and n zeroed blocks, truncations, its removal, a change of places with
// each other file of its type, and the same file as it was in older.
func damages(image, older *vfs.MemFS, n int, rng *rand.Rand) (all []damage) {
	names := must(image.List(dir))
	slices.Sort(names)
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		content := fileBytes(image, name)
		last, used := inUse(image, name, content)
		all = append(all, inFile(name, content, last, used, n, rng)...)
		all = append(all, damage{kind: "remove", file: name, do: func(fs *vfs.MemFS) { must(0, fs.Remove(fs.PathJoin(dir, name))) }})
		for _, other := range names {
			if other > name && fileType(other) == fileType(name) && fileType(name) != "marker" {
				all = append(all, swap(name, other))
			}
		}
		if _, err := older.Stat(older.PathJoin(dir, name)); err == nil {
			if old := fileBytes(older, name); string(old) != string(content) {
				all = append(all, damage{kind: "stale", file: name, do: replace(name, old)})
			}
		}
	}
	return all
}

// inUse returns how much of a file is in use, and where in that the last record begins.
// Behind it a log has zeros, or what the file held when it was an earlier log. Other
// files are in use as a whole, and their end is a record.
func inUse(fs *vfs.MemFS, name string, content []byte) (last, used int) {
	number, _, ok := wal.ParseLogFilename(name)
	if !ok {
		return len(content), len(content)
	}
	log, _ := must(wal.Scan(wal.Dir{FS: fs, Dirname: dir})).Get(number)
	for r := log.OpenForRead(); ; {
		_, at, err := r.NextRecord()
		if err != nil { // what stands there is not of this log
			return last, must(int(at.Physical), r.Close())
		}
		last = int(at.Physical)
	}
}

// inFile lists the damages within one file, whose first used bytes are in use. Its last
// record begins at last.
func inFile(name string, content []byte, last, used, n int, rng *rand.Rand) []damage {
	var all []damage
	size := len(content)
	if size == 0 {
		return nil
	}
	used = max(used, 1)
	// place picks an offset, mostly one that is in use.
	place := func() int {
		if rng.IntN(8) == 0 {
			return rng.IntN(size)
		}
		return rng.IntN(used)
	}
	for range n {
		off, bit := place(), rng.IntN(8)
		flipped := slices.Clone(content)
		flipped[off] ^= 1 << bit
		all = append(all, damage{
			kind: "flip", file: name, with: fmt.Sprintf("bit %d of byte %d", bit, off), do: replace(name, flipped),
		})
	}
	for range max(n/4, 1) {
		from := place() &^ 4095
		zeroed := slices.Clone(content)
		clear(zeroed[from:min(from+4096, size)])
		if string(zeroed) != string(content) {
			all = append(all, damage{
				kind: "zero", file: name, with: fmt.Sprint("from ", from),
				erasesEnd: from+4096 > last, do: replace(name, zeroed),
			})
		}
	}
	lengths := []int{0, size - 1, used - 1, used / 2, used &^ 4095 / 2}
	for range n / 4 {
		lengths = append(lengths, place())
	}
	for _, length := range lengths {
		all = append(all, damage{
			kind: "truncate", file: name, with: fmt.Sprint("to ", length), do: replace(name, content[:length]),
		})
	}
	return all
}

func swap(a, b string) damage {
	return damage{kind: "swap", file: a, with: b, do: func(fs *vfs.MemFS) {
		inA, inB := fileBytes(fs, a), fileBytes(fs, b)
		replace(a, inB)(fs)
		replace(b, inA)(fs)
	}}
}

// replace gives a file another content.
func replace(name string, content []byte) func(fs *vfs.MemFS) {
	return func(fs *vfs.MemFS) {
		f := must(fs.Create(fs.PathJoin(dir, name), vfs.WriteCategoryUnspecified))
		must(f.Write(slices.Clone(content)))
		must(0, f.Close())
	}
}

func fileBytes(fs *vfs.MemFS, name string) []byte {
	f := must(fs.Open(fs.PathJoin(dir, name)))
	defer func() { _ = f.Close() }() // read or synced before; nothing is lost with it
	return must(io.ReadAll(f))
}

// fingerprint describes all files, to see whether any was changed.
func fingerprint(fs *vfs.MemFS) string {
	names := must(fs.List(dir))
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		content := fileBytes(fs, name)
		fmt.Fprintf(&b, "%s %d %x\n", name, len(content), sha256.Sum256(content))
	}
	return b.String()
}
