package main

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/s2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"troupe/persistence/key"
)

// logForm is a way in which a node of a cluster keeps the log of its groups. The zero value: in rows of the store that has
// their state, 16 MiB for each group, and half of that goes when there is more.
type logForm struct {
	name     string
	trimmed  bool // what is applied goes, 64 KiB at a time
	packed   bool // entries are compressed
	segments bool // in files of its own that all groups share; the state has no log
}

var logForms = []logForm{
	{name: "rows"},
	{name: "rows-trimmed", trimmed: true},
	{name: "rows-packed", trimmed: true, packed: true},
	{name: "segments", segments: true},
	{name: "segments-packed", segments: true, packed: true},
}

// BenchmarkLog is what a node of a cluster writes for an event, on a real directory and without other nodes: an entry in
// the log of a group, for all events that came meanwhile, and their rows when that is durable. persistence/replica/DESIGN.md
// has what follows from it. A run should be long enough for tables to be merged, so of 250,000 events or more:
//
//	go test -run '^$' -bench Log -benchtime 250000x ./bench
func BenchmarkLog(b *testing.B) {
	for _, load := range []struct{ writers, groups int }{{64, 16}, {512, 64}} {
		for _, form := range logForms {
			b.Run(fmt.Sprintf("writers=%d/%s", load.writers, form.name), func(b *testing.B) {
				n := newLogNode(b, form, load.groups)
				n.load(b, load.writers)
				n.close(b)
			})
		}
	}
}

// logNode writes in rounds, as a replica.Host does.
type logNode struct {
	form    logForm
	db      *pebble.DB
	log     *segmentLog // nil: the log is rows
	groups  []*logGroup // changed under mu
	wake    chan struct{}
	syncing chan syncing
	done    sync.WaitGroup
	mu      sync.Mutex
}

type logGroup struct {
	shard   key.Shard
	waiting []*logEvent
	durable []*logEntry // that are not applied
	// What follows belongs to the round.
	last, applied, begin uint64
	sizes                []int // of the entries behind begin
	bytes                int
}

type logEvent struct {
	repr []byte
	done chan struct{}
}

type logEntry struct {
	group  *logGroup
	index  uint64
	events []*logEvent
	data   []byte
}

// syncing is a batch with entries on its way to the disk.
type syncing struct {
	batch   *pebble.Batch
	entries []*logEntry
}

func newLogNode(b *testing.B, form logForm, groups int) *logNode {
	dir := b.TempDir()
	db, err := pebble.Open(filepath.Join(dir, "db"), &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest, MemTableSize: 32 << 20, MemTableStopWritesThreshold: 4,
		L0CompactionThreshold: 16, L0StopWritesThreshold: 64, DisableWAL: form.segments, Logger: silent{zerolog.Nop()},
	})
	require.NoError(b, err)
	n := &logNode{form: form, db: db, wake: make(chan struct{}, 1), syncing: make(chan syncing, 64)}
	for i := range groups {
		n.groups = append(n.groups, &logGroup{shard: key.Shard(i)})
	}
	if form.segments {
		n.log = &segmentLog{node: n, dir: dir}
		n.log.next()
	}
	n.done.Go(func() {
		for s := range n.syncing {
			check(s.batch.SyncWait())
			check(s.batch.Close())
			n.synced(s.entries)
		}
	})
	n.done.Go(func() {
		for range n.wake {
			n.round()
		}
		close(n.syncing)
	})
	return n
}

func (n *logNode) close(b *testing.B) {
	if n.log != nil {
		check(n.log.writer.CloseWithLastQueuedRecord(n.log.newest))
	}
	close(n.wake)
	n.done.Wait()
	require.NoError(b, n.db.Close())
}

