package integrity

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"troupe/persistence/internal/file"
)

// RecordOptions say what to record, and how.
type RecordOptions struct {
	FS  vfs.FS
	Dir string // of the store

	// Interval bounds how far the checkpoint may be behind the commits.
	Interval time.Duration
	// LogBytes is the size that each log gets in advance.
	LogBytes int64
	// SpareBytes is the space that the log to be used next keeps when space is scarce.
	SpareBytes int64
	// Opened is since when the files are this process's, for what is said when they are not any more.
	Opened time.Time

	Log zerolog.Logger
	// Fatal ends the process when the files belong to somebody else. It does not return.
	Fatal func(reason string)
}

// Recorder keeps the durability watermark, and writes the integrity checkpoint: after each flush, compaction and new
// MANIFEST, before a new log gets its first record, once an interval while commits go on, and at the end. A checkpoint
// that cannot be written is counted and tried again; the store works on, with an older one.
//
// Once an interval, and before it writes, it looks whether the files are still
// those of this process, and ends the process when they are not.
type Recorder struct {
	// Built by Record, then read only.

	fs      vfs.FS
	dir     string
	options RecordOptions

	durable progress // advanced by the caller of Durable, read by any
	// newestLog is the number of the log that commits beginning now go to, or to a later one.
	newestLog      atomic.Uint64
	scarce         atomic.Bool // there is little space on the disk
	writes, faults atomic.Uint64

	changed chan struct{}      // holds a token after a change of the structure
	created chan chan struct{} // a log was created; the reply means it is in the checkpoint
	empties chan chan error    // logs are to be emptied now
	stop    chan struct{}
	done    chan struct{}
	running atomic.Bool // between Start and Stop

	// Below: of the goroutine; of the caller of Start, Stop and Close outside its life.

	// tables lists the tables of the open database; nil before Start and after Stop.
	tables func() ([]Table, error)
	owner  owner
	last   checkpoint          // as written last
	sums   map[uint64]tableSum // of the live tables
	// minLog is the oldest log whose records are not all in tables, durably so.
	minLog uint64
	spare  uint64           // the log to be used next that has space
	sized  map[uint64]int64 // the size that each log was given; 0 for those of an earlier process
}

// Record returns the recorder of a store. Nothing is written before Start or Close.
func Record(o RecordOptions) *Recorder {
	return &Recorder{
		fs: o.FS, dir: o.Dir, options: o,
		owner:   owner{nonce: rand.Text(), checked: o.Opened},
		changed: make(chan struct{}, 1), created: make(chan chan struct{}), empties: make(chan chan error),
		stop: make(chan struct{}), done: make(chan struct{}),
		sums: make(map[uint64]tableSum),
	}
}

// Start writes the first checkpoint of this process, and goes on in the background
// until Stop. It is called until it returns no error, when the database is open for
// writing and nothing has been written to it. tables lists the tables that it has at the moment.
func (r *Recorder) Start(tables func() ([]Table, error)) error {
	r.tables = tables
	if err := r.write(true, false); err != nil {
		r.tables = nil
		return err
	}
	r.running.Store(true)
	go r.loop()
	return nil
}

// Stop ends what Start began, before the database is closed. Before Start, and the second time, it does nothing.
func (r *Recorder) Stop() {
	if !r.running.Load() {
		return
	}
	close(r.stop)
	<-r.done
	r.running.Store(false)
	r.tables = nil
}

// Close writes the checkpoint that says that the store was closed. The recorder is
// stopped, and the database closed without an error.
func (r *Recorder) Close() error {
	foreign, err := r.owner.check(r.fs, r.dir)
	if foreign != "" {
		return errors.New(r.owner.reason(r.dir, foreign))
	}
	if err != nil {
		return err
	}
	c := r.last
	c.owner = r.owner.nonce
	c.watermark = r.durable.load()
	if err := r.observe(&c); err != nil {
		return err
	}
	if err := r.locate(&c.watermark, c.logs); err != nil {
		return err
	}
	c.clean = true
	return r.put(c)
}

