package persistence

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/cockroachdb/pebble/v2/wal"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// TestDamagedOptionsAreNamed: whoever has to restore a file is told which.
func TestDamagedOptionsAreNamed(t *testing.T) {
	dir := t.TempDir()
	store, err := Open(dir, Options{Log: zerolog.Nop()})
	require.NoError(t, err)
	require.NoError(t, store.Close())
	found, err := filepath.Glob(filepath.Join(dir, "OPTIONS-*"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	newest := slices.Max(found)
	require.NoError(t, os.WriteFile(newest, []byte("[Version]\n  pebble\n"), 0o600))
	_, err = Open(dir, Options{Log: zerolog.Nop()})
	assert.ErrorIs(t, err, ErrDamaged)
	assert.ErrorContains(t, err, filepath.Base(newest))
}
