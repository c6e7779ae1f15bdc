package persistence

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// TestTranscripts holds what testdata/store says of stores on a disk in memory, in virtual time. Each story is on a disk
// of its own; what answers nothing stands only in the story. -rewrite writes the answers anew.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/store/*.txt")
	require.True(t, err == nil && len(files) > 0, "%v %v", files, err)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) (answers string) {
				synctest.Test(t, func(t *testing.T) { answers = tell(t, d, false) })
				if d.HasArg("also") { // what a store that stands alone promises to its writers holds for one with replicas, too
					synctest.Test(t, func(t *testing.T) { assert.Equal(t, answers, tell(t, d, true), "%s: in a group", d.Pos) })
				}
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
	cursor   *Cursor
	begun    *Batch
	told     told
	group    bool   // the store has replicas, of which it is the only one
	release  func() // of what hangs
	died     chan string
	closing  chan error
	tables   []string // at the first look
	files    string   // when they were looked at last
	met      int64    // how many operations had failed then
	waiting  int      // when they were counted last
	last     uint64   // the sequence number behind the last commit
}

func newStory(t *testing.T, group bool) *story {
	s := &story{t: t, disk: vfs.NewCrashableMem(), faults: &faultyFS{suffix: "\x00"}, group: group, release: func() {}}
	s.options = small(errorfs.Wrap(s.disk, s.faults))
	return s
}

func tell(t *testing.T, d *datadriven.TestData, group bool) string {
	s := newStory(t, group)
	if d.HasArg("fault") { // NB: only here, as others read it all the time
		var fault string
		d.ScanArgs(t, "fault", &fault)
		suffix, kind, _ := strings.Cut(fault, "/")
		s.faults = &faultyFS{suffix: suffix, kinds: faultKinds[kind]}
	}
	s.options = small(errorfs.Wrap(s.disk, s.faults))
	s.options.Log = zerolog.New(zerolog.SyncWriter(&s.log)) // several groups write it
	if d.HasArg("memtable") {
		d.ScanArgs(t, "memtable", &s.options.MemTableBytes)
		s.options.MemTableBytes <<= 10
	}
	if d.HasArg("mortal") {
		s.died = deaths(&s.options)
	}
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
		if took := time.Since(begun).Round(time.Second); took > 0 && words[0] != "advance" && words[0] != "many" && !(s.group && words[0] == "open") {
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
		if err := s.store.Close(); s.died == nil {
			must(t, err)
		}
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
	faultKinds = map[string][]errorfs.OpKind{"sync": syncKinds, "write": {errorfs.OpFileWrite}, "open": {errorfs.OpFileWriteAt}, "create": {errorfs.OpCreate}, "list": {errorfs.OpList}}
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
	case "forward":
		s.cursor = s.snapshot.Cursor(key.Setting(nil, args[0]), key.Setting(nil, args[1]))
	case "backward":
		s.cursor = s.snapshot.Backward(key.Setting(nil, args[0]), key.Setting(nil, args[1]))
	case "next":
		return s.at(s.cursor.Next())
	case "seek":
		return s.at(s.cursor.Seek(key.Setting(nil, rest)))
	case "leave":
		return said(errors.Join(s.cursor.Err(), s.cursor.Close()))
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
	case "commit.last": // the checkpoint should know of it
		s.last = committed(s.t, s.store, name, value)
	case "checkpoint":
		c, err := loadCheckpoint(s.disk)
		must(s.t, err)
		return fmt.Sprintf("clean %t, knows of the last commit %t, names its log %t", c.clean, c.seq == s.last, c.logs[c.log] > 0)
	case "checkpoint.errors":
		return fmt.Sprint(s.store.Metrics().CheckpointErrors > 0)
	case "alive":
		return fmt.Sprint(len(s.died) == 0)
	case "crashed": // whether it was, when it was opened
		return fmt.Sprint(s.store.OpenedAfterCrash())
	case "refused":
		return fmt.Sprint(s.store.Metrics().Refused)
	case "waiting": // whether there are more than before
		before := s.waiting
		s.waiting = s.store.Metrics().Waiting
		return map[bool]string{true: "more than before", false: "no more than before"}[s.waiting > before]
	case "logged":
		return fmt.Sprint(strings.Contains(s.log.String(), rest))
	default:
		return s.doWrites(word, args, rest)
	}
	return ""
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
	o := s.with(args)
	if s.group {
		alone, err := Open("db", o)
		if err == nil {
			must(s.t, errors.Join(alone.Bootstrap("only", []key.Shard{0}), alone.Close()))
		}
		o.Replication = &Replication{Node: "only", Streams: func(key.Shard) replica.Streams { return nobody{make(chan struct{})} }}
	}
	opened, err := Open("db", o)
	if err == nil {
		s.store, s.closed = opened, false
		for sh := range opened.AllShards() {
			for tries := 0; s.group && opened.Epoch(sh) == 0; tries++ {
				require.Less(s.t, tries, 10_000, "the only node does not lead shard %d", sh)
				clocktest.Advance(10 * time.Millisecond)
			}
		}
	}
	return said(err)
}

// nobody are the streams of a node that is alone.
type nobody struct{ closed chan struct{} }

func (n nobody) Accept() (net.Conn, error) {
	<-n.closed
	return nil, net.ErrClosed
}

func (nobody) Dial(string, time.Duration) (net.Conn, error) { return nil, net.ErrClosed }

func (n nobody) Close() error {
	close(n.closed)
	return nil
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
	return cmp.Or(strings.Join(all, " "), "nothing")
}

// at is where the cursor stands.
func (s *story) at(there bool) string {
	if !there {
		return "the end"
	}
	k, _ := key.Parse(s.cursor.Key())
	return k.Name + "=" + string(s.cursor.Value())
}
