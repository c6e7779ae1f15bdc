package integrity

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/file"
)

// CheckOptions say what to check.
type CheckOptions struct {
	FS  vfs.FS
	Dir string // of the store; its lock is the caller's
	// Open opens the store: its key order, merger and filters, the lock, and a Logger
	// whose Fatalf panics. Check makes the opening read-only, and keeps the value.
	Open *pebble.Options
	// TableBytesMax bounds the tables that are read whole, newest first. Negative: none.
	TableBytesMax int64
}

// Found is what Check learned.
type Found struct {
	Crashed   bool   // the last process did not close the store
	OldestLog uint64 // the number of the oldest live log
	LogBytes  int64  // of the logs that opening will write into tables
}

// Check compares the files of a store with each other and with the integrity checkpoint. It changes nothing: opening
// for writing deletes whatever the MANIFEST does not mention, which after damage is data. It returns ErrDamaged or the
// file system's own error.
//
// Pebble alone would open a store after most kinds of damage, with data missing: it takes a broken chunk for the torn
// end of a write unless a later chunk says otherwise, and believes a MANIFEST of any length.
func Check(o CheckOptions) (Found, error) {
	c, err := readCheckpoint(o.FS, o.Dir)
	if err != nil {
		return Found{}, err
	}
	k := check{CheckOptions: o, checkpoint: c}
	if err := k.manifest(); err != nil {
		return Found{}, err
	}
	logBytes, found := k.logs()
	if len(found) > 0 {
		return Found{}, found[0]
	}
	if err := k.opens(); err != nil {
		return Found{}, err
	}
	return Found{Crashed: !c.clean, OldestLog: k.minLog, LogBytes: logBytes}, nil
}

