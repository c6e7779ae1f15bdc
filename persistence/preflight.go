package persistence

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/wal"
)

// found is what the preflight learned.
type found struct {
	shards   int
	crashed  bool   // the witness is not that of a clean close
	minLog   uint64 // number of the oldest live log
	logBytes int64  // of the logs that opening will write into tables
}

// preflight checks the files against each other and against the witness. It
// changes nothing: opening for real deletes whatever the MANIFEST does not
// mention, which after damage is data.
//
// Pebble alone would open a store after most kinds of damage, with data missing:
// it takes a broken chunk for the torn end of a write unless a later chunk says
// otherwise, and believes a MANIFEST of any length.
func (s *Store) preflight(lock *pebble.Lock) (found, error) {
	format, err := s.readFormat()
	if err != nil {
		return found{}, err
	}
	w, err := s.readWitness()
	if err != nil {
		return found{}, err
	}
	minLog, err := s.checkManifest(w)
	if err != nil {
		return found{}, err
	}
	logBytes, err := s.checkLogs(w, minLog)
	if err != nil {
		return found{}, err
	}
	if err := s.checkOpens(w, lock); err != nil {
		return found{}, err
	}
	return found{shards: format.shards, crashed: !w.clean, minLog: minLog, logBytes: logBytes}, nil
}

func (s *Store) readWitness() (*witness, error) {
	data, err := readFile(s.fs, s.fs.PathJoin(s.dir, witnessName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damagedFile(witnessName, "it is missing")
	}
	if err != nil {
		return nil, err
	}
	w, err := parseWitness(data)
	if err != nil {
		return nil, damagedFile(witnessName, err.Error())
	}
	return w, nil
}

// checkManifest finds the present MANIFEST and checks it by itself and against
// the witness. It returns the number of the oldest live log.
func (s *Store) checkManifest(w *witness) (minLog uint64, err error) {
	desc, err := pebble.Peek(s.dir, s.fs)
	if err != nil {
		return 0, openFault(err)
	}
	if !desc.Exists {
		return 0, damagedFile("marker.manifest", "it is missing, so no MANIFEST is in force")
	}
	name := s.fs.PathBase(desc.ManifestFilename)
	file, err := readFile(s.fs, desc.ManifestFilename)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, damagedFile(name, "it is missing")
	}
	if err != nil {
		return 0, err
	}
	scan := scanManifest(file, 0)
	switch {
	case scan.later >= 0:
		return 0, damagedAt(name, scan.hole, fmt.Sprintf("a whole record follows at byte %d", scan.later))
	case scan.end == 0:
		return 0, damagedAt(name, 0, "it has no whole record")
	case name < w.manifest && len(name) <= len(w.manifest):
		return 0, damagedFile(name, w.manifest+" was in force later")
	case name == w.manifest && int64(scan.end) < w.manifestBytes:
		return 0, damagedAt(name, scan.end, fmt.Sprintf("its first %d bytes were durable", w.manifestBytes))
	case name == w.manifest && crc32.Checksum(file[:w.manifestBytes], castagnoli) != w.manifestSum:
		return 0, damagedFile(name, "its content is not what it was")
	}
	return scan.minLog, nil
}

// checkLogs reads the live logs, from minLog on, and returns their size.
func (s *Store) checkLogs(w *witness, minLog uint64) (size int64, err error) {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return 0, err
	}
	var logs []uint64
	for _, name := range names {
		if n, _, ok := wal.ParseLogFilename(name); ok && uint64(n) >= minLog {
			logs = append(logs, uint64(n))
		}
	}
	slices.Sort(logs)
	sizes := make(map[uint64]int64, len(w.logs))
	for _, l := range w.logs {
		sizes[l.number] = l.bytes
		if l.number >= minLog && !slices.Contains(logs, l.number) {
			return 0, damagedFile(logName(l.number), "it is missing, and its records are in no table")
		}
	}
	var seq uint64 // behind the last whole record so far
	for i, n := range logs {
		file, err := readFile(s.fs, s.fs.PathJoin(s.dir, logName(n)))
		if err != nil {
			return 0, err
		}
		if int64(len(file)) < sizes[n] {
			return 0, damagedAt(logName(n), len(file), fmt.Sprintf("it is cut short, it had %d bytes", sizes[n]))
		}
		scan := scanLog(file, n)
		seq = max(seq, scan.seq)
		if i < len(logs)-1 {
			// The next log is created only when this one is closed and synced.
			if !scan.clean {
				return 0, damagedAt(logName(n), max(scan.hole, scan.end), "a closed log ends without its trailer")
			}
		} else if err := checkLogEnd(logName(n), scan, seq, minLog, w); err != nil {
			return 0, err
		}
		size += int64(scan.end)
	}
	if len(logs) == 0 && w.proof.wal >= minLog {
		return 0, damagedFile(logName(w.proof.wal), "there is no log at all")
	}
	return size, nil
}

