package integrity

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/persistence/internal/file"
)

// fataler is a test, or a run of one by rapid.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func must(t fataler, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// manifestOf is a MANIFEST made by Pebble's own writer, with the offset behind
// each record.
func manifestOf(t fataler, records ...[]byte) (file []byte, ends []int) {
	t.Helper()
	var b bytes.Buffer
	w := record.NewWriter(&b)
	for _, r := range records {
		if _, err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
		must(t, w.Flush())
		ends = append(ends, b.Len())
	}
	return b.Bytes(), ends
}

// edit is a version edit with a log number and some bytes of other content.
func edit(minLog uint64, filler int) []byte {
	b := binary.AppendUvarint(nil, 1) // comparer
	b = append(binary.AppendUvarint(b, 7), "leveldb"...)
	b = binary.AppendUvarint(binary.AppendUvarint(b, 2), minLog)
	b = append(b, 6)
	return append(b, bytes.Repeat([]byte{0xA5}, filler)...)
}

func TestAManifestIsReadToItsLastWholeRecord(t *testing.T) {
	file, ends := manifestOf(t, edit(3, 10), edit(5, 70_000), []byte{4, 1}, edit(9, 10))
	for i, want := range []struct {
		end    int
		minLog uint64
	}{{ends[0], 3}, {ends[1], 5}, {ends[2], 5}, {ends[3], 9}} {
		got := scanManifest(file[:ends[i]], 0)
		assert.True(t, got.end == want.end && got.minLog == want.minLog && got.hole == -1 && got.later == -1, "%v %v %v %v", i, got, want.end, want.minLog)
	}
	// From the middle, as the recorder reads it: the slice begins at a block.
	from := ends[0]
	got := scanManifest(file, from)
	assert.True(t, got.end == len(file) && got.minLog == 9, "from %d: got %+v, want end %d and log 9", from, got, len(file))
}

func TestATornManifestRecordIsNoDamage(t *testing.T) {
	file, ends := manifestOf(t, edit(3, 10), edit(5, 70_000)) // the second in three blocks
	for name, tear := range map[string]func(f []byte) []byte{
		"cut within the record":            func(f []byte) []byte { return f[:ends[0]+1000] },
		"cut within a header":              func(f []byte) []byte { return f[:ends[0]+3] },
		"first block lost, the rest there": func(f []byte) []byte { clear(f[ends[0]:blockBytes]); return f },
		"second block lost":                func(f []byte) []byte { clear(f[blockBytes : 2*blockBytes]); return f },
		"last block lost":                  func(f []byte) []byte { clear(f[2*blockBytes:]); return f },
	} {
		got := scanManifest(tear(bytes.Clone(file)), 0)
		if got.end != ends[0] || got.later != -1 || got.minLog != 3 {
			t.Errorf("%s: got %+v, want end %d and no later record", name, got, ends[0])
		}
	}
}

// TestAManifestWithAHoleIsDamaged: Pebble would open it (persistence/PROMISES.md,
// "F3").
func TestAManifestWithAHoleIsDamaged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records [][]byte
		for range rapid.IntRange(2, 6).Draw(t, "records") {
			records = append(records, edit(rapid.Uint64Range(1, 1000).Draw(t, "log"), rapid.IntRange(0, 40_000).Draw(t, "size")))
		}
		var b bytes.Buffer
		w := record.NewWriter(&b)
		var last int // where the last record begins
		for _, r := range records {
			last = b.Len()
			_, err := w.WriteRecord(r)
			require.NoError(t, err)
			must(t, w.Flush())
		}
		file := b.Bytes()
		off, bit := rapid.IntRange(0, last-1).Draw(t, "offset"), rapid.IntRange(0, 7).Draw(t, "bit")
		padding := blockEnd(off, len(file))-off < manifestHeaderBytes && len(bytes.Trim(file[off:blockEnd(off, len(file))], "\x00")) == 0
		file[off] ^= 1 << bit
		got := scanManifest(file, 0)
		require.False(t, got.later < 0 && !padding, "bit %d of byte %d of %d flipped: got %+v, want a later record", bit, off, len(file), got)
	})
}

