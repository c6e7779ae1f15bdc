package persistence

import (
	"fmt"
	"time"
)

const (
	// spaceInterval is how often free space is looked at. Between two looks a fast
	// disk takes some tens of megabytes, far less than FreeBytesMin leaves.
	spaceInterval = 250 * time.Millisecond
	// spaceHold is how long the store stays shut after a write that found no space
	// although the file system says that there is some: a quota, or no more inodes.
	spaceHold = 2 * time.Second
	// openBytesMin is what opening needs besides the logs that it writes into
	// tables.
	openBytesMin = 4 << 20
)

// spaceLoop watches free space. It has a goroutine of its own because asking
// the file system can hang.
//
// The point is to refuse before Pebble meets the end of the disk: it would not
// return an error, it would try again for ever and block every writer.
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
	free := freeBytes(s.fs, s.dir)
	s.metrics.freeBytes.Store(free)
	if s.gate.fullSince(time.Now()) < spaceHold {
		return
	}
	need := s.options.FreeBytesMin
	if s.gate.isFull() {
		need += need / 10 // so that it does not flap at the mark
	}
	if free < 0 || need < 0 || free >= need {
		if s.gate.setFull(nil, time.Time{}) {
			s.log.Info().Int64("free_bytes", free).Msg("there is space again, taking writes")
		}
		return
	}
	reason := fmt.Errorf("%w: %d MiB are free, %d MiB must be", ErrDiskFull, free>>20, need>>20)
	if s.gate.setFull(reason, time.Time{}) {
		s.log.Error().Int64("free_bytes", free).Int64("needed_bytes", need).Msg("disk is full, refusing writes")
	}
}

// diskFull shuts the store at once. It may be called under Pebble's locks.
func (s *Store) diskFull(reason string) {
	if s.gate.setFull(fmt.Errorf("%w: %s", ErrDiskFull, reason), time.Now()) {
		s.log.Error().Str("reason", reason).Msg("disk is full, refusing writes")
	}
}

// roomToOpen refuses to open on a full disk: writing logBytes of logs into
// tables would hang there.
func (s *Store) roomToOpen(logBytes int64) error {
	free := freeBytes(s.fs, s.dir)
	need := logBytes + openBytesMin
	if s.readOnly || s.options.FreeBytesMin < 0 || free < 0 || free >= need {
		return nil
	}
	return fmt.Errorf("%w: opening needs %d MiB and %d MiB are free; nothing was changed, make room and start again",
		ErrDiskFull, need>>20, free>>20)
}
