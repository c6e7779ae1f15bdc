package persistence

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/engine"
	"troupe/persistence/internal/table"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// replacement is the rows of a group that another node sends: replica.Replacement. They are written into tables beside
// the store's, which take the place of the group's rows in one step of Pebble's.
type replacement struct {
	s     *Store
	first key.Shard
	last  key.Shard
	of    *replica.Group
	rows  *table.Writer
}

func (l localRows) Replace() (replica.Replacement, error) {
	if err := l.s.commits.Gate.Refusal(); err != nil {
		return nil, err
	}
	g := l.s.Replica(l.sh)
	if g == nil {
		return nil, ErrNotLed
	}
	rows, err := l.s.tables(fmt.Sprintf("shard-%d", l.sh))
	return &replacement{s: l.s, first: l.sh, last: l.sh, of: g, rows: rows}, err
}

// tables writes tables beside those of the store, with a name of their own.
func (s *Store) tables(name string) (*table.Writer, error) {
	g := s.read()
	if g == nil {
		return nil, ErrClosed
	}
	defer g.Leave()
	o := pebbleOptions(s, nil)
	o.EnsureDefaults()
	of := o.MakeWriterOptions(0, engine.Pebble(g).TableFormat())
	return &table.Writer{FS: s.fs, Dir: s.dir, Name: name, Begin: func(f vfs.File) table.Rows {
		return sstable.NewWriter(objstorageprovider.NewFileWritable(f), of)
	}}, nil
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
	return r.rows.Set(k, value)
}

func (r *replacement) Commit() error {
	if err := r.rows.End(); err != nil {
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
	_, err := engine.Pebble(g).IngestAndExcise(context.Background(), r.rows.Paths, nil, nil, rows)
	if err != nil {
		r.Abort()
		return fmt.Errorf("put a copy of the shards from %d to %d in place: %w", r.first, r.last, err)
	}
	r.rows.Remove() // Pebble has links of its own
	return nil
}

func (r *replacement) Abort() {
	_ = r.rows.End()
	r.rows.Remove()
	r.s.replicas.Uncover(r.of, int(r.of.Last()))
}
