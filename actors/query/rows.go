package query

import (
	"context"
	"errors"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
)

// Row is a row of a list that is stored in order. Its slices are valid during the
// call that gets it.
type Row struct {
	ID    persistence.ID
	Place []byte // what the list is sorted by
	Value []byte
}

// Rows calls yield with what decode makes of each row under a list prefix of
// persistence.EveryShard, in the order of places and ids. It sees one consistent moment, with everything that
// was acknowledged before the call. decode also says how many bytes an item takes,
// which bounds what is held for a yield that waits; others are read meanwhile.
//
// It returns failure.ErrBusy when no slot comes free in time or the list takes too
// long, an error of decode, and yield's own.
func Rows[T any](ctx context.Context, s *Service, user identity.UserID, prefix []byte, decode func(Row) (item T, bytes int, err error), yield func(T) error) error {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	if s.stopped.Err() != nil {
		return failure.ErrUnavailable
	}
	slots, err := s.enter(ctx, s.lists, user, s.o.TimeMax) // NB: people wait rather than be sent away
	if err != nil {
		return s.reason(err)
	}
	defer slots.leave()
	if s.stopped.Err() != nil { // NB: Stop waits for slots that were taken before
		return failure.ErrUnavailable
	}
	out, t := batch[T]{yield: yield}, &throttle{service: s, ctx: ctx, slots: slots}
	err = s.merged(t, prefix, func(row Row) error {
		item, bytes, err := decode(row)
		if err != nil {
			s.damaged.Add(1)
			return err
		}
		return out.add(t, item, bytes)
	})
	if err == nil {
		err = out.flush(t)
	}
	return s.reason(err)
}

// merged calls visit with the rows of all shards in order.
func (s *Service) merged(t *throttle, prefix []byte, visit func(Row) error) (err error) {
	snapshot := s.o.Store.Snapshot()
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	if err := s.o.Store.AwaitDurable(); err != nil {
		return failure.Errorf(failure.ErrUnavailable, "%w", err) // a read has no outcome to be in doubt about
	}
	var read int64
	m := &merged{cursor: snapshot.Merge(persistence.Range{Prefix: prefix}), kind: listRow, rows: &read}
	defer func() { err = errors.Join(err, failure.OfStore(m.close())) }()
	for {
		if read%checkEvery == 0 {
			if err := t.slots.busy.Yield(t.ctx); err != nil {
				return err
			}
			if err := t.ctx.Err(); err != nil {
				return err
			}
		}
		c, ok, err := m.next()
		if err != nil || !ok {
			return failure.OfStore(err)
		}
		if err := visit(Row{ID: c.id, Place: c.value, Value: c.record}); err != nil {
			return err
		}
	}
}
