package query

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/key"
)

// IsMerged reports whether lists are merged of what several nodes have, so that there is no moment of all.
func (s *Service) IsMerged() bool { return s.o.Fanout != nil }

func (s *Service) readRows(ctx context.Context, shards []key.Shard, in *selected, yield func(rowItem) error) (end struct{}, err error) {
	keep := func(_ *Reader, r Row) (rowItem, int, error) {
		r.Place, r.Value = bytes.Clone(r.Place), bytes.Clone(r.Value)
		return rowItem{r}, len(r.Place) + len(r.Value), nil
	}
	return end, rowsIn(ctx, s, shards, in.User, in.Of, keep, yield)
}

// rowsAhead is how many rows of each part are kept.
const rowsAhead = 256

func (s *Service) mergedRows(ctx context.Context, of *selected, yield func(Row) error) error {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	order := func(a, b rowItem) int {
		order := orderOf(a.Place, a.ID, &position{b.Place, b.ID})
		if of.Of.Backward {
			return -order
		}
		return order
	}
	_, err := s.kinds.rows.Merge(ctx, of, fanout.Merging[rowItem]{Order: order, Ahead: rowsAhead}, func(r rowItem) error { return yield(r.Row) })
	return s.reason(err)
}

// keysOf asks for rows by their keys.
type keysOf struct {
	User identity.UserID
	Keys [][]byte
}

// keyed are the rows that there are of the first keys.
type keyed struct {
	Rows []keyedRow
	Seen int // how many keys were looked for: as many as were asked for, or fewer, and one at least
}

type keyedRow struct {
	Of    int // which key
	Value []byte
}

// keyedBytes is about how much of rows is sent at a time: those that are kept for others to be read are in memory.
const keyedBytes = 4 << 20

// readKeys returns the rows that there are in the shards. It stops when they are large. It is brief, since who asks may
// be in the midst of a list.
func (s *Service) readKeys(ctx context.Context, shards []key.Shard, in *keysOf, _ func(struct{}) error) (out keyed, err error) {
	err = s.read(ctx, shards, s.lists.brief(in.User), func(r *Reader) error {
		size := 0
		for ; out.Seen < len(in.Keys) && size < keyedBytes; out.Seen++ {
			k := in.Keys[out.Seen]
			if !slices.Contains(shards, key.ShardOf(k)) {
				continue
			}
			if err := r.Step(); err != nil {
				return err
			}
			value, err := r.Load(k)
			switch {
			case err == nil:
				out.Rows = append(out.Rows, keyedRow{out.Seen, value})
				size += len(value)
			case !errors.Is(err, persistence.ErrNotFound):
				return failure.OfStore(err)
			}
		}
		return nil
	})
	return out, err
}

// Name names an instance.
type Name struct {
	Workflow string
	ID       key.ID
}

// ReadInstances is ReadKeys for the records of instances.
func (s *Service) ReadInstances(ctx context.Context, user identity.UserID, of []Name, read func(Loader) error) error {
	keys := make([][]byte, len(of))
	for i, n := range of {
		keys[i] = key.Record(nil, s.o.Store.ShardOf(n.ID), n.Workflow, n.ID)
	}
	return s.ReadKeys(ctx, user, keys, read)
}

// ReadKeys calls read with what has some rows, which read loads in their order. Otherwise it is Read of a store that has all
// shards; in a cluster the rows are not of one moment.
func (s *Service) ReadKeys(ctx context.Context, user identity.UserID, keys [][]byte, read func(Loader) error) error {
	if !s.IsMerged() {
		return s.Read(ctx, s.o.Store.Numbered(), user, func(r *Reader) error { return read(r) })
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	return s.reason(read(&keyedRows{ctx: ctx, service: s, of: keysOf{user, keys}, found: map[string][]byte{}}))
}

// keysAhead is how many rows are asked for at a time.
const keysAhead = 64

// keyedRows has rows of all shards, which are asked for when the first of them is needed.
type keyedRows struct {
	ctx     context.Context //nolint:containedctx // of the call
	service *Service
	of      keysOf // those that were not asked for yet
	found   map[string][]byte
}

// Load implements Loader.
func (r *keyedRows) Load(rowKey []byte) ([]byte, error) {
	for {
		value, ok := r.found[string(rowKey)]
		switch {
		case value != nil:
			return value, nil
		case ok, len(r.of.Keys) == 0:
			return nil, persistence.ErrNotFound
		}
		if err := r.ask(); err != nil {
			return nil, err
		}
	}
}

// ask asks for the next rows. Those that not all parts have come to are asked for again.
func (r *keyedRows) ask() error {
	now := keysOf{r.of.User, r.of.Keys[:min(keysAhead, len(r.of.Keys))]}
	var shards []key.Shard
	for _, k := range now.Keys {
		shards = append(shards, key.ShardOf(k))
	}
	slices.Sort(shards)
	parts, err := r.service.kinds.keyed.Merge(r.ctx, &now, fanout.Merging[struct{}]{Shards: slices.Compact(shards)}, nil)
	if err != nil {
		return err
	}
	seen := len(now.Keys)
	for _, part := range parts {
		seen = min(seen, part.Seen)
	}
	if seen < 1 {
		return failure.Errorf(failure.ErrUnavailable, "no row was looked for")
	}
	clear(r.found)
	for _, k := range now.Keys[:seen] {
		r.found[string(k)] = nil
	}
	for _, part := range parts {
		for _, row := range part.Rows {
			if row.Of < 0 || row.Of >= len(now.Keys) {
				return failure.Errorf(failure.ErrUnavailable, "a row that was not asked for")
			}
			if row.Of < seen {
				r.found[string(now.Keys[row.Of])] = append([]byte{}, row.Value...)
			}
		}
	}
	r.of.Keys = r.of.Keys[seen:]
	return nil
}