// checkLogEnd decides whether the newest log ends where a crash left it or where
// damage cut it off. seq is the end of what can be recovered.
//
// A proof (wal, seq) says: a record that ends at seq was durable in log wal or a
// later one. When wal is live, so is the log that has the record, and then it
// must be among those that were read.
func checkLogEnd(name string, scan logScan, seq, minLog uint64, w *witness) error {
	at := max(scan.hole, scan.end)
	lost := func(p proof) bool { return p.wal >= minLog && p.seq > seq }
	switch {
	case scan.hole >= 0 && scan.synced > uint64(scan.hole):
		return damagedAt(name, at, fmt.Sprintf("the log was synced up to byte %d", scan.synced))
	case lost(scan.proof):
		return damagedAt(name, at, fmt.Sprintf("later records say that commits up to %d were durable, %d are left",
			scan.proof.seq, seq))
	case lost(w.proof):
		return damagedAt(name, at, fmt.Sprintf("commits up to %d were durable, %d are left", w.proof.seq, seq))
	}
	return nil
}

// checkOpens lets Pebble read everything that it reads when it opens, in
// read-only mode, and checks the tables.
func (s *Store) checkOpens(w *witness, lock *pebble.Lock) (err error) {
	o := s.pebbleOptions(lock)
	o.ReadOnly = true
	o.ErrorIfNotExists = true
	o.Logger = pebbleLog{log: s.log, die: func(reason string) { panic(reason) }}
	var damage error
	o.EventListener = &pebble.EventListener{DataCorruption: func(info pebble.DataCorruptionInfo) {
		damage = damagedFile(s.fs.PathBase(info.Path), fmt.Sprint(info.Details))
	}}
	db, err := openPebble(s.dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tables, err := liveTables(db)
	if err != nil {
		return openFault(err)
	}
	if err := s.checkSums(w, tables); err != nil {
		return err
	}
	o.EnsureDefaults()
	budget := s.options.VerifyBytesMax
	for _, t := range tables {
		if budget -= t.size; budget < 0 {
			break
		}
		if err := checkTable(s.fs, s.dir, t, o.MakeReaderOptions()); err != nil {
			return err
		}
	}
	return damage
}

// checkSums compares the tables with those that the witness saw.
func (s *Store) checkSums(w *witness, tables []liveTable) error {
	known := make(map[uint64]tableSum, len(w.tables))
	for _, t := range w.tables {
		known[t.number] = t
	}
	for _, t := range tables {
		want, ok := known[t.number]
		if !ok {
			continue
		}
		sum, err := sumTable(s.fs, s.dir, t.number)
		if err != nil {
			return openFault(err)
		}
		if sum != want {
			return damagedFile(tableName(t.number), "it is not the table that was written")
		}
	}
	return nil
}

// advice ends every message about damage.
const advice = "nothing was changed; restore the whole directory from a backup"

func damagedFile(name, reason string) error {
	return fmt.Errorf("%w: %s: %s (%s)", ErrDamaged, name, reason, advice)
}

func damagedAt(name string, off int, reason string) error {
	return fmt.Errorf("%w: %s at byte %d: %s (%s)", ErrDamaged, name, off, reason, advice)
}

func damagedStore(reason string) error {
	return fmt.Errorf("%w: %s (%s)", ErrDamaged, reason, advice)
}

// openFault turns an error of Pebble about the files into ErrDamaged. What the
// operating system refuses is not damage and stays as it is.
func openFault(err error) error {
	for _, outside := range []error{
		fs.ErrPermission, syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	} {
		if errors.Is(err, outside) {
			return err
		}
	}
	reason, _, _ := strings.Cut(err.Error(), "\n") // Pebble lists every missing table
	return damagedStore(reason)
}
