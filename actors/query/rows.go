package query

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Rows calls yield with what decode makes of each selected row, in the order of places and ids. It sees one consistent
// moment, which decode may read too unless the Service IsMerged, with everything that was acknowledged before the call, as Query does. decode also
// says how many bytes an item takes, which bounds what is held for a yield that waits; others are read meanwhile.
//
// It returns failure.ErrBusy when no slot comes free in time or the list takes too long, failure.ErrUnavailable as Query
// does, an error of decode, and yield's own.
func Rows[T any](ctx context.Context, s *Service, user identity.UserID, of Selection, decode func(*Reader, Row) (item T, bytes int, err error), yield func(T) error) error {
	if s.o.Fanout != nil {
		return s.mergedRows(ctx, &selected{user, of}, func(row Row) error {
			item, _, err := decode(nil, row)
			if err != nil {
				return err
			}
			return yield(item)
		})
	}
	return rowsIn(ctx, s, s.o.Store.Numbered(), user, of, decode, yield)
}

func rowsIn[T any](ctx context.Context, s *Service, shards []key.Shard, user identity.UserID, of Selection, decode func(*Reader, Row) (item T, bytes int, err error), yield func(T) error) error {
	out := batch[T]{yield: yield}
	return s.list(ctx, shards, s.lists.slots(user), func(t *throttle, h held) error {
		err := s.at(h, func(snapshot *persistence.Snapshot) error {
			from := s.reader(t, snapshot)
			return s.selected(t, snapshot, of, func(row Row) error {
				item, bytes, err := decode(from, row)
				if err != nil {
					s.damaged.Add(1)
					return err
				}
				return out.add(t, item, bytes)
			})
		})
		if err != nil {
			return err
		}
		return out.flush(t)
	})
}

func (s *Service) list(ctx context.Context, shards []key.Shard, slots *slots, do func(*throttle, held) error) error {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	if s.stopped.Err() != nil {
		return failure.ErrUnavailable
	}
	held, err := s.current.await(ctx, shards)
	if err != nil {
		return err
	}
	defer slots.leave()
	if err := s.enter(ctx, slots, s.o.TimeMax); err != nil { // NB: people wait rather than be sent away
		return s.reason(err)
	}
	if s.stopped.Err() != nil { // NB: Stop waits for slots that were taken before
		return failure.ErrUnavailable
	}
	return s.reason(do(&throttle{ctx: ctx, slots: slots}, held))
}

func (s *Service) at(h held, read func(*persistence.Snapshot) error) error {
	snapshot := s.o.Store.SnapshotOf(h.shards)
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	if err := s.current.holds(h); err != nil {
		return err
	}
	if err := s.o.Store.AwaitDurable(); err != nil {
		return failure.Errorf(failure.ErrUnavailable, "%w", err) // a read has no outcome to be in doubt about
	}
	return read(snapshot)
}

// Reader reads one consistent moment, with everything that was acknowledged before Read was called.
type Reader struct {
	*persistence.Snapshot
	rows rows
}

// Step counts a step of the work. Now and then it lets others work; an error ends the work.
func (r *Reader) Step() error { return r.rows.step() }

// Read calls read once, beside the lists and with a slot of theirs. read ends soon, and holds what it has read in
// memory. In a cluster the node leads the shards: else the error is failure.ErrNotLeader.
func (s *Service) Read(ctx context.Context, shards []key.Shard, user identity.UserID, read func(*Reader) error) error {
	return s.read(ctx, shards, s.lists.slots(user), read)
}

func (s *Service) read(ctx context.Context, shards []key.Shard, slots *slots, read func(*Reader) error) error {
	return s.list(ctx, shards, slots, func(t *throttle, h held) error {
		return s.at(h, func(snapshot *persistence.Snapshot) error { return read(s.reader(t, snapshot)) })
	})
}

func (s *Service) reader(t *throttle, snapshot *persistence.Snapshot) *Reader {
	return &Reader{snapshot, rows{service: s, throttle: t, snapshot: snapshot}}
}

func (s *Service) selected(t *throttle, snapshot *persistence.Snapshot, of Selection, visit func(Row) error) (err error) {
	r := &rows{service: s, throttle: t, snapshot: snapshot, visit: visit, of: of}
	merge := snapshot.Merge
	if of.Backward {
		merge = snapshot.MergeBackward
	}
	m := &merged{cursor: merge(of.ranges()...), kind: listRow, rows: new(int64)}
	defer func() { err = errors.Join(err, failure.OfStore(m.close())) }()
	for {
		if err := r.step(); err != nil {
			return err
		}
		c, ok, err := m.next()
		if err != nil {
			return failure.OfStore(err)
		}
		if !r.followed && (!ok || of.Backward || bytes.Compare(c.value, of.TargetsFrom) >= 0) {
			if err := r.follow(); err != nil {
				return err
			}
		}
		if err := r.giveTargets(&c, ok); err != nil || !ok {
			return err
		}
		if err := visit(Row{ID: c.id, Place: c.value, Value: c.record}); err != nil {
			return err
		}
	}
}

