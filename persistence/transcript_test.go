package persistence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
	"troupe/persistence/internal/engine"
	"troupe/persistence/internal/file"
	"troupe/persistence/key"
)

// TestTranscripts holds what testdata/store says of stores on a disk in memory, in virtual time. Each story is on a disk
// of its own; what answers nothing stands only in the story. -rewrite writes the answers anew.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/store/*.txt")
	require.True(t, err == nil && len(files) > 0, "%v %v", files, err)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) (answers string) {
				synctest.Test(t, func(t *testing.T) { answers = tell(t, d) })
				return answers
			})
		})
	}
}

// story is a store with its disk. Its methods are the words of the transcripts.
type story struct {
	t        *testing.T
	disk     *vfs.MemFS
	faults   *faultyFS
	options  Options
	log      strings.Builder
	store    *Store
	closed   bool
	snapshot *Snapshot
	begun    *Batch
	waiting  []waitFor // appends
	release  func()    // of what hangs
	closing  chan error
	tables   []string // at the first look
	files    string   // when they were looked at last
	met      int64    // how many operations had failed then
}

func tell(t *testing.T, d *datadriven.TestData) string {
	s := &story{t: t, disk: vfs.NewMem(), faults: &faultyFS{suffix: "\x00"}, release: func() {}}
	if d.HasArg("fault") { // NB: only here, as others read it all the time
		var fault string
		d.ScanArgs(t, "fault", &fault)
		suffix, kind, _ := strings.Cut(fault, "/")
		s.faults = &faultyFS{suffix: suffix, kinds: faultKinds[kind]}
	}
	s.options = small(errorfs.Wrap(s.disk, s.faults))
	s.options.Log = zerolog.New(&s.log)
	if d.HasArg("min") {
		var mib int64
		d.ScanArgs(t, "min", &mib)
		s.options.FreeBytesMin = mib << 20
		s.free("1000")
	}
	var answers strings.Builder
	for line := range strings.Lines(d.Input) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		begun := time.Now()
		answer := s.do(words[0], words[1:], strings.TrimSpace(strings.TrimPrefix(line, words[0])))
		if took := time.Since(begun).Round(time.Second); took > 0 && words[0] != "advance" {
			answer += fmt.Sprintf(", after %v", took)
		}
		if answer != "" {
			fmt.Fprintf(&answers, "%s: %s\n", line, random.ReplaceAllString(answer, "<id>"))
		}
	}
	s.heal()
	if s.snapshot != nil {
		must(t, s.snapshot.Close())
	}
	if s.store != nil && !s.closed {
		must(t, s.store.Close())
	}
	return answers.String()
}

var random = regexp.MustCompile(`[0-9a-f]{16,}`)