// pebbleEnds reads file with Pebble's own reader and returns the offset behind each
// record that it takes for whole.
func pebbleEnds(file []byte, log bool) (ends []int) {
	r := record.NewReader(bytes.NewReader(file), 0)
	if log {
		r = record.NewReader(bytes.NewReader(file), 1)
	}
	for {
		chunks, err := r.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, chunks)
		}
		if err != nil {
			return ends
		}
		ends = append(ends, int(r.Offset()))
	}
}

// What is whole here is replayed by Pebble. The other way around it need not be,
// see the next test.
func TestPebbleReadsEveryRecordThatIsWholeHere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var batches, edits [][]byte
		for n := range rapid.Uint64Range(1, 40).Draw(t, "records") {
			size := rapid.IntRange(0, 3000).Draw(t, "size")
			batches, edits = append(batches, batchOf(n, 1, watermark{}, size)), append(edits, edit(n+1, size))
		}
		log := logOf(t, batches...)
		manifest, _ := manifestOf(t, edits...)
		for _, file := range [][]byte{log, manifest} {
			from := rapid.IntRange(0, len(file)-1).Draw(t, "offset")
			part := file[from:min(len(file), from+rapid.IntRange(1, 20).Draw(t, "length"))]
			switch rapid.IntRange(0, 3).Draw(t, "damage") {
			case 1:
				part[0] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			case 2:
				clear(part)
			case 3:
				clear(file[from:])
			}
		}
		got, want := scanLog(log, 1).end, pebbleEnds(log, true)
		require.False(t, got != 0 && !slices.Contains(want, got), "log: whole to %d, and Pebble's records end at %d", got, want)
		got, want = scanManifest(manifest, 0).end, pebbleEnds(manifest, false)
		require.False(t, got != 0 && !slices.Contains(want, got), "MANIFEST: whole to %d, and Pebble's records end at %d", got, want)
	})
}

// Pebble's reader joins, passes over or ends at each of these without an error.
func TestWhatPebblesReaderPassesOverIsAHole(t *testing.T) {
	toBlockEnd := blockBytes - 12 - manifestHeaderBytes - len(edit(3, 0))
	padded, ends := manifestOf(t, edit(3, toBlockEnd), edit(5, 100), edit(7, 10))
	clear(padded[ends[0]:blockBytes])
	if got := scanManifest(padded, 0); got.end != ends[0] || got.hole != ends[0] || got.later < 0 {
		t.Errorf("a short chunk at a block's end is lost: got %+v, want a hole at %d and a later record", got, ends[0])
	}
	joined, ends := manifestOf(t, edit(3, 10), edit(5, 40_000), edit(7, 10))
	copy(joined[blockBytes:], joined[:ends[0]])
	got := scanManifest(joined, 0)
	assert.True(t, got.end == ends[0] && got.hole == blockBytes && got.later >= 0, "%v %v", got, blockBytes)
	file := logOf(t, batchOf(10, 1, watermark{}, 10), batchOf(11, 1, watermark{}, 10), batchOf(12, 1, watermark{1, 12}, 10))
	second := scanLog(file[:logHeaderBytes+headBytes+2+stampBytes+10], 1).end
	file[second+7] = 2
	if got := scanLog(file, 1); got.clean || got.hole != second || got.stamp != (watermark{1, 12}) {
		t.Errorf("a chunk has the next log's number: got %+v, want a hole at %d and the stamp behind it", got, second)
	}
}