func readCheckpoint(fsys vfs.FS, dir string) (*checkpoint, error) {
	data, err := file.Read(fsys, fsys.PathJoin(dir, CheckpointName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Damaged(CheckpointName, "it is missing")
	}
	if err != nil {
		return nil, err
	}
	c, err := parseCheckpoint(data)
	if err != nil {
		return nil, Damaged(CheckpointName, err.Error())
	}
	return c, nil
}

// check is one run of Check.
type check struct {
	CheckOptions
	checkpoint *checkpoint
	minLog     uint64 // number of the oldest live log, once manifest has run
}

// manifest finds the present MANIFEST and checks it on its own and against the checkpoint.
func (k *check) manifest() error {
	was := k.checkpoint
	desc, err := pebble.Peek(k.Dir, k.FS)
	if err != nil {
		return openFault(err)
	}
	if !desc.Exists {
		return Damaged("marker.manifest", "it is missing, so no MANIFEST is in force")
	}
	name := k.FS.PathBase(desc.ManifestFilename)
	data, err := file.Read(k.FS, desc.ManifestFilename)
	if errors.Is(err, fs.ErrNotExist) {
		return Damaged(name, "it is missing")
	}
	if err != nil {
		return err
	}
	scan := scanManifest(data, 0)
	switch {
	case scan.later >= 0:
		return damagedAt(name, scan.hole, fmt.Sprintf("a whole record follows at byte %d", scan.later))
	case scan.end == 0:
		return damagedAt(name, 0, "it has no whole record")
	case name < was.manifest && len(name) <= len(was.manifest):
		return Damaged(name, was.manifest+" was in force later")
	case name == was.manifest && int64(scan.end) < was.manifestBytes:
		return damagedAt(name, scan.end, fmt.Sprintf("its first %d bytes were durable", was.manifestBytes))
	case name == was.manifest && crc32.Checksum(data[:was.manifestBytes], castagnoli) != was.manifestSum:
		return Damaged(name, "its content is not what it was")
	}
	k.minLog = scan.minLog
	return nil
}

// CheckFiles lists what is wrong with the MANIFEST and the live logs of a store, which may be in use. There files change while they
// are read, so only what is found again and again is wrong.
func CheckFiles(fsys vfs.FS, dir string) (found []error) {
	for tries := 0; tries < 3; tries++ {
		if found = checkFiles(fsys, dir); len(found) == 0 {
			return nil
		}
	}
	return found
}

func checkFiles(fsys vfs.FS, dir string) (found []error) {
	c, err := readCheckpoint(fsys, dir)
	if err != nil {
		return []error{err}
	}
	k := check{CheckOptions: CheckOptions{FS: fsys, Dir: dir}, checkpoint: c}
	if err := k.manifest(); err != nil {
		found = append(found, err)
		k.minLog = c.watermark.log // NB: older ones may be live or not
	}
	_, logs := k.logs()
	return append(found, logs...)
}

// logs reads the live logs, from minLog on, and returns their size and what is wrong with them.
func (k *check) logs() (size int64, found []error) {
	was, minLog := k.checkpoint, k.minLog
	logs, err := listLogs(k.FS, k.Dir)
	if err != nil {
		return 0, []error{err}
	}
	logs = slices.DeleteFunc(logs, func(n uint64) bool { return n < minLog })
	sizes := make(map[uint64]int64, len(was.logs))
	for _, l := range was.logs {
		sizes[l.number] = l.bytes
		if l.number >= minLog && !slices.Contains(logs, l.number) {
			found = append(found, Damaged(logName(l.number), "it is missing, and its records are in no table"))
		}
	}
	var seq uint64 // behind the last whole record so far
	for i, n := range logs {
		data, err := file.Read(k.FS, k.FS.PathJoin(k.Dir, logName(n)))
		if err != nil {
			return 0, append(found, err)
		}
		if int64(len(data)) < sizes[n] {
			found = append(found, damagedAt(logName(n), len(data), fmt.Sprintf("it is cut short, it had %d bytes", sizes[n])))
		}
		scan := scanLog(data, n)
		seq = max(seq, scan.seq)
		if i < len(logs)-1 {
			// The next log is created only when this one is closed and synced.
			if !scan.clean {
				found = append(found, damagedAt(logName(n), max(scan.hole, scan.end), "a closed log ends without its trailer"))
			}
		} else if err := checkLogEnd(logName(n), scan, seq, minLog, was.watermark); err != nil {
			found = append(found, err)
		}
		size += int64(scan.end)
	}
	if len(logs) == 0 && was.watermark.log >= minLog {
		found = append(found, Damaged(logName(was.watermark.log), "there is no log at all"))
	}
	return size, found
}

// checkLogEnd decides whether the newest log ends where a crash left it or where
// damage cut it off. seq is the end of what can be recovered.
//
// A watermark (log, seq) says: a record that ends at seq was durable in this log or a
// later one. When the log is live, so is the one that has the record, and then it
// must be among those that were read. was is the watermark of the checkpoint.
func checkLogEnd(name string, scan logScan, seq, minLog uint64, was watermark) error {
	at := max(scan.hole, scan.end)
	lost := func(w watermark) bool { return w.log >= minLog && w.seq > seq }
	switch {
	case scan.hole >= 0 && scan.synced > uint64(scan.hole):
		return damagedAt(name, at, fmt.Sprintf("the log was synced up to byte %d", scan.synced))
	case lost(scan.stamp):
		return damagedAt(name, at, fmt.Sprintf("later records say that commits up to %d were durable, %d are left",
			scan.stamp.seq, seq))
	case lost(was):
		return damagedAt(name, at, fmt.Sprintf("commits up to %d were durable, %d are left", was.seq, seq))
	}
	return nil
}

// opens lets Pebble read everything that it reads when it opens, in read-only mode, and checks the tables.
func (k *check) opens() (err error) {
	o := k.Open
	o.ReadOnly = true
	o.ErrorIfNotExists = true
	var damage error
	o.EventListener = &pebble.EventListener{DataCorruption: func(info pebble.DataCorruptionInfo) {
		damage = Damaged(k.FS.PathBase(info.Path), fmt.Sprint(info.Details))
	}}
	o.EnsureDefaults()
	if err := k.options(o); err != nil {
		return err
	}
	db, err := OpenPebble(k.Dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tables, err := Tables(db)
	if err != nil {
		return openFault(err)
	}
	if err := k.sums(tables); err != nil {
		return err
	}
	budget := k.TableBytesMax
	for _, t := range tables {
		if budget -= t.Bytes; budget < 0 {
			break
		}
		if err := CheckTable(t, k.FS, k.Dir, o.MakeReaderOptions()); err != nil {
			return err
		}
	}
	return damage
}

// sums compares the tables with those that the checkpoint knows.
func (k *check) sums(tables []Table) error {
	known := make(map[uint64]tableSum, len(k.checkpoint.tables))
	for _, t := range k.checkpoint.tables {
		known[t.number] = t
	}
	for _, t := range tables {
		want, ok := known[t.number]
		if !ok {
			continue
		}
		sum, err := sumTable(k.FS, k.Dir, t.number)
		if err != nil {
			return openFault(err)
		}
		if sum != want {
			return Damaged(t.Name(), "it is not the table that was written")
		}
	}
	return nil
}

// options names the file of options that Pebble refuses without its name. What else there is, OpenPebble says.
func (k *check) options(o *pebble.Options) error {
	found, err := pebble.Peek(k.Dir, k.FS)
	if err != nil || found.OptionsFilename == "" {
		return nil
	}
	text, err := file.Read(k.FS, found.OptionsFilename)
	if err != nil {
		return err
	}
	if err := o.CheckCompatibility(k.Dir, string(text)); err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return Damaged(k.FS.PathBase(found.OptionsFilename), reason)
	}
	return nil
}