type rows struct {
	service  *Service
	throttle *throttle
	snapshot *persistence.Snapshot
	visit    func(Row) error
	of       Selection
	read     int      // rows so far
	followed bool     // the pointers were read
	targets  [][]byte // keys of rows that are to be given, in the order of the list
}

// Now and then it lets others work, or ends.
func (r *rows) step() error {
	r.read++
	if r.read%checkEvery != 1 {
		return nil
	}
	if err := r.throttle.slots.busy.Yield(r.throttle.ctx); err != nil {
		return err
	}
	return r.throttle.ctx.Err()
}

func (r *rows) follow() error {
	of := &r.of
	if r.followed = true; len(of.Pointers) == 0 {
		return nil
	}
	var stopped error
	err := r.snapshot.ScanRanges(func(key, value []byte) error {
		var target []byte
		if stopped = r.step(); stopped != nil {
			return stopped
		}
		if target, stopped = of.target(key, value); stopped != nil {
			r.service.damaged.Add(1)
		} else if target != nil && (of.After == nil || isBehind(bytes.Compare(placeOf(target), of.After), of.Backward)) {
			r.targets = append(r.targets, target)
		}
		return stopped
	}, of.Pointers...)
	slices.SortFunc(r.targets, func(a, b []byte) int { return bytes.Compare(placeOf(a), placeOf(b)) })
	if of.Backward {
		slices.Reverse(r.targets)
	}
	if stopped != nil {
		return stopped
	}
	return failure.OfStore(err)
}

// giveTargets gives the rows in front of c; without c, all that are left.
func (r *rows) giveTargets(c *candidate, some bool) error {
	for len(r.targets) > 0 {
		k := r.targets[0]
		place, id, ok := key.ParseList(k)
		if some && isBehind(orderOf(place, id, &position{id: c.id, value: c.value}), r.of.Backward) {
			return nil
		}
		value, err := r.snapshot.Load(k)
		if !ok || errors.Is(err, persistence.ErrNotFound) {
			err = persistence.ErrCorrupt
		}
		if err != nil {
			return failure.OfStore(err)
		}
		if err := r.step(); err != nil {
			return err
		}
		if err := r.visit(Row{ID: id, Place: place, Value: value}); err != nil {
			return err
		}
		r.targets = r.targets[1:]
	}
	return nil
}

// Standing is how many instances of a workflow stand at a position.
type Standing struct {
	At        statemachine.Position
	Instances int64
	About     bool // it is an estimate
	AtLeast   bool // and there are more: reading ended before that
}

const (
	standingRows  = 100_000 // about how many rows are read for all positions together, and standingMin the fewest for one
	standingMin   = 64
	standingTimes = 16
)

// Standing counts how many instances of a workflow, of all its versions no matter who may see them, stand at each of the
// positions. Where they are many it is an estimate: after some rows, the shards that were not read are taken for like
// those that were.
func (s *Service) Standing(ctx context.Context, caller *identity.Principal, workflowID string, at []statemachine.Position) ([]Standing, error) {
	of := &standing{Caller: caller, WorkflowID: workflowID, At: at}
	var out []Standing
	var err error = failure.ErrUnavailable
	switch {
	case s.stopped.Err() != nil:
	case s.o.Fanout != nil:
		out, err = s.mergedStanding(ctx, of)
	default:
		out, err = s.standing(ctx, s.o.Store.Numbered(), of)
	}
	if err != nil {
		return nil, failure.In("count", workflowID, err)
	}
	return out, nil
}

type standing struct {
	Caller     *identity.Principal
	WorkflowID string
	At         []statemachine.Position
}

func (s *Service) standing(ctx context.Context, shards []key.Shard, of *standing) (out []Standing, err error) {
	q := &query{service: s, req: &Request{Caller: of.Caller, WorkflowID: of.WorkflowID}, workflowID: of.WorkflowID, shards: shards, begun: time.Now()}
	out = make([]Standing, len(of.At))
	err = q.withSlots(ctx, func() error { return q.inSnapshot(func() error { return q.standing(of.At, out) }) })
	return out, err
}

func (q *query) standing(at []statemachine.Position, out []Standing) error {
	enough := int64(max(standingMin, standingRows/max(1, len(at))))
	for i, p := range at {
		var stopped error
		e, err := estimateKeys(q.snapshot, enough, standingTimes*enough, func([]byte) error {
			stopped = q.chargeStep()
			return stopped
		}, key.Range{Prefix: key.MachinePrefix(nil, key.EveryShard, q.workflowID, string(p.Node), string(p.Machine))})
		if stopped != nil {
			return stopped
		}
		if err != nil {
			return failure.OfStore(err)
		}
		out[i] = Standing{At: p, Instances: e.keys, About: !e.exact, AtLeast: e.read >= standingTimes*enough}
	}
	return q.awaitDurable()
}