// check panics: what it is asked of runs beside the benchmark.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// load has writers send events, each the next one when the one before is applied.
func (n *logNode) load(b *testing.B, writers int) {
	var next atomic.Int64
	var running sync.WaitGroup
	took := make([][]time.Duration, writers)
	begun, written := usedCPU(), n.written()
	b.ResetTimer()
	for w := range writers {
		running.Go(func() {
			e, done := newEvent(b, uint64(w)+1), make(chan struct{}, 1)
			for at := next.Add(1); at <= int64(b.N); at = next.Add(1) {
				sent := time.Now()
				n.send(e, uint64(at), done)
				<-done
				took[w] = append(took[w], time.Since(sent))
			}
		})
	}
	running.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(usedCPU()-begun)/1e3/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(n.written()-written)/float64(b.N), "written-B/op")
	b.ReportMetric(all[len(all)/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(all[len(all)*99/100].Seconds()*1e3, "p99-ms")
}

func usedCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// written is how many bytes went to logs and tables.
func (n *logNode) written() (bytes uint64) {
	m := n.db.Metrics()
	for _, level := range m.Levels {
		bytes += level.TableBytesFlushed + level.TableBytesCompacted
	}
	if n.log != nil {
		return bytes + n.log.bytes.Load()
	}
	return bytes + m.WAL.BytesWritten
}

// send gives the rows of the next event of an instance to its group.
func (n *logNode) send(e *event, number uint64, done chan struct{}) {
	g := n.groups[binary.BigEndian.Uint64(e.id[:])%uint64(len(n.groups))]
	batch := n.db.NewBatch()
	e.rows(g.shard, func(key, value []byte) { _ = batch.Set(key, value, nil) }, func(key []byte) { _ = batch.Delete(key, nil) })
	_ = batch.Set(key.Feed(nil, g.shard, key.FeedPlace(number)), e.entry[:38], nil)
	sent := &logEvent{slices.Clone(batch.Repr()), done}
	_ = batch.Close()
	n.mu.Lock()
	g.waiting = append(g.waiting, sent)
	n.mu.Unlock()
	n.signal()
}

func (n *logNode) signal() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// synced has entries applied in the next round.
func (n *logNode) synced(entries []*logEntry) {
	n.mu.Lock()
	for _, e := range entries {
		e.group.durable = append(e.group.durable, e)
	}
	n.mu.Unlock()
	n.signal()
}

// gather makes entries of what waits, and takes those that are to be applied.
func (n *logNode) gather() (entries, applies []*logEntry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.groups {
		if len(g.waiting) > 0 {
			g.last++
			entries = append(entries, &logEntry{group: g, index: g.last, events: g.waiting})
			g.waiting = nil
		}
		applies = append(applies, g.durable...)
		g.durable = nil
	}
	return entries, applies
}

// round writes logs before states, and answers.
func (n *logNode) round() {
	entries, applies := n.gather()
	if len(entries)+len(applies) == 0 {
		return
	}
	batch := n.db.NewBatch()
	for _, e := range entries {
		for _, event := range e.events {
			e.data = append(binary.AppendUvarint(e.data, uint64(len(event.repr))), event.repr...)
		}
		if n.form.packed {
			e.data = s2.Encode(nil, e.data)
		}
		if n.log == nil {
			n.append(batch, e)
		}
	}
	for _, e := range applies {
		n.apply(batch, e)
	}
	switch {
	case n.log != nil:
		n.log.append(entries)
		check(n.db.Apply(batch, pebble.NoSync))
		check(batch.Close())
	case len(entries) > 0:
		check(n.db.ApplyNoSyncWait(batch, pebble.Sync))
		n.syncing <- syncing{batch, entries}
	default:
		check(n.db.Apply(batch, pebble.NoSync))
		check(batch.Close())
	}
	for _, e := range applies {
		for _, event := range e.events {
			event.done <- struct{}{}
		}
	}
}

func (n *logNode) apply(batch *pebble.Batch, e *logEntry) {
	if n.form.packed {
		_, err := s2.Decode(nil, e.data)
		check(err)
	}
	for _, event := range e.events {
		var part pebble.Batch
		check(part.SetRepr(event.repr))
		check(batch.Apply(&part, nil))
	}
	e.group.applied = e.index
	check(batch.Set(key.ReplicaPrefix(nil, e.group.shard), make([]byte, 32), nil))
}

// append writes an entry as a row, and removes what nobody needs any more.
func (n *logNode) append(batch *pebble.Batch, e *logEntry) {
	row := func(index uint64) []byte {
		return binary.BigEndian.AppendUint64(append(key.ReplicaLogPrefix(nil, e.group.shard), 'l'), index)
	}
	g := e.group
	check(batch.Set(row(e.index), e.data, nil))
	g.sizes, g.bytes = append(g.sizes, len(e.data)), g.bytes+len(e.data)
	most, keep := 16<<20, 8<<20
	if n.form.trimmed {
		most, keep = 64<<10, 0
	}
	if g.bytes <= most {
		return
	}
	drop := 0
	for ; g.bytes > keep && g.begin+uint64(drop) < g.applied; drop++ {
		g.bytes -= g.sizes[drop]
	}
	check(batch.DeleteRange(row(g.begin+1), row(g.begin+uint64(drop)+1), nil))
	g.begin, g.sizes = g.begin+uint64(drop), slices.Clone(g.sizes[drop:])
}

// segmentBytes is about the size of a segment, and segmentsMax how many there are before the first is used again.
const segmentBytes, segmentsMax = 32 << 20, 5

// segmentLog is files in the form of Pebble's own log, with the entries of all groups.
type segmentLog struct {
	node   *logNode
	dir    string
	files  []string
	count  int
	size   int64
	writer *record.LogWriter
	bytes  atomic.Uint64
	newest record.PendingSyncIndex // that was appended

	mu      sync.Mutex
	waiting [][]*logEntry // one for each record that is not synced
	safe    int64
}

// next begins a segment.
func (l *segmentLog) next() {
	l.count++
	name := filepath.Join(l.dir, fmt.Sprintf("%06d.log", l.count))
	var f vfs.File
	var err error
	if len(l.files) < segmentsMax {
		f, err = vfs.Default.Create(name, vfs.WriteCategoryUnspecified)
	} else {
		f, err = vfs.Default.ReuseForWrite(l.files[0], name, vfs.WriteCategoryUnspecified)
		l.files = l.files[1:]
	}
	check(err)
	check(f.Preallocate(0, segmentBytes))
	l.files, l.size = append(l.files, name), 0
	l.writer = record.NewLogWriter(vfs.NewSyncingFile(f, vfs.SyncingFileOptions{NoSyncOnClose: true}), 1, record.LogWriterConfig{
		WALFsyncLatency: prometheus.NewHistogram(prometheus.HistogramOpts{}), WriteWALSyncOffsets: func() bool { return true },
		ExternalSyncQueueCallback: l.synced,
	})
}

func (l *segmentLog) synced(newest record.PendingSyncIndex, err error) {
	check(err)
	l.mu.Lock()
	count := newest.Index - l.safe
	entries := slices.Concat(l.waiting[:count]...)
	l.waiting, l.safe = l.waiting[count:], newest.Index
	l.mu.Unlock()
	l.node.synced(entries)
}

// append writes entries as one record.
func (l *segmentLog) append(entries []*logEntry) {
	if len(entries) == 0 {
		return
	}
	if l.size > segmentBytes {
		check(l.writer.CloseWithLastQueuedRecord(l.newest))
		l.next()
	}
	var row []byte
	for _, e := range entries {
		row = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint16(row, uint16(e.group.shard)), e.index)
		row = append(binary.AppendUvarint(row, uint64(len(e.data))), e.data...)
	}
	l.mu.Lock()
	l.newest.Index++
	l.waiting = append(l.waiting, entries)
	l.mu.Unlock()
	index := l.newest
	size, err := l.writer.SyncRecordGeneralized(row, &index)
	check(err)
	l.bytes.Add(uint64(size - l.size))
	l.size = size
}
