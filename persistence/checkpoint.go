package persistence

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// Checkpoint makes a store of its own in a new folder below this one's: all that was durable before the call, perhaps
// more, and nothing that is not durable when it returns. Tables are hard links, logs are copies; writes go on. The caller
// removes the folder, or the next Open does. It has the same id. ErrReplicated: one node has no
// moment of all shards; see Gather.
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

// Gather makes a standalone store, as Checkpoint does, out of the rows that from gives set, in the order of their keys. id
// tells it from other stores. The same rows make the same tables: one ends behind a key whose hash says so, and so behind
// a change the next ones are as they were.
func (s *Store) Gather(id string, from func(set func(key, value []byte) error) error) (dir string, err error) {
	dir = s.fs.PathJoin(s.dir, disk.CheckpointPrefix+rand.Text())
	o := s.options
	o.Replication, o.IDFile, o.Shards, o.CacheBytes = nil, "", s.shards, gatherCacheBytes
	to, err := Open(dir, o)
	if err == nil {
		err = errors.Join(to.fill(from), to.Close(), disk.Folder{FS: s.fs, Dir: dir}.SetID(id))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("gather the rows of the cluster: %w", err), s.fs.RemoveAll(dir))
	}
	return dir, nil
}

const (
	gatherCacheBytes = 8 << 20
	// gatherMask is what the hash of a key must not have in common with it to end a table: one of 4,096 does.
	gatherMask = 1<<12 - 1
)

// fill puts rows into a store that has none.
func (s *Store) fill(from func(set func(key, value []byte) error) error) error {
	to, err := s.tables("gathered")
	if err != nil {
		return err
	}
	defer to.Remove()
	err = from(func(k, value []byte) error {
		if err := to.Set(k, value); err != nil {
			return err
		}
		if crc32.ChecksumIEEE(k)&gatherMask != 0 {
			return nil
		}
		if free, least := disk.FreeBytes(s.fs, s.dir), 2*s.options.FreeBytesMin; least > 0 && free >= 0 && free < least { // NB: the node beside needs its own
			return fmt.Errorf("%w: all rows of the cluster need room beside the store, and %d MiB are to stay free", ErrDiskFull, least>>20)
		}
		return to.End()
	})
	if err = errors.Join(err, to.End()); err != nil || len(to.Paths) == 0 {
		return err
	}
	g := s.read()
	if g == nil {
		return ErrClosed
	}
	defer g.Leave()
	return engine.Pebble(g).Ingest(context.Background(), to.Paths)
}
