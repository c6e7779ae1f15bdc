package persistence

import (
	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/engine"
)

// Metrics is one reading of the store's counters. Counts run from Open on.
type Metrics struct {
	Appended      uint64 // sets of writes applied
	AppendedBytes uint64 // their size in the log
	Committed     uint64 // acknowledged as durable
	Refused       uint64 // turned away without being applied
	Unknown       uint64 // told ErrOutcomeUnknown
	Barriers      uint64
	Waiting       int // tickets not answered, and those whose outcome is not known yet

	Syncs       engine.Latency // of the log
	Stalls      uint64         // times that commits did not get through
	WriteStalls uint64         // times that Pebble held writers back

	BackgroundErrors uint64 // failed flushes and compactions
	SlowDisk         uint64 // disk operations of more than some seconds
	CorruptReads     uint64 // reads that returned ErrCorrupt
	CorruptBlocks    uint64 // damaged blocks that were met, also in the background
	CheckpointWrites uint64 // of the integrity checkpoint
	CheckpointErrors uint64 // checkpoints that could not be written

	FreeBytes  int64  // on the file system; -1 when it does not say
	DiskBytes  uint64 // the files in the store's folder
	CacheBytes int64
	engine.Levels
}

// Metrics reads the counters. It takes Pebble's lock for a moment; once a second is fine, once a request is not.
func (s *Store) Metrics() Metrics {
	m := Metrics{
		Appended: s.commits.Counters.Appended.Load(), AppendedBytes: s.commits.Counters.AppendedBytes.Load(),
		Committed: s.commits.Counters.Committed.Load(), Refused: s.commits.Counters.Refused.Load(),
		Unknown: s.commits.Counters.Unknown.Load(), Barriers: s.metrics.barriers.Load(),
		Waiting: s.commits.Waiting(),
		Stalls:  s.commits.Counters.Stalls.Load(), WriteStalls: s.metrics.writeStalls.Load(),
		BackgroundErrors: s.metrics.backgroundErrors.Load(), SlowDisk: s.metrics.slowDisk.Load(),
		CorruptReads: s.metrics.corruptReads.Load(), CorruptBlocks: s.metrics.corruptBlocks.Load(),
		FreeBytes: s.metrics.freeBytes.Load(),
	}
	m.CheckpointWrites, m.CheckpointErrors = s.recorder.Counts()
	g := s.read()
	if g == nil {
		return m
	}
	defer g.Leave()
	p := engine.Pebble(g).Metrics()
	m.DiskBytes, m.CacheBytes = disk.Bytes(s.fs, s.dir), p.BlockCache.Size
	m.Levels, m.Syncs = engine.LevelsOf(p), engine.LatencyOf(p.LogWriter.FsyncLatency)
	return m
}