// locate makes the watermark of a store that nobody writes to exact. NewestLog is asked
// before a batch is applied, and a batch that does not fit into memory begins a new log:
// then its watermark names the log before, and tells nothing once that one is in tables.
func (r *Recorder) locate(w *watermark, logs []logSize) error {
	if *w == (watermark{}) {
		return nil // nothing was committed
	}
	for _, l := range slices.Backward(logs) {
		if l.number <= w.log {
			break
		}
		data, err := file.Read(r.fs, r.fs.PathJoin(r.dir, logName(l.number)))
		if err != nil {
			return err
		}
		if scanLog(data, l.number).end > 0 {
			w.log = l.number
			break
		}
	}
	return nil
}

// NewestLog returns the number of a log: a batch that is applied from now on goes to this one or to a later one.
func (r *Recorder) NewestLog() uint64 { return r.newestLog.Load() }

// Durable raises the watermark: what ends before sequence number seq is durable, and
// was written when NewestLog returned log. It is for one goroutine.
func (r *Recorder) Durable(log, seq uint64) { r.durable.advance(watermark{log: log, seq: seq}) }

// StructureChanged asks for a new checkpoint soon: tables or the MANIFEST are others now. It never waits.
func (r *Recorder) StructureChanged() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// LogCreated is called before the first record is written to a new log. It returns
// when the checkpoint names all logs there are, or cannot be written: only then does
// the disappearance of a log show. It does not wait for a recorder that does not run.
func (r *Recorder) LogCreated(number uint64) {
	if r.running.Load() {
		reply := make(chan struct{})
		select {
		case r.created <- reply:
			<-reply
		case <-r.done:
		}
	}
	r.newestLog.Store(number)
}

// SetScarce says whether there is little space on the disk. While there is, the space
// of logs that nobody needs any more is given back.
func (r *Recorder) SetScarce(scarce bool) {
	if r.scarce.Swap(scarce) != scarce && scarce {
		r.StructureChanged()
	}
}

// EmptyLogs takes all content out of the logs that nobody needs any more. The recorder runs.
func (r *Recorder) EmptyLogs() error {
	reply := make(chan error, 1)
	select {
	case r.empties <- reply:
		return <-reply
	case <-r.done:
		return errors.New("the store is closed")
	}
}

// Counts returns how many checkpoints were written, and how many could not be.
func (r *Recorder) Counts() (writes, faults uint64) { return r.writes.Load(), r.faults.Load() }

func (r *Recorder) loop() {
	defer close(r.done)
	ticker := time.NewTicker(r.options.Interval)
	defer ticker.Stop()
	stale := false // the last write of a changed structure failed
	for {
		var reply chan struct{}
		structure := stale
		select {
		case <-r.stop:
			return
		case reply = <-r.created:
			structure = true
		case <-r.changed:
			structure = true
		case emptied := <-r.empties:
			emptied <- r.write(true, true)
			continue
		case <-ticker.C:
		}
		err := r.renew(structure, reply != nil)
		stale = structure && err != nil
		if err != nil {
			r.faults.Add(1)
			r.options.Log.Warn().Err(err).Msg("cannot write the integrity checkpoint, damage would show later")
		}
		if reply != nil {
			close(reply)
		}
	}
}

// renew looks whether the files are still this process's, and writes a checkpoint when there is something new.
func (r *Recorder) renew(structure, newLog bool) error {
	foreign, err := r.owner.check(r.fs, r.dir)
	if foreign != "" {
		r.options.Fatal(r.owner.reason(r.dir, foreign))
	}
	if newLog {
		// The log known so far is the newest no more. It may be removed or used again
		// under another name, whether or not the checkpoint can be written.
		r.owner.log = ""
	}
	if err != nil || !structure && r.durable.load() == r.last.watermark {
		return err
	}
	return r.write(structure, r.scarce.Load())
}

