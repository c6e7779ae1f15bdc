package persistence

import (
	"fmt"
	"time"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/commit"
	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/engine"
)

const (
	// spaceInterval is how often free space is looked at. Between two looks a fast
	// disk takes some tens of megabytes, far less than FreeBytesMin leaves.
	spaceInterval = 250 * time.Millisecond
	// openBytesMin is what opening, or flushing, needs besides the logs that it writes into tables.
	openBytesMin = 4 << 20
	// scarceLogs is how many logs' room there must be above FreeBytesMin for old
	// logs to keep theirs: as many as Pebble keeps for later and has in use.
	scarceLogs = 9
)

// spaceLoop watches free space. It has a goroutine of its own because asking the file system can hang.
//
// The point is to refuse before Pebble meets the end of the disk: it would not return an error, it would try again forever and block every writer.
func (s *Store) spaceLoop() {
	defer close(s.spaceDone)
	ticker := time.NewTicker(spaceInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.pollSpace()
		}
	}
}

func (s *Store) pollSpace() {
	free := disk.FreeBytes(s.fs, s.dir)
	s.metrics.freeBytes.Store(free)
	s.reclaimSpace(free)
	if err := s.closeOld(); err != nil {
		s.log.Warn().Err(err).Msg("closing what was open read-only")
	}
	if s.commits.Gate.FullFor(time.Now()) < commit.FullHold {
		return
	}
	need := s.options.FreeBytesMin
	if s.commits.Gate.IsFull() {
		need += need / 10 // so that it does not flap at the limit
	}
	if s.space.waiting {
		need = max(need, s.space.openBytes)
	}
	if free < 0 || need < 0 || free >= need {
		if s.space.waiting && !s.reopen() {
			return
		}
		if s.commits.Gate.SetFull(nil, time.Time{}) {
			s.log.Info().Int64("free_bytes", free).Msg("there is space again, taking writes")
		}
		return
	}
	reason := fmt.Errorf("%w: %d MiB are free, at least %d MiB must be free", ErrDiskFull, free>>20, need>>20)
	if s.commits.Gate.SetFull(reason, time.Time{}) {
		s.log.Error().Int64("free_bytes", free).Int64("needed_bytes", need).Msg("disk is full, refusing writes")
	}
}

// reclaimSpace frees disk space when there is little. The space of old logs goes at once. When writes are refused, it
// flushes the memtable, so that its logs are not needed any more.
func (s *Store) reclaimSpace(free int64) {
	if s.options.FreeBytesMin < 0 || free < 0 || s.space.waiting {
		return
	}
	s.recorder.SetScarce(free < s.options.FreeBytesMin+scarceLogs*s.options.logBytes())
	applied := s.commits.Counters.Appended.Load()
	if !s.commits.Gate.IsFull() || s.space.flushed == applied || s.commits.Writing() {
		return // NB: only without running commits can a writer not hold up the flush
	}
	db := engine.Pebble(s.db.Load())
	m := db.Metrics()
	if m.MemTable.Count > 1 || free < int64(m.WAL.Size)+openBytesMin {
		return // a flush is running, or would find no room: look again
	}
	if _, err := db.AsyncFlush(); err != nil {
		s.log.Warn().Err(err).Msg("a full disk: what is in memory cannot be written into tables")
		return
	}
	s.space.flushed = applied
}

// roomToOpen decides whether there is room to open the store for writing: without it, writing the logs into tables
// would hang. Otherwise the store is opened to read, and for writing as soon as there is room. Old logs make some.
func (s *Store) roomToOpen(found integrity.Found) error {
	s.space.openBytes = found.LogBytes + openBytesMin
	if s.readOnly || s.options.FreeBytesMin < 0 || s.hasRoom() {
		return nil
	}
	if err := s.folder.RemoveLogs(found.OldestLog); err != nil {
		return err
	}
	if s.hasRoom() {
		return nil
	}
	s.awaitRoom()
	return nil
}

// awaitRoom has the store opened to read, and for writing when there is room.
func (s *Store) awaitRoom() {
	s.space.waiting = true
	reason := fmt.Errorf("%w: opening for writing needs %d MiB", ErrDiskFull, s.space.openBytes>>20)
	s.commits.Gate.SetFull(reason, time.Time{})
	s.log.Error().Int64("free_bytes", disk.FreeBytes(s.fs, s.dir)).Int64("needed_bytes", s.space.openBytes).
		Msg("disk is full, opening the store read-only until there is room")
}

func (s *Store) hasRoom() bool {
	free := disk.FreeBytes(s.fs, s.dir)
	return free < 0 || free >= s.space.openBytes
}