func said(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

var (
	faultKinds = map[string][]errorfs.OpKind{"sync": syncKinds, "write": {errorfs.OpFileWrite}, "open": {errorfs.OpFileWriteAt}, "create": {errorfs.OpCreate}}
	faultCodes = map[string]error{"ENOSPC": syscall.ENOSPC, "EIO": syscall.EIO, "EROFS": syscall.EROFS}
)

func (s *story) do(word string, args []string, rest string) string {
	name, value, _ := strings.Cut(rest, "=")
	switch word {
	case "open":
		return s.open(args)
	case "create":
		return said(Create("db", s.with(args)))
	case "commit":
		return said(<-appendSetting(s.store, name, value))
	case "append":
		s.waiting = append(s.waiting, appendSetting(s.store, name, value))
	case "answers":
		return s.answers()
	case "begin":
		s.begun = s.store.NewBatch(key.Meta)
		s.begun.Set(key.Setting(nil, name), []byte(value))
		return fmt.Sprint(s.begun.Len(), " write")
	case "finish":
		return said(s.store.Commit(s.begun))
	case "discard":
		s.begun.Discard()
	case "delete":
		w := s.store.NewBatch(key.Meta)
		w.Delete(key.Setting(nil, rest))
		return said(s.store.Commit(w))
	case "load":
		return s.load(s.store, rest)
	case "there":
		return s.scan(s.store.Scan)
	case "accepting":
		return said(s.store.Accepting())
	case "durable":
		return said(s.store.AwaitDurable())
	case "visible":
		return said(s.store.AwaitVisible())
	case "verify":
		return said(second(s.store.Verify(s.t.Context())))
	case "snapshot":
		s.snapshot = s.store.Snapshot()
	case "snapshot.load":
		return s.load(s.snapshot, rest)
	case "snapshot.there":
		return s.scan(s.snapshot.Scan)
	case "snapshot.close":
		defer func() { s.snapshot = nil }()
		return said(s.snapshot.Close())
	case "snapshot.cursor":
		c := s.snapshot.Cursor(nil, nil)
		return fmt.Sprint(c.Next(), ", ", said(errors.Join(c.Err(), c.Close())))
	case "close":
		s.closed = true
		return said(s.store.Close())
	case "close.begin":
		s.closing = make(chan error, 1)
		go func() { s.closing <- s.store.Close() }()
	case "close.end":
		synctest.Wait()
		if len(s.closing) == 0 {
			return "it waits"
		}
		return said(<-s.closing)
	case "free":
		s.free(rest)
	case "advance":
		d, err := time.ParseDuration(rest)
		must(s.t, err)
		clocktest.Advance(d)
	case "fail":
		s.faults.fail(&os.PathError{Op: "fail", Path: s.faults.suffix, Err: faultCodes[rest]})
	case "hang":
		s.release = s.faults.hold()
	case "heal":
		s.heal()
	case "tried":
		before := s.met
		s.met = s.faults.met.Load()
		return fmt.Sprint(s.met > before)
	case "counts":
		m := s.store.Metrics()
		return fmt.Sprintf("%d unknown, %d refused", m.Unknown, m.Refused)
	case "logged":
		return fmt.Sprint(strings.Contains(s.log.String(), rest))
	default:
		return s.doFiles(word, args, rest)
	}
	return ""
}

// doFiles are the words about the files on the disk.
func (s *story) doFiles(word string, args []string, rest string) string {
	switch word {
	case "files":
		before := s.files
		s.files = s.disk.String()
		switch before {
		case "":
			return ""
		case s.files:
			return "as before"
		}
		return "changed"
	case "holds":
		_, err := s.disk.Stat(rest)
		return fmt.Sprint(err == nil)
	case "list":
		names, err := s.disk.List(rest)
		if err != nil {
			return "none"
		}
		slices.Sort(names)
		return fmt.Sprintf("%q", names)
	case "put", "seal":
		text, err := strconv.Unquote(strings.TrimSpace(strings.TrimPrefix(rest, args[0])))
		must(s.t, err)
		if word == "seal" {
			text = string(file.Seal([]byte(text)))
		}
		must(s.t, s.disk.MkdirAll(s.disk.PathDir(args[0]), 0o700))
		putFile(s.t, s.disk, "../"+args[0], text)
	case "flush":
		return said(engine.Pebble(s.store.db.Load()).Flush())
	case "compact":
		return said(engine.Pebble(s.store.db.Load()).Compact(s.t.Context(), []byte{0}, []byte{0xFF, 0xFF, 0xFF}, false))
	case "tables":
		return s.lookAtTables()
	case "remove":
		must(s.t, s.disk.Remove(rest))
	case "rename":
		must(s.t, s.disk.Rename(args[0], args[1]))
	case "mkdir":
		must(s.t, s.disk.MkdirAll(rest, 0o700))
	case "ids":
		if own, wanted := idFile(s.t, s.disk, "db/ID"), idFile(s.t, s.disk, "store-id"); own != wanted || own == "" {
			return fmt.Sprintf("%q and %q", own, wanted)
		}
		return "the same"
	default:
		s.t.Fatalf("there is no word %q", word)
	}
	return ""
}

// lookAtTables counts the tables that were there at the first look, and the others.
func (s *story) lookAtTables() string {
	names, err := s.disk.List("db")
	must(s.t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".sst") })
	if s.tables == nil {
		s.tables = names
	}
	old := 0
	for _, name := range names {
		if slices.Contains(s.tables, name) {
			old++
		}
	}
	return fmt.Sprintf("%d old, %d new", old, len(names)-old)
}

func (s *story) with(args []string) Options {
	o := s.options
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "readonly":
			o.ReadOnly = true
		case "id":
			o.IDFile = "store-id"
		case "shards":
			o.Shards, _ = strconv.Atoi(value)
		}
	}
	return o
}

func (s *story) open(args []string) string {
	opened, err := Open("db", s.with(args))
	if err == nil {
		s.store, s.closed = opened, false
	}
	return said(err)
}

func (s *story) free(mib string) {
	n, err := strconv.ParseUint(mib, 10, 64)
	must(s.t, err)
	s.disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n << 20})
}

func (s *story) heal() {
	s.release()
	s.faults.fault.Store(nil)
}

func (s *story) answers() string {
	synctest.Wait()
	var all []string
	for _, w := range s.waiting {
		select {
		case err := <-w:
			all = append(all, said(err))
			w <- err
		default:
			all = append(all, "none yet")
		}
	}
	return strings.Join(all, "; ")
}

func (s *story) load(from loader, name string) string {
	value, err := from.Load(key.Setting(nil, name))
	if err != nil {
		return said(err)
	}
	return string(value)
}

func (s *story) scan(scan func(prefix []byte, visit func(key, value []byte) error) error) string {
	var all []string
	err := scan(key.SettingsPrefix(nil), func(rowKey, value []byte) error {
		k, _ := key.Parse(rowKey)
		all = append(all, k.Name+"="+string(value))
		return nil
	})
	if err != nil {
		return said(err)
	}
	return strings.Join(all, " ")
}