// The number that Pebble takes for the oldest live log: a flush begins a new log.
func TestTheOldestLiveLogIsReadFromPebblesManifest(t *testing.T) {
	fs := vfs.NewMem()
	db, err := pebble.Open("db", &pebble.Options{FS: fs})
	must(t, err)
	for range 3 {
		must(t, errors.Join(db.Set([]byte("a"), []byte("1"), pebble.Sync), db.Flush()))
		desc, err := pebble.Peek("db", fs)
		must(t, err)
		data, err := file.Read(fs, desc.ManifestFilename)
		must(t, err)
		logs, err := listLogs(fs, "db")
		must(t, err)
		assert.Equal(t, logs[len(logs)-1], scanManifest(data, 0).minLog, "got log")
	}
	must(t, db.Close())
}

// logOf is log file 1 made by Pebble's own writer, of records like ours.
func logOf(t fataler, records ...[]byte) []byte {
	t.Helper()
	f := vfs.NewMem()
	out, err := f.Create("log", vfs.WriteCategoryUnspecified)
	must(t, err)
	w := record.NewLogWriter(out, 1, record.LogWriterConfig{
		WriteWALSyncOffsets: func() bool { return true },
	})
	for _, r := range records {
		if _, err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.Close())
	data, err := file.Read(f, "log")
	must(t, err)
	return data
}

// batchOf is a record of n operations at seq whose stamp is w.
func batchOf(seq uint64, n uint32, w watermark, filler int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, seq)
	b = binary.LittleEndian.AppendUint32(b, n)
	b = append(b, stampKind, stampBytes)
	b = append(b, make([]byte, stampBytes)...)
	putStamp(b[stampOffset:], w)
	return append(b, bytes.Repeat([]byte{0x5A}, filler)...)
}

func TestALogIsReadToItsEnd(t *testing.T) {
	file := logOf(t, batchOf(10, 2, watermark{}, 100), batchOf(12, 3, watermark{}, 50_000), batchOf(15, 1, watermark{}, 10))
	got := scanLog(file, 1)
	assert.True(t, got.clean && got.seq == 16 && got.hole == -1, "got %+v, want a clean end behind sequence 16", got)
	got = scanLog(file[:len(file)-trailerBytes], 1)
	assert.True(t, !got.clean && got.seq == 16 && got.end == len(file)-trailerBytes, "without its trailer: got %+v, want the same records and no clean end", got)
	got = scanLog(file, 2)
	assert.True(t, !got.clean && got.hole == 0 && got.seq == 0 && got.stamp == (watermark{}), "as another log: got %+v, want nothing", got)
	got = scanLog(append(bytes.Clone(file[:300]), make([]byte, 100_000)...), 1)
	assert.True(t, !got.clean && got.seq == 12, "with zeros behind: got %+v, want the first record", got)
}

// TestAStampBehindAHoleTellsWhatStoodThere holds what follows of
// persistence/PROMISES.md, "F2".
func TestAStampBehindAHoleTellsWhatStoodThere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// Each record's stamp says that everything up to three records before it was
		// durable.
		const records = 12
		var all [][]byte
		for n := range uint64(records) {
			w := watermark{}
			if n >= 3 {
				w = watermark{log: 1, seq: (n - 2) * 10}
			}
			all = append(all, batchOf(n*10, 10, w, rapid.IntRange(0, 20_000).Draw(rt, "size")))
		}
		file := logOf(t, all...)
		off, bit := rapid.IntRange(0, len(file)-1).Draw(rt, "offset"), rapid.IntRange(0, 7).Draw(rt, "bit")
		file[off] ^= 1 << bit
		got := scanLog(file, 1)
		fault := checkLogEnd("000001.log", got, got.seq, 1, watermark{})
		lost := records - int(got.seq)/10
		require.False(rt, lost > 3 && !errors.Is(fault, ErrDamaged), "bit %d of byte %d: %d records lost and no fault; %+v", bit, off, lost, got)
		require.False(rt, lost == 0 && fault != nil, "bit %d of byte %d: nothing lost, got %v", bit, off, fault)
	})
}

