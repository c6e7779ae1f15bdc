package query

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// In a cluster, a query is a part on each node that leads shards: the whole query, which knows of no other shard. Rights
// are those of the caller as the node knew them that was asked; what depends on an instance is decided where it is.

type kinds struct {
	instances *fanout.Kind[Request, found, End]
	standing  *fanout.Kind[standing, struct{}, []Standing]
	rows      *fanout.Kind[selected, rowItem, struct{}]
	keyed     *fanout.Kind[keysOf, struct{}, keyed]
}

func (s *Service) newKinds(of *fanout.Service) kinds {
	return kinds{
		instances: fanout.NewKind(of, "instances", s.readPart),
		standing: fanout.NewKind(of, "standing", func(ctx context.Context, shards []key.Shard, in *standing, _ func(struct{}) error) ([]Standing, error) {
			return s.standing(ctx, shards, in)
		}),
		rows:  fanout.NewKind(of, "rows", s.readRows),
		keyed: fanout.NewKind(of, "keys", s.readKeys),
	}
}

// readPart is a query in some shards.
func (s *Service) readPart(ctx context.Context, shards []key.Shard, req *Request, yield func(found) error) (end End, err error) {
	q, err := s.newQuery(req, func(f found) error {
		f.text = bytes.Clone(f.text)
		return yield(f)
	})
	if err != nil {
		return end, err
	}
	q.shards, q.isPart = shards, true
	if err := q.withSlots(ctx, q.run); err != nil {
		return end, err
	}
	if q.end.Next != "" {
		err = yield(found{at: &q.last, mark: true})
	}
	return *q.end, err
}

// aheadMin is how many instances of a part are kept for a list that does not come in pages.
const aheadMin = 64

// merged is the query whose parts are asked of the leaders.
func (s *Service) merged(ctx context.Context, q *query) error {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	req, shown, size := q.req, 0, 0
	of := fanout.Merging[found]{Order: q.compare, Ahead: max(req.Limit+1, aheadMin), Ends: req.Count || req.Explain}
	isFull := func() bool { return req.Limit > 0 && (shown == req.Limit || size >= s.Limits.PageBytes) }
	parts, err := s.kinds.instances.Merge(ctx, req, of, func(f found) error {
		if f.mark || isFull() {
			q.end.Next = q.list.Cursor(q.last.append(nil))
			return fanout.ErrEnough
		}
		shown++
		size += len(f.text)
		q.last = *f.at
		return q.out.yield(f)
	})
	if err != nil {
		return s.reason(err)
	}
	if isFull() && q.right != statemachine.Granted { // as page says
		q.end.Next = q.list.Cursor(q.last.append(nil))
	}
	for i := range parts {
		q.end.add(&parts[i])
	}
	if q.end.Explain != nil && q.right == statemachine.Granted {
		q.end.Explain.Milliseconds = float64(time.Since(q.begun).Microseconds()) / 1000
	}
	return nil
}

func (q *query) compare(a, b found) int {
	order := cmp.Or(orderOf(a.at.value, a.at.id, b.at), markOf(a)-markOf(b))
	if q.down && order != 0 && !(a.mark != b.mark && a.at.id == b.at.id) {
		return -order
	}
	return order
}

func markOf(f found) int {
	if f.mark {
		return 1
	}
	return 0
}

func (s *Service) mergedStanding(ctx context.Context, of *standing) ([]Standing, error) {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	parts, err := s.kinds.standing.Merge(ctx, of, fanout.Merging[struct{}]{}, nil)
	if err != nil {
		return nil, s.reason(err)
	}
	out := make([]Standing, len(of.At))
	for i, at := range of.At {
		out[i].At = at
		for _, part := range parts {
			if len(part) != len(out) {
				return nil, failure.Errorf(failure.ErrUnavailable, "a node counted at %d positions, not at %d", len(part), len(out))
			}
			out[i].Instances += part[i].Instances
			out[i].About, out[i].AtLeast = out[i].About || part[i].About, out[i].AtLeast || part[i].AtLeast
		}
	}
	return out, nil
}