// write replaces the checkpoint. With structure it looks at the files again, and can empty logs; else only the watermark is new.
func (r *Recorder) write(structure, empty bool) error {
	c := r.last
	c.clean, c.owner = false, r.owner.nonce
	// NB: taken before the files are looked at: the record it speaks of is then
	// in a log that the list below has, or in tables.
	c.watermark = r.durable.load()
	if structure {
		if err := r.observe(&c); err != nil {
			return err
		}
		if empty {
			if err := r.emptyLogs(c.logs); err != nil {
				return err
			}
		}
	}
	return r.put(c)
}

// put writes a checkpoint.
func (r *Recorder) put(c checkpoint) error {
	r.owner.tried = c.encode()
	// NB: a copy. A file system may change what it was given to write.
	if err := file.Replace(r.fs, r.dir, CheckpointName, bytes.Clone(r.owner.tried)); err != nil {
		return err
	}
	r.owner.written = r.owner.tried
	r.last = c
	r.writes.Add(1)
	return nil
}

// observe fills in what the files are now, and makes that durable.
func (r *Recorder) observe(c *checkpoint) error {
	desc, err := pebble.Peek(r.dir, r.fs)
	if err != nil {
		return err
	}
	if err := r.observeLogs(c); err != nil {
		return err
	}
	// The marker that names the MANIFEST, and the logs' entries, may be younger than the last sync of the directory.
	if err := file.SyncDir(r.fs, r.dir); err != nil {
		return err
	}
	if err := r.observeManifest(c, desc.ManifestFilename); err != nil {
		return err
	}
	return r.observeTables(c)
}

// observeManifest extends the sum over the MANIFEST to its last whole record. It
// reads only what was added since the last time.
func (r *Recorder) observeManifest(c *checkpoint, path string) error {
	name := r.fs.PathBase(path)
	if name != c.manifest {
		c.manifest, c.manifestBytes, c.manifestSum = name, 0, 0
	}
	// NB: opening for writing makes a file that is not there.
	info, err := r.fs.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() < c.manifestBytes {
		return fmt.Errorf("%w: %s has %d bytes, and had %d", ErrCorrupt, name, info.Size(), c.manifestBytes)
	}
	f, err := r.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read or synced before; nothing is lost with it
	if info, err = f.Stat(); err != nil {
		return err
	}
	// Records are cut at blocks of the file, so the scan starts at one.
	start := c.manifestBytes / blockBytes * blockBytes
	block := make([]byte, info.Size()-start)
	n, err := f.ReadAt(block, start)
	if n < len(block) {
		return err
	}
	scan := scanManifest(block, int(c.manifestBytes-start))
	end := scan.end
	added := block[c.manifestBytes-start : end]
	if len(added) == 0 {
		return nil
	}
	// NB: synced after it was read and before it is told: a record that the
	// database has written but not synced yet must not get into the checkpoint.
	if err := f.Sync(); err != nil {
		return err
	}
	c.manifestSum = crc32.Update(c.manifestSum, castagnoli, added)
	c.manifestBytes = start + int64(end)
	r.minLog = max(r.minLog, scan.minLog)
	return nil
}

// observeTables sums the tables that are new. Without a database the ones known before stay.
func (r *Recorder) observeTables(c *checkpoint) error {
	if r.tables == nil {
		return nil
	}
	tables, err := r.tables()
	if err != nil {
		return err
	}
	sums := make(map[uint64]tableSum, len(tables))
	c.tables = make([]tableSum, 0, len(tables))
	for _, t := range tables {
		sum, ok := r.sums[t.number]
		if !ok {
			if sum, err = sumTable(r.fs, r.dir, t.number); err != nil {
				continue // compacted away meanwhile
			}
		}
		sums[t.number] = sum
		c.tables = append(c.tables, sum)
	}
	r.sums = sums
	return nil
}
