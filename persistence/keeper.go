package persistence

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
	"github.com/rs/zerolog"
)

// logBytesMax bounds the size that a log is given in advance.
const logBytesMax = 64 << 20

// keeper writes the witness: after each flush, compaction and new MANIFEST,
// before a new log gets its first record, once an interval while commits go on,
// and at the end. A witness that cannot be written is counted and tried again;
// the store works on, with an older witness.
//
// Once an interval, and before it writes, it looks whether the files are still
// those of this process, and ends the process when they are not.
type keeper struct {
	fs       vfs.FS
	dir      string
	log      zerolog.Logger
	metrics  *counters
	durable  func() proof
	die      func(reason string)
	scarce   *atomic.Bool // there is little room on the disk
	interval time.Duration
	logBytes int64

	changed chan struct{}      // holds a token after a change of the structure
	created chan chan struct{} // a log was created; the reply means it is in the witness
	stop    chan struct{}
	done    chan struct{}
	running atomic.Bool // between start and halt

	// Below: of the goroutine; of the caller of start, halt and write outside its
	// life.

	db    *pebble.DB // nil before start and after halt
	owner owner
	last  witness             // as written last
	sums  map[uint64]tableSum // of the live tables
	// minLog is the oldest log whose records are not all in tables, durably so.
	minLog uint64
	spare  uint64           // the log to be used next that has room
	sized  map[uint64]int64 // the size that each log was given; 0 for those of an earlier process
}

func (s *Store) newKeeper() *keeper {
	return &keeper{
		fs: s.fs, dir: s.dir, log: s.log, metrics: &s.metrics,
		durable: s.commits.durable.load, die: s.die, scarce: &s.scarce, interval: s.options.WitnessInterval,
		owner:    owner{nonce: newNonce(), checked: s.started},
		logBytes: min(s.options.MemTableBytes, logBytesMax),
		changed:  make(chan struct{}, 1), created: make(chan chan struct{}),
		stop: make(chan struct{}), done: make(chan struct{}),
		sums: make(map[uint64]tableSum),
	}
}

// start writes the first witness of this process and goes on in the background.
func (k *keeper) start(db *pebble.DB) error {
	k.db = db
	if err := k.write(true); err != nil {
		return err
	}
	k.running.Store(true)
	go k.loop()
	return nil
}

// halt ends the goroutine. finish follows once the database is closed.
func (k *keeper) halt() {
	close(k.stop)
	<-k.done
	k.running.Store(false)
	k.db = nil
}

// structureChanged asks for a new witness soon. It never waits.
func (k *keeper) structureChanged() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// logCreated returns when the witness names all logs there are. It does not wait
// for a keeper that does not run: Open and Close write the witness themselves.
func (k *keeper) logCreated() {
	if !k.running.Load() {
		return
	}
	reply := make(chan struct{})
	select {
	case k.created <- reply:
		<-reply
	case <-k.done:
	}
}

func (k *keeper) loop() {
	defer close(k.done)
	ticker := time.NewTicker(k.interval)
	defer ticker.Stop()
	stale := false // the last write of a changed structure failed
	for {
		var reply chan struct{}
		structure := stale
		select {
		case <-k.stop:
			return
		case reply = <-k.created:
			structure = true
		case <-k.changed:
			structure = true
		case <-ticker.C:
		}
		foreign, err := k.owner.check(k.fs, k.dir)
		if foreign != "" {
			k.die(k.owner.reason(k.dir, foreign))
		}
		if reply != nil {
			// The log known so far is the newest no more. It may be removed or used again
			// under another name, whether or not the witness can be written.
			k.owner.log = ""
		}
		if err == nil && (structure || k.durable() != k.last.proof) {
			err = k.write(structure)
		}
		stale = structure && err != nil
		if err != nil {
			k.metrics.witnessErrors.Add(1)
			k.log.Warn().Err(err).Msg("cannot write the witness, damage would show later")
		}
		if reply != nil {
			close(reply)
		}
	}
}

// write replaces the witness. With structure it looks at the files again; else
// only the proof is new.
func (k *keeper) write(structure bool) error {
	w := k.last
	w.clean, w.owner = false, k.owner.nonce
	// NB: taken before the files are looked at: the record it speaks of is then
	// in a log that the list below has, or in tables.
	w.proof = k.durable()
	if structure {
		if err := k.observe(&w); err != nil {
			return err
		}
		if k.scarce.Load() {
			if err := k.emptyLogs(w.logs); err != nil {
				return err
			}
		}
	}
	return k.put(w)
}

