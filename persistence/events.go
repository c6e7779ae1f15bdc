package persistence

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/engine"
)

// listener turns Pebble's events into counters, log lines and the gate's reasons. Pebble calls some of them with its
// own locks held: none may wait, except WALCreated, which says why it may.
func listener(s *Store) *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: s.backgroundFailed,
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			// NB: without this handler Pebble ends the process at the first damaged block that somebody reads.
			s.metrics.corruptBlocks.Add(1)
			s.log.Error().Str("file", info.Path).Err(info.Details).Msg("damaged block in a table")
		},
		DiskSlow: s.diskSlow,
		LowDiskSpace: func(info pebble.LowDiskSpaceInfo) {
			s.log.Warn().Uint64("free_bytes", info.AvailBytes).Uint64("of_bytes", info.TotalBytes).Int("below_percent", info.PercentThreshold).
				Msg("disk space is running low")
		},
		FlushEnd:        func(info pebble.FlushInfo) { s.tablesChanged(info.Err) },
		CompactionEnd:   func(info pebble.CompactionInfo) { s.tablesChanged(info.Err) },
		TableIngested:   func(info pebble.TableIngestInfo) { s.tablesChanged(info.Err) },
		ManifestCreated: func(pebble.ManifestCreateInfo) { s.recorder.StructureChanged() },
		// It is called while a commit switches to a new log, before the first record is written there, and waits until the
		// integrity checkpoint names the log: only then does the log's disappearance show. That is once per memtable.
		WALCreated: func(info pebble.WALCreateInfo) {
			if info.Err == nil {
				s.recorder.LogCreated(uint64(info.FileNum))
			}
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			s.metrics.writeStalls.Add(1)
			s.commits.WriteStalls(true)
			s.log.Warn().Str("reason", info.Reason).Msg("writers are held back")
		},
		WriteStallEnd: func() { s.commits.WriteStalls(false) },
	}
}

// backgroundFailed closes the gate: Pebble tries again forever, and would block writers without an error once memory is full.
func (s *Store) backgroundFailed(err error) {
	n := s.metrics.backgroundErrors.Add(1)
	if n&(n-1) == 0 { // hundreds a second on a full disk: the 1st, 2nd, 4th, 8th and so on will do
		s.log.Error().Err(err).Uint64("failures", n).Msg("flush or compaction failed")
	}
	if errors.Is(err, syscall.ENOSPC) {
		s.diskFull("a flush or compaction found no space")
		return
	}
	if pebble.IsCorruptionError(err) {
		return // writing works; the damaged table fails its own reads
	}
	s.commits.Gate.SetBackground(err, time.Now())
}

// tablesChanged follows each flush and compaction.
func (s *Store) tablesChanged(err error) {
	if err != nil {
		return // backgroundFailed is told as well, unless it was only cancelled
	}
	s.commits.Gate.SetBackground(nil, time.Time{})
	s.recorder.StructureChanged()
}

// slowDiskMin is the shortest disk operation that is reported as slow.
const slowDiskMin = 3 * time.Second

func (s *Store) diskSlow(info vfs.DiskSlowInfo) {
	s.metrics.slowDisk.Add(1)
	s.log.Warn().Str("path", info.Path).Dur("tookMs", info.Duration).Msg("slow disk operation")
}

// diskFull shuts the store at once. It may be called under Pebble's locks.
func (s *Store) diskFull(reason string) {
	if s.commits.Gate.SetFull(fmt.Errorf("%w: %s", ErrDiskFull, reason), time.Now()) {
		s.log.Error().Str("reason", reason).Msg("disk is full, refusing writes")
	}
}

// pebbleOptions are the options that every opening of the files shares.
func pebbleOptions(s *Store, lock *pebble.Lock) *pebble.Options {
	o := engine.Options(s.fs, lock, s.options.CacheBytes, s.options.MemTableBytes)
	o.ReadOnly = s.readOnly
	return o
}
