package persistence

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/engine"
	"troupe/persistence/internal/file"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// replacementTableBytes is the size of the tables in which a shard arrives.
const replacementTableBytes = 64 << 20

// replacement is the rows of a group that another node sends: replica.Replacement. They are written into tables beside
// the store's, which take the place of the group's rows in one step of Pebble's.
type replacement struct {
	s     *Store
	first key.Shard
	last  key.Shard
	of    *replica.Group
	table tableWriter // nil between two tables
	bytes int64       // of the table being written
	paths []string
}

// tableWriter is a *sstable.Writer.
type tableWriter interface {
	Set(key, value []byte) error
	Close() error
}

func (l localRows) Replace() (replica.Replacement, error) {
	if err := l.s.commits.Gate.Refusal(); err != nil {
		return nil, err
	}
	g := l.s.Replica(l.sh)
	if g == nil {
		return nil, ErrNotLed
	}
	return &replacement{s: l.s, first: l.sh, last: l.sh, of: g}, nil
}

func (r *replacement) Reach(last uint16) error {
	if key.Shard(last) > r.first && (r.first == key.Meta || int(last) >= r.s.shards) {
		return fmt.Errorf("a copy of the shards from %d to %d", r.first, last)
	}
	r.last = max(r.last, key.Shard(last))
	own := key.Shard(r.of.Last())
	if err := r.s.replicas.Claim(r.first, r.last); err != nil {
		return err
	}
	for sh := int(own) + 1; sh <= int(r.last); sh++ { // NB: also one that is just starting, or being removed
		has, err := r.s.hasReplica(key.Shard(sh))
		if err == nil && has {
			err = fmt.Errorf("%w: shard %d", replica.ErrOverlap, sh)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *replacement) Set(k, value []byte) error {
	if bytes.Compare(k, key.ShardPrefix(nil, r.first)) < 0 || bytes.Compare(k, key.ShardEnd(nil, r.last)) >= 0 {
		return fmt.Errorf("key %x in a copy of the shards from %d to %d", k, r.first, r.last)
	}
	if r.table == nil {
		if err := r.begin(); err != nil {
			return err
		}
	}
	if err := r.table.Set(k, value); err != nil {
		return err
	}
	if r.bytes += int64(len(k) + len(value)); r.bytes > replacementTableBytes {
		return r.end()
	}
	return nil
}

func (r *replacement) begin() error {
	s := r.s
	// NB: the name has the suffix of files that Open removes.
	path := s.fs.PathJoin(s.dir, fmt.Sprintf("shard-%d-%d%s", r.first, len(r.paths), file.TmpSuffix))
	f, err := s.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	r.paths = append(r.paths, path)
	g := s.read()
	if g == nil {
		return errors.Join(ErrClosed, f.Close())
	}
	defer g.Leave()
	o := pebbleOptions(s, nil)
	o.EnsureDefaults()
	r.table, r.bytes = sstable.NewWriter(objstorageprovider.NewFileWritable(f), o.MakeWriterOptions(0, engine.Pebble(g).TableFormat())), 0
	return nil
}

func (r *replacement) end() error {
	table := r.table
	r.table = nil
	if table == nil {
		return nil
	}
	return table.Close()
}

func (r *replacement) Commit() error {
	if err := r.end(); err != nil {
		r.Abort()
		return err
	}
	g := r.s.read()
	if g == nil {
		r.Abort()
		return ErrClosed
	}
	defer g.Leave()
	// NB: with a range that has no end, Pebble would put the rows in place and leave the old ones. What the group had and has no more goes too: the
	// group that it was divided from begins here without it. NB: asked now, as the group may have been divided here while the copy came.
	rows := pebble.KeyRange{Start: key.ShardPrefix(nil, r.first), End: key.ShardEnd(nil, max(r.last, key.Shard(r.of.Last())))}
	r.s.replicas.Uncover(r.of, int(r.last))
	_, err := engine.Pebble(g).IngestAndExcise(context.Background(), r.paths, nil, nil, rows)
	if err != nil {
		r.Abort()
		return fmt.Errorf("put a copy of the shards from %d to %d in place: %w", r.first, r.last, err)
	}
	r.remove() // Pebble has links of its own
	return nil
}

func (r *replacement) Abort() {
	_ = r.end()
	r.remove()
	r.s.replicas.Uncover(r.of, int(r.of.Last()))
}

func (r *replacement) remove() {
	for _, path := range r.paths {
		_ = r.s.fs.Remove(path) // Open removes what stays
	}
	r.paths = nil
}
