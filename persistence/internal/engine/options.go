package engine

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"
)

// Options are those that every opening of a store's files shares.
func Options(fs vfs.FS, lock *pebble.Lock, cacheBytes, memTableBytes int64) *pebble.Options {
	o := &pebble.Options{
		FS:                          fs,
		Lock:                        lock,
		FormatMajorVersion:          pebble.FormatNewest,
		Merger:                      SumMerger,
		CacheSize:                   cacheBytes,
		MemTableSize:                uint64(memTableBytes),
		MemTableStopWritesThreshold: 4,
		// Eight flushes are merged into the next level at once; persistence/DESIGN.md has a row about it.
		L0CompactionThreshold:      16,
		L0StopWritesThreshold:      64,
		MaxManifestFileSize:        16 << 20,
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 2 },
	}
	for i := range o.Levels {
		// Most lookups of an idempotency key find nothing; ten bits per key let 99
		// of 100 of them end without reading a block.
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// Log gives Pebble's own messages to zerolog.
type Log struct {
	Log zerolog.Logger
	Die func(reason string)
}

// Infof drops Pebble's running commentary unless somebody debugs.
func (l Log) Infof(format string, args ...any) {
	if e := l.Log.Debug(); e.Enabled() {
		e.Msg(fmt.Sprintf(format, args...))
	}
}

// Errorf implements pebble.Logger.
func (l Log) Errorf(format string, args ...any) { l.Log.Error().Msg(fmt.Sprintf(format, args...)) }

// Fatalf must not return: Pebble calls it when a commit has half happened.
func (l Log) Fatalf(format string, args ...any) { l.Die(fmt.Sprintf(format, args...)) }
