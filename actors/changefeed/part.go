package changefeed

import (
	"cmp"
	"context"
	"slices"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/persistence/key"
	"troupe/statemachine/data"
)

type kinds struct {
	changes *fanout.Kind[asked, change, Cursor]
	ends    *fanout.Kind[struct{}, struct{}, ends]
	news    *fanout.Kind[Cursor, struct{}, struct{}]
}

func (s *Service) newKinds(of *fanout.Service) kinds {
	k := kinds{
		changes: fanout.NewKind(of, "changes", s.readPart),
		ends:    fanout.NewKind(of, "feed ends", s.readEnds),
		news:    fanout.NewKind(of, "feed news", s.awaitNews),
	}
	k.news.Live = true
	return k
}

// asked is what a part of a page shall have.
type asked struct {
	Caller     *identity.Principal
	WorkflowID string
	Since      Cursor
	Limit      int
	WithData   bool
	Every      bool
}

// change is an Entry as it travels. With a cursor it is none: what the part has behind that was not looked at.
type change struct {
	Row
	Name   string
	Text   data.Value
	States []byte
	Mark   Cursor
}

func compareChanges(a, b change) int {
	return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Shard, b.Shard))
}

// readPart reads a page of some shards. It ends with a cursor behind all that they have, unless there was a mark.
func (s *Service) readPart(ctx context.Context, shards []key.Shard, in *asked, yield func(change) error) (Cursor, error) {
	if len(in.Since) != int(s.o.Store.Shards()) {
		return nil, failure.Errorf(failure.ErrInvalid, "a cursor of %d shards", len(in.Since))
	}
	req := &Request{Caller: in.Caller, WorkflowID: in.WorkflowID, Limit: in.Limit, WithData: in.WithData, Every: in.Every}
	r := &reading{service: s, req: req, shards: shards, since: slices.Clone(in.Since), caller: catalog.CallerOf(in.Caller)}
	if err := s.o.Current(ctx, shards); err != nil {
		return nil, err
	}
	page, more, err := r.read()
	if err != nil {
		return nil, err
	}
	for _, e := range page.Changes {
		if err := yield(change{Row: *e.Row, Name: e.Name, Text: e.Text, States: e.States}); err != nil {
			return nil, err
		}
	}
	if more {
		mark := change{Mark: r.since}
		for sh, place := range r.since {
			if place != in.Since[sh] {
				mark.Place = max(mark.Place, place) // of the row that was looked at last
			}
		}
		mark.Shard = key.EveryShard // behind the row of that place
		err = yield(mark)
	}
	return r.since, err
}

// merge is read of what the leaders have.
func (r *reading) merge(ctx context.Context) (page *Page, more bool, err error) {
	page = &Page{}
	in := &asked{
		Caller: r.req.Caller, WorkflowID: r.req.WorkflowID, Since: r.since, Limit: r.req.Limit, WithData: r.req.WithData, Every: r.req.Every,
	}
	next, size := slices.Clone(r.since), 0
	ends, err := r.service.kinds.changes.Merge(ctx, in, fanout.Merging[change]{Order: compareChanges, Ahead: r.req.Limit + 1}, func(c change) error {
		switch {
		case c.Mark != nil:
			next.raise(c.Mark)
			more = true
		case len(page.Changes) == r.req.Limit || size > pageBytesMax:
			more = true
		}
		if more {
			return fanout.ErrEnough
		}
		row := c.Row
		page.Changes = append(page.Changes, &Entry{Row: &row, Name: c.Name, Text: c.Text, States: c.States})
		next.Saw(c.Shard, c.Place)
		size += len(c.Text) + len(c.States)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	for _, end := range ends {
		next.raise(end)
	}
	r.since = next
	page.Next = next.String()
	return page, more, nil
}

// raise is Raise to a cursor that came from another node.
func (c Cursor) raise(to Cursor) { c.Raise(to[:min(len(to), len(c))]) }

// ends are the cursors in front of and behind what some shards have; they have no place in others.
type ends struct{ Oldest, Now Cursor }

func (s *Service) readEnds(ctx context.Context, shards []key.Shard, _ *struct{}, _ func(struct{}) error) (e ends, err error) {
	if err := s.o.Current(ctx, shards); err != nil {
		return e, err
	}
	if e.Now, err = s.Now(shards); err != nil {
		return e, err
	}
	sn := s.o.Store.SnapshotOf(shards)
	defer func() { _ = sn.Close() }() // read-only: nothing to lose
	if e.Oldest, err = s.oldest(sn); err == nil {
		err = failure.OfStore(s.o.Store.AwaitDurable())
	}
	return e, err
}

func (s *Service) ends(ctx context.Context, oldest bool) (Cursor, error) {
	parts, err := s.kinds.ends.Merge(ctx, &struct{}{}, fanout.Merging[struct{}]{}, nil)
	if err != nil {
		return nil, err
	}
	c := make(Cursor, s.o.Store.Shards())
	for _, e := range parts {
		if oldest {
			c.raise(e.Oldest)
		} else {
			c.raise(e.Now)
		}
	}
	return c, nil
}

// Present is a cursor behind everything that was acknowledged before the call, on any node.
func (s *Service) Present(ctx context.Context) (Cursor, error) { return s.ends(ctx, false) }

// awaitNews yields once when there is something behind a cursor in some shards.
func (s *Service) awaitNews(ctx context.Context, shards []key.Shard, since *Cursor, yield func(struct{}) error) (end struct{}, err error) {
	if len(*since) != int(s.o.Store.Shards()) {
		return end, failure.Errorf(failure.ErrInvalid, "a cursor of %d shards", len(*since))
	}
	look := time.NewTicker(epochEvery)
	defer look.Stop()
	for {
		written := s.o.Store.Written() // NB: before the look
		now, err := s.Now(shards)
		if err != nil {
			return end, err
		}
		if !since.Has(now) {
			return end, yield(struct{}{})
		}
		for _, sh := range shards {
			if s.o.Store.Epoch(sh) == 0 {
				return end, failure.Elsewhere(uint16(sh))
			}
		}
		select {
		case <-written:
		case <-look.C:
		case <-s.stopped.Done():
			return end, failure.ErrUnavailable
		case <-ctx.Done():
			return end, ctx.Err()
		}
	}
}

// epochEvery is the time between two looks whether the shards are led here still.
const epochEvery = time.Second

// awaitElsewhere returns when there may be something behind a cursor, on any node, or when ctx ends. What keeps it from
// being known does not matter: the page that there is can be given when the wait is over.
func (s *Service) awaitElsewhere(ctx context.Context, since Cursor) {
	err := s.kinds.news.Follow(ctx, nil, func([]key.Shard) *Cursor { return &since }, func(struct{}) error { return fanout.ErrEnough })
	if err != nil {
		<-ctx.Done()
	}
}
