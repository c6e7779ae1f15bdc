package persistence

import (
	"context"

	"troupe/persistence/internal/compaction"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// CompactReport says what Compact did.
type CompactReport = compaction.Report

// Compact writes all tables again, so that no byte of a row that was deleted before is in a file of the store, save for
// what CompactReport.Manifests says. It works beside reads and writes, also below Options.FreeBytesMin, takes as long as reading and writing
// the store does, and waits for reads that began before. In a node of a cluster the logs of its groups are emptied too;
// other nodes have their own. ctx ends it without harm. say is told what begins. ErrCompacting: another one is running.
func (s *Store) Compact(ctx context.Context, say func(step string)) (CompactReport, error) {
	g := s.read()
	if g == nil {
		return CompactReport{}, ErrClosed
	}
	defer g.Leave()
	return compaction.Run(ctx, &compaction.Options{
		Of: g, FS: s.fs, Dir: s.dir, Groups: s.Groups(), Fresh: &s.freshLogs, EmptyLogs: s.recorder.EmptyLogs, Say: say,
		Apply: func(repr []byte) error {
			return localRows{s, key.Meta}.Write(replica.Vital, func(w replica.Batch) { w.Apply(repr) })
		},
	})
}
