package task

import (
	"bytes"
	"context"

	"troupe/actors/fanout"
	"troupe/persistence/key"
)

// part is a task of a page that a leader has made of its shards; without one, it is the place behind which there may be
// more.
type part struct {
	Place []byte
	Item  *Item
}

type partEnd struct {
	Count *int64 // as Page.Count
}

// Share has lists merged of what the leaders of all shards have. It is called before the first list.
func (l *Lists) Share(of *fanout.Service) { l.kind = fanout.NewKind(of, "tasks", l.readPart) }

func (l *Lists) readPart(ctx context.Context, shards []key.Shard, req *ListRequest, yield func(part) error) (end partEnd, err error) {
	r, err := l.newReading(req)
	if err == nil {
		err = l.Queries.Read(ctx, shards, req.Caller.ID, r.read)
	}
	if err != nil {
		return end, err
	}
	for n, item := range r.page.Items {
		if err := yield(part{r.places[n], item}); err != nil {
			return end, err
		}
	}
	if r.ended != nil {
		err = yield(part{Place: r.ended})
	}
	return partEnd{r.page.Count}, err
}

// merge fills the page of what the leaders have.
func (r *reading) merge(ctx context.Context) error {
	of := fanout.Merging[part]{Order: r.compareParts, Ahead: r.req.Limit + 1, Ends: r.req.Count}
	parts, err := r.kind.Merge(ctx, r.req, of, func(p part) error {
		switch {
		case len(r.page.Items) == r.req.Limit:
			r.ended = r.shown
			return fanout.ErrEnough
		case p.Item == nil:
			r.ended = p.Place
			return fanout.ErrEnough
		}
		r.page.Items, r.shown = append(r.page.Items, p.Item), p.Place
		return nil
	})
	if err != nil {
		return err
	}
	if r.ended != nil {
		r.page.Next = r.list.Cursor(r.ended)
	}
	for _, p := range parts {
		if p.Count == nil {
			return nil
		}
		r.count += *p.Count
	}
	if r.req.Count {
		r.page.Count = &r.count
	}
	return nil
}

func (r *reading) compareParts(a, b part) int {
	order := 0
	if r.titles {
		x, okX := titledAt(a.Place)
		y, okY := titledAt(b.Place)
		if okX && okY {
			order = r.compare(&x, &y)
		}
	} else if order = bytes.Compare(a.Place, b.Place); r.down {
		order = -order
	}
	switch {
	case order != 0:
		return order
	case a.Item == nil && b.Item != nil:
		return 1
	case a.Item != nil && b.Item == nil:
		return -1
	}
	return 0
}