// emptyLogs gives back the room of logs that nobody needs any more. Pebble keeps
// some of them to write over them again, each with all the room that it was given
// in advance. They stay there, empty, because Pebble counts on their names; only
// the one that comes next keeps some. The newest log is never one of them.
func (k *keeper) emptyLogs(logs []logSize) error {
	for i, l := range logs {
		if l.number >= k.minLog {
			continue
		}
		info, err := k.fs.Stat(k.fs.PathJoin(k.dir, logName(l.number)))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 && (i > 0 || l.number == k.spare) {
			continue
		}
		if err == nil {
			err = k.emptyLog(l.number, i == 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// emptyLog puts an empty file in the place of a log, with some room when it is to
// be used next. NB: it does not cut the log: Pebble may give it its next name, and
// begin to write to it, at this moment, and cutting could hit what was written.
func (k *keeper) emptyLog(number uint64, next bool) error {
	path := k.fs.PathJoin(k.dir, logName(number))
	f, err := k.fs.Create(path+tmpSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if next && f.Preallocate(0, 2*logAhead) == nil { // else it is tried again with the next change
		k.spare = number
	}
	if err := f.Close(); err != nil {
		return err
	}
	return k.fs.Rename(path+tmpSuffix, path)
}

// finish writes the witness of a clean close, after the database was closed.
func (k *keeper) finish() error {
	foreign, err := k.owner.check(k.fs, k.dir)
	if foreign != "" {
		return errors.New(k.owner.reason(k.dir, foreign))
	}
	if err != nil {
		return err
	}
	w := k.last
	w.owner = k.owner.nonce
	w.proof = k.durable()
	if err := k.observe(&w); err != nil {
		return err
	}
	w.clean = true
	return k.put(w)
}

func (k *keeper) put(w witness) error {
	k.owner.tried = w.encode()
	// NB: a copy. A file system may change what it was given to write.
	if err := writeFile(k.fs, k.dir, witnessName, bytes.Clone(k.owner.tried)); err != nil {
		return err
	}
	k.owner.written = k.owner.tried
	k.last = w
	k.metrics.witnessWrites.Add(1)
	return nil
}

// observe fills in what the files are now, and makes that durable.
func (k *keeper) observe(w *witness) error {
	desc, err := pebble.Peek(k.dir, k.fs)
	if err != nil {
		return err
	}
	names, err := k.fs.List(k.dir)
	if err != nil {
		return err
	}
	if err := k.observeLogs(w, names); err != nil {
		return err
	}
	// The marker that names the MANIFEST, and the logs' entries, may be younger
	// than the last sync of the directory.
	if err := syncDir(k.fs, k.dir); err != nil {
		return err
	}
	if err := k.observeManifest(w, desc.ManifestFilename); err != nil {
		return err
	}
	return k.observeTables(w)
}

// observeLogs lists the logs. The newest gets its full size before anything is
// written to it: a log that grows as it is written can be cut short without a
// trace, one that has to have its size cannot.
func (k *keeper) observeLogs(w *witness, names []string) error {
	sized := make(map[uint64]int64, len(k.sized))
	w.logs = nil
	for _, name := range names {
		if num, _, ok := wal.ParseLogFilename(name); ok {
			n := uint64(num)
			w.logs = append(w.logs, logSize{number: n, bytes: k.sized[n]})
			sized[n] = k.sized[n]
		}
	}
	slices.SortFunc(w.logs, func(a, b logSize) int { return cmp.Compare(a.number, b.number) })
	if k.db != nil && len(w.logs) > 0 {
		newest := &w.logs[len(w.logs)-1]
		if newest.bytes == 0 {
			if err := k.sizeLog(newest.number); err != nil {
				return err
			}
			newest.bytes, sized[newest.number] = k.logBytes, k.logBytes
		}
		if err := k.ownLog(logName(newest.number)); err != nil {
			return err
		}
	}
	k.sized = sized
	return nil
}

// ownLog remembers the newest log.
func (k *keeper) ownLog(name string) error {
	info, err := k.fs.Stat(k.fs.PathJoin(k.dir, name))
	if err != nil {
		return err
	}
	k.owner.log, k.owner.logID = name, idOf(info)
	return nil
}

// sizeLog makes a log at least logBytes long, without taking room on disk. The
// database reads zeros behind the last record as the end; it is used to them
// from logs that it uses again.
func (k *keeper) sizeLog(number uint64) error {
	f, err := k.fs.OpenReadWrite(k.fs.PathJoin(k.dir, logName(number)), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read or synced before; nothing is lost with it
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < k.logBytes {
		if _, err := f.WriteAt([]byte{0}, k.logBytes-1); err != nil {
			return err
		}
	}
	return f.Sync()
}

// observeManifest extends the sum over the MANIFEST to its last whole record. It
// reads only what was added since the last time.
func (k *keeper) observeManifest(w *witness, path string) error {
	name := k.fs.PathBase(path)
	if name != w.manifest {
		w.manifest, w.manifestBytes, w.manifestSum = name, 0, 0
	}
	// NB: opening for writing makes a file that is not there.
	info, err := k.fs.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() < w.manifestBytes {
		return fmt.Errorf("%w: %s has %d bytes, and had %d", ErrCorrupt, name, info.Size(), w.manifestBytes)
	}
	f, err := k.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read or synced before; nothing is lost with it
	if info, err = f.Stat(); err != nil {
		return err
	}
	// Records are cut at blocks of the file, so the scan starts at one.
	start := w.manifestBytes / blockBytes * blockBytes
	block := make([]byte, info.Size()-start)
	n, err := f.ReadAt(block, start)
	if n < len(block) {
		return err
	}
	scan := scanManifest(block, int(w.manifestBytes-start))
	end := scan.end
	added := block[w.manifestBytes-start : end]
	if len(added) == 0 {
		return nil
	}
	// NB: synced after it was read and before it is told: a record that the
	// database has written but not synced yet must not get into the witness.
	if err := f.Sync(); err != nil {
		return err
	}
	w.manifestSum = crc32.Update(w.manifestSum, castagnoli, added)
	w.manifestBytes = start + int64(end)
	k.minLog = max(k.minLog, scan.minLog)
	return nil
}

// observeTables sums the tables that are new. Without a database the ones known
// before stay.
func (k *keeper) observeTables(w *witness) error {
	if k.db == nil {
		return nil
	}
	tables, err := liveTables(k.db)
	if err != nil {
		return err
	}
	sums := make(map[uint64]tableSum, len(tables))
	w.tables = make([]tableSum, 0, len(tables))
	for _, t := range tables {
		sum, ok := k.sums[t.number]
		if !ok {
			if sum, err = sumTable(k.fs, k.dir, t.number); err != nil {
				continue // compacted away meanwhile
			}
		}
		sums[t.number] = sum
		w.tables = append(w.tables, sum)
	}
	k.sums = sums
	return nil
}
