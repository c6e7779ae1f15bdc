package persistence

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// Checkpoint makes a store of its own in a new folder below this one's: all that was durable before the call, perhaps
// more, and nothing that is not durable when it returns. Tables are hard links, logs are copies; writes go on. The caller
// removes the folder, or the next Open does. It has the same id. ErrReplicated: one node has no moment of all shards.
func (s *Store) Checkpoint() (dir string, err error) {
	g := s.read()
	if g == nil {
		return "", ErrClosed
	}
	defer g.Leave()
	db, free := engine.Pebble(g), disk.FreeBytes(s.fs, s.dir)
	if need := int64(db.Metrics().WAL.Size) + openBytesMin; s.options.FreeBytesMin >= 0 && free >= 0 && free < need {
		return "", fmt.Errorf("%w: copying the logs needs %d MiB", ErrDiskFull, need>>20)
	}
	if s.replicated {
		return "", ErrReplicated
	}
	dir = s.fs.PathJoin(s.dir, disk.CheckpointPrefix+rand.Text())
	err = db.Checkpoint(dir, pebble.WithFlushedWAL()) // NB: flushing fails at once if the store is open to be read
	if err == nil {                                   // NB: the commit of nothing comes last: the logs may have had what was not synced yet
		err = errors.Join(integrity.Adopt(s.fs, dir), s.folder.CopyMarks(dir), s.Commit(s.NewBatch(key.Meta)))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("checkpoint of store %s: %w", s.dir, err), s.fs.RemoveAll(dir))
	}
	return dir, nil
}
