package persistence

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/cockroachdb/pebble/v2/wal"
	"github.com/stretchr/testify/assert"

	"troupe/persistence/internal/engine"
)

// A log that is not in the checkpoint can disappear without a trace.
func TestTheCheckpointNamesALogBeforeItsFirstRecord(t *testing.T) {
	mem := vfs.NewMem()
	var mu sync.Mutex
	seen := map[string]bool{}
	var unknown []string
	watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFileWrite || !strings.HasSuffix(op.Path, ".log") {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[op.Path] {
			return nil
		}
		seen[op.Path] = true
		c, err := loadCheckpoint(mem)
		if errors.Is(err, os.ErrNotExist) {
			return nil // the log of a store that is being created
		}
		n, _, _ := wal.ParseLogFilename(mem.PathBase(op.Path))
		if err != nil || c.logs[uint64(n)] == 0 {
			unknown = append(unknown, op.Path)
		}
		return nil
	})
	o := small(errorfs.Wrap(mem, watch))
	o.MemTableBytes = 64 << 10
	s := open(t, o)
	for range 300 {
		mustCommit(t, s, "a", strings.Repeat("x", 1<<10))
	}
	mu.Lock()
	defer mu.Unlock()
	assert.GreaterOrEqual(t, len(seen), 3, "only")
	assert.Empty(t, unknown, "the checkpoint did not know %q when their first record was written", unknown)
}

// The last commit may be the first of its log, and the log before be in tables.
func TestTheCheckpointOfTheCloseKnowsTheLogOfTheLastCommit(t *testing.T) {
	fs := vfs.NewMem()
	o := small(fs)
	o.MemTableBytes = 64 << 10
	s := mustOpen(t, "db", o)
	newest := s.recorder.NewestLog()
	for s.recorder.NewestLog() == newest {
		mustCommit(t, s, "a", strings.Repeat("x", 1<<10))
	}
	newest = s.recorder.NewestLog()
	eventually(t, "the log before is in tables", func() bool { return engine.Pebble(s.db.Load()).Metrics().Flush.Count > 0 })
	must(t, s.Close())
	c, err := loadCheckpoint(fs)
	must(t, err)
	assert.Equal(t, newest, c.log, "got log")
	must(t, fs.Remove(fs.PathJoin("db", fmt.Sprintf("%06d.log", newest))))
	f, err := fs.Create(fs.PathJoin("db", fmt.Sprintf("%06d.log", newest)), vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write(make([]byte, c.logs[newest]))
	must(t, errors.Join(err, f.Close()))
	_, err = Open("db", o)
	wantError(t, "a start after the log was emptied", err, ErrDamaged)
}