// TestAStampMayStandInTwoChunks lets a block end within the last record's head, at every byte of it.
func TestAStampMayStandInTwoChunks(t *testing.T) {
	for before := range stampOffset + stampBytes {
		first, damaged := batchOf(0, 10, watermark{}, 10), batchOf(10, 10, watermark{}, 10)
		filler := blockBytes - 4*logHeaderBytes - 3*len(first) - before + 10
		file := logOf(t, first, damaged, batchOf(20, 10, watermark{}, filler), batchOf(30, 10, watermark{log: 1, seq: 20}, 0))
		c, ok := logChunk(file, blockBytes-before-logHeaderBytes, 1)
		require.True(t, ok && c.kind == firstChunk && len(c.payload) == before, "%d bytes of the last record stand before the block's end", before)
		file[2*logHeaderBytes+len(first)] ^= 1
		got := scanLog(file, 1)
		assert.True(t, got.seq == 10 && got.stamp == watermark{log: 1, seq: 20}, "%d bytes before the block's end: %+v", before, got)
	}
}

// TestAWatermarkCountsOnlyWhileItsLogIsLive: a sequence number alone shows no hole
// (persistence/PROMISES.md, "F4").
func TestAWatermarkCountsOnlyWhileItsLogIsLive(t *testing.T) {
	hole := logScan{end: 100, hole: 100}
	for name, c := range map[string]struct {
		scan   logScan
		seq    uint64
		minLog uint64
		was    watermark // of the checkpoint
		want   error
	}{
		"no watermark":                              {hole, 50, 7, watermark{}, nil},
		"watermark of what is there":                {hole, 50, 7, watermark{7, 50}, nil},
		"watermark of more":                         {hole, 50, 7, watermark{7, 51}, ErrDamaged},
		"watermark of more in a later log":          {hole, 50, 7, watermark{9, 51}, ErrDamaged},
		"watermark of more that may be in tables":   {hole, 50, 7, watermark{6, 51}, nil},
		"stamp of more":                             {logScan{end: 100, hole: 100, stamp: watermark{7, 51}}, 50, 7, watermark{}, ErrDamaged},
		"stamp of more that may be in tables":       {logScan{end: 100, hole: 100, stamp: watermark{6, 51}}, 50, 7, watermark{}, nil},
		"sync offset behind the hole":               {logScan{end: 100, hole: 100, synced: 101}, 50, 7, watermark{}, ErrDamaged},
		"sync offset before the hole":               {logScan{end: 100, hole: 100, synced: 100}, 50, 7, watermark{}, nil},
		"no hole, and the checkpoint knows of more": {logScan{end: 100, hole: -1}, 50, 7, watermark{7, 51}, ErrDamaged},
		"nothing recovered, and nothing was live":   {logScan{hole: 0}, 0, 7, watermark{6, 40}, nil},
	} {
		got := checkLogEnd("000007.log", c.scan, c.seq, c.minLog, c.was)
		assert.True(t, errors.Is(got, c.want) && (got == nil) == (c.want == nil), "%s: got %v, want %v", name, got, c.want)
	}
}

func FuzzScanLog(f *testing.F) {
	f.Add(logOf(f, batchOf(1, 1, watermark{1, 1}, 4), batchOf(2, 1, watermark{}, 30)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		got := scanLog(file, 1)
		assert.True(t, got.end <= len(file) && got.hole < len(file) && (!got.clean || got.hole < 0) && (got.hole < 0 || got.hole >= got.end), "%v %v", got, len(file))
	})
}

func FuzzScanManifest(f *testing.F) {
	file, _ := manifestOf(f, edit(3, 10), edit(5, 40))
	f.Add(file)
	f.Add(edit(3, 1))
	f.Fuzz(func(t *testing.T, file []byte) {
		got := scanManifest(file, 0)
		assert.True(t, got.end <= len(file) && got.hole < len(file) && (got.later < 0 || got.later > got.hole), "got %+v for a file of %d bytes", got, len(file))
		minUnflushedLog(file)
	})
}
