package persistence

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/file"
	"troupe/persistence/key"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitFor is a waiter that can be received from; it needs room for one.
type waitFor chan error

func (w waitFor) Committed(err error) { w <- err }

// fataler is a test, a benchmark, or a run of one by rapid.
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

// small are options for a store in memory.
func small(fs vfs.FS) Options {
	return Options{FS: fs, MemTableBytes: 256 << 10, CacheBytes: 1 << 20, FreeBytesMin: -1}
}

// plain are options for a store in a folder.
var plain = Options{MemTableBytes: 256 << 10, CacheBytes: 1 << 20}

// mustOpen opens a store that the test closes itself.
func mustOpen(t fataler, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	must(t, err)
	return s
}

// open opens a store in "db" that is closed when the test ends.
func open(t testing.TB, o Options) *Store {
	t.Helper()
	s := mustOpen(t, "db", o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// appendSetting appends one setting and returns its waiter.
func appendSetting(s *Store, name, value string) waitFor {
	w := s.NewBatch(key.Meta)
	w.Set(key.Setting(nil, name), []byte(value))
	c := make(waitFor, 1)
	s.Append(w, c)
	return c
}

// mustCommit commits one setting.
func mustCommit(t testing.TB, s *Store, name, value string) {
	t.Helper()
	err := <-appendSetting(s, name, value)
	require.NoError(t, err, "commit %s", name)
}

// committed commits one setting and returns the sequence number after it.
func committed(t testing.TB, s *Store, name, value string) (end uint64) {
	t.Helper()
	mustCommit(t, s, name, value)
	batch := s.db.Load().EmptyBatch(0) // a stamp alone has the next number and leaves it to others
	must(t, integrity.Reserve(batch))
	s.recorder.Stamp(batch.Repr())
	must(t, s.db.Load().ApplyUnsynced(batch))
	return uint64(batch.SeqNum())
}

// checkpoint is what the integrity checkpoint of a store says.
type checkpoint struct {
	clean    bool
	log, seq uint64           // the durability watermark
	logs     map[uint64]int64 // sizes by number
}

// loadCheckpoint reads the integrity checkpoint of the store in "db".
func loadCheckpoint(fs vfs.FS) (c checkpoint, err error) {
	data, err := file.Read(fs, "db/"+integrity.CheckpointName)
	if err != nil {
		return c, err
	}
	return parseCheckpoint(data)
}

func parseCheckpoint(data []byte) (c checkpoint, err error) {
	text, ok := file.Unseal(data)
	if !ok {
		return c, fmt.Errorf("%q has another checksum", data)
	}
	lines := strings.Split(string(text), "\n")
	_, err = fmt.Sscanf(lines[1], "clean %t", &c.clean)
	_, err2 := fmt.Sscanf(lines[3], "proof %d %d", &c.log, &c.seq)
	c.logs = map[uint64]int64{}
	for _, line := range lines[4:] {
		var n uint64
		var size int64
		if found, _ := fmt.Sscanf(line, "log %d %d", &n, &size); found == 2 {
			c.logs[n] = size
		}
	}
	return c, errors.Join(err, err2)
}

// loader is a store or a snapshot of it.
type loader interface {
	Load(key []byte) ([]byte, error)
}

func wantSetting(t testing.TB, s loader, name, want string) {
	t.Helper()
	got, err := s.Load(key.Setting(nil, name))
	assert.True(t, err == nil && string(got) == want, "setting %s: got %q, %v, want %q", name, got, err, want)
}

func wantError(t testing.TB, what string, got, want error) {
	t.Helper()
	assert.ErrorIs(t, got, want, "%s: got error", what)
}

// second is the error of a call whose value nobody needs.
func second[T any](_ T, err error) error { return err }

// eventually waits until a condition holds, and fails the test when it does not
// within a time that only a broken program needs.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); !holds(); <-tick.C {
		require.False(t, time.Now().After(end), "still not so: %s", what)
	}
}

// deaths lets a store with these options end only the goroutine that it dies in.
// The reasons end up in died.
func deaths(o *Options) (died chan string) {
	died = make(chan string, 2)
	o.Fatal = func(reason string) {
		died <- reason
		runtime.Goexit() // the process would be gone
	}
	return died
}

// faultyFS fails or holds up operations on files with a suffix.
type faultyFS struct {
	suffix string
	kinds  []errorfs.OpKind
	fault  atomic.Pointer[error]         // returned by matching operations; nil for none
	shut   atomic.Pointer[chan struct{}] // waited for by matching operations; nil for none
	met    atomic.Int64                  // matching operations that failed or waited
}

func (f *faultyFS) String() string { return "faulty" }

func (f *faultyFS) MaybeError(op errorfs.Op) error {
	if !strings.HasSuffix(op.Path, f.suffix) {
		return nil
	}
	for _, kind := range f.kinds {
		if op.Kind != kind {
			continue
		}
		if c := f.shut.Load(); c != nil {
			f.met.Add(1)
			<-*c
		}
		if err := f.fault.Load(); err != nil {
			f.met.Add(1)
			return *err
		}
	}
	return nil
}

// hold makes matching operations wait until release is called.
func (f *faultyFS) hold() (release func()) {
	c := make(chan struct{})
	f.shut.Store(&c)
	return func() {
		if f.shut.Swap(nil) != nil {
			close(c)
		}
	}
}

func (f *faultyFS) fail(err error) { f.fault.Store(&err) }

var syncKinds = []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}
