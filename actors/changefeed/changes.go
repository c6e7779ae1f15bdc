package changefeed

import (
	"context"
	"errors"
	"slices"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence/key"
	"troupe/statemachine"
)

const (
	limitMax = 1000
	// rowsReadMax and recordsReadMax are how many rows and records a page looks at, so that one whose caller may read
	// little ends soon; the next one goes on there.
	rowsReadMax, recordsReadMax = 20_000, 2_000
	pageBytesMax                = 4 << 20               // pageBytesMax ends a page early
	lookEvery                   = 25 * time.Millisecond // the least time between two looks of one who waits
	WaitMax                     = 30 * time.Second      // the longest that Changes waits
)

// Request asks for what follows a cursor.
type Request struct {
	Caller     *identity.Principal
	WorkflowID string        // the one workflow that is of interest; empty: all that the caller may read
	Since      string        // a cursor; empty: the present, "0": the oldest that is kept
	Limit      int           // the most changes, 1 to 1,000
	Wait       time.Duration // how long to wait when there is nothing, up to WaitMax
	WithData   bool          // WithData asks for what the events brought
	Every      bool          // Every asks for all that there is, whether the caller may read it or not
	// Waiting is called before the first wait. Nil: nothing is done.
	Waiting func() error
	// ByPrivilege is set with a page: some of it is shown to an operator only because of a privilege.
	ByPrivilege bool
}

// Page is some changes in order.
type Page struct {
	Changes []*Entry
	// Next is the cursor behind them. It is never empty.
	Next string
}

// Changes returns what follows a cursor and the caller may read now. It may be nothing, also when more
// follows it.
//
// It returns failure.ErrInvalid for a limit or cursor that cannot be, failure.ErrNotFound and failure.ErrForbidden for
// a workflow that is named, ErrGone, failure.ErrUnavailable, failure.ErrNotLeader when another node has all shards and
// this one has not, what Waiting returns, and ctx's error.
func (s *Service) Changes(ctx context.Context, req *Request) (*Page, error) {
	page, err := s.changes(ctx, req)
	if err == nil {
		req.ByPrivilege = slices.ContainsFunc(page.Changes, func(e *Entry) bool { return req.Every || s.isByPrivilege(req.Caller, e.Workflow) })
	}
	return page, failure.In("changes of", req.WorkflowID, err)
}

func (s *Service) isByPrivilege(p *identity.Principal, workflow string) bool {
	newest, err := s.o.Catalog.Newest(workflow)
	return err == nil && p.IsOperator() && newest.ReadsByPrivilege(catalog.CallerOf(p), s.o.Clock())
}

func (s *Service) changes(ctx context.Context, req *Request) (*Page, error) {
	r := &reading{service: s, req: req, shards: s.o.Store.Numbered(), caller: catalog.CallerOf(req.Caller)}
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, min(req.Wait, WaitMax))
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	for begun := false; ; begun = true {
		written := s.o.Store.Written() // NB: before the look
		page, more, err := r.page(ctx)
		if err != nil || len(page.Changes) > 0 || more || waiting.Err() != nil {
			return page, err
		}
		if !begun && req.Waiting != nil {
			if err := req.Waiting(); err != nil {
				return nil, err
			}
		}
		if s.o.Fanout != nil {
			s.awaitElsewhere(waiting, r.since)
		} else {
			select {
			case <-written:
			case <-waiting.Done():
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if waiting.Err() != nil {
			return page, nil
		}
		pause := time.NewTimer(lookEvery) // NB: a server that is busy writes all the time
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

type reading struct {
	service *Service
	req     *Request
	caller  *statemachine.Caller
	shards  []key.Shard       // that are read
	only    []string          // workflows that are of interest; empty: those of the request
	since   Cursor            // nil: the oldest
	rights  map[string]*rules // what is known of workflows in this look
}

// rules say what the caller may read of a workflow; nil: nothing.
type rules struct {
	newest *statemachine.Definition
	right  statemachine.Right
	now    time.Time
}

func (r *reading) check() (err error) {
	s := r.service
	if r.req.Limit < 1 || r.req.Limit > limitMax {
		return failure.Refuse(failure.ErrInvalid, "the limit must be 1 to %d", limitMax)
	}
	if r.req.Since != "" && r.req.Since != oldestText {
		if r.since, err = ParseCursor(r.req.Since, int(s.o.Store.Shards())); err != nil {
			return err
		}
	}
	if r.req.WorkflowID != "" {
		d, err := s.o.Catalog.Newest(r.req.WorkflowID)
		if err != nil {
			return err
		}
		if !r.req.Every && d.ReadRight(r.caller, s.o.Clock()) == statemachine.Denied {
			return failure.MayNotRead(r.req.WorkflowID)
		}
	}
	return nil
}

const oldestText = "0"

// begin awaits that the shards have what was acknowledged before, and finds out where to begin.
func (r *reading) begin(ctx context.Context) (err error) {
	s := r.service
	switch {
	case s.o.Fanout != nil:
		if r.req.Since == "" || r.req.Since == oldestText {
			r.since, err = s.ends(ctx, r.req.Since == oldestText)
		}
		return err
	case r.req.Since == "":
		if err = s.o.Current(ctx, r.shards); err == nil {
			r.since, err = s.Now(r.shards)
		}
		return err
	}
	return s.o.Current(ctx, r.shards)
}

func (r *reading) page(ctx context.Context) (page *Page, more bool, err error) {
	if r.service.o.Fanout != nil {
		return r.merge(ctx)
	}
	return r.read()
}

// read returns a page of a snapshot. more says that it ended before all was looked at.
func (r *reading) read() (page *Page, more bool, err error) {
	s := r.service
	sn := s.o.Store.SnapshotOf(r.shards)
	defer func() { _ = sn.Close() }() // read-only: nothing to lose
	if r.since == nil {
		if r.since, err = s.oldest(sn); err != nil {
			return nil, false, err
		}
	}
	page, r.rights = &Page{}, map[string]*rules{}
	rows, records, size := 0, 0, 0
	err = s.Walk(sn, r.since, func(row *Row) error {
		if rows++; rows > rowsReadMax || records == recordsReadMax || len(page.Changes) == r.req.Limit || size > pageBytesMax {
			return ErrEnough
		}
		if r.req.WorkflowID != "" && row.Workflow != r.req.WorkflowID || len(r.only) > 0 && !slices.Contains(r.only, row.Workflow) {
			return nil
		}
		of, err := r.rulesOf(row.Workflow)
		if of == nil || err != nil {
			return err
		}
		records++
		e, err := s.Load(sn, row)
		if e == nil || err != nil || of.right == statemachine.ByInstance && !of.newest.MayRead(statemachine.View{Instance: &e.Instance, Of: e.Of}, r.caller, of.now) {
			return r.passable(err)
		}
		if err := s.loadText(sn, e, r.req.WithData); err != nil {
			return r.passable(err)
		}
		page.Changes = append(page.Changes, e)
		size += len(e.Text) + len(e.States)
		return nil
	})
	if more = errors.Is(err, ErrEnough); more {
		err = nil
	}
	if err == nil {
		err = failure.OfStore(s.o.Store.AwaitDurable())
	}
	if err != nil {
		return nil, false, err
	}
	page.Next = r.since.String()
	return page, more, nil
}

// Follow reads what follows a cursor in some shards that this node leads, in some workflows or, without any, in all:
// everything, with data. It moves the cursor on behind what it returns. more says that it ended
// before all was looked at. ErrGone as Changes.
func (s *Service) Follow(ctx context.Context, shards []key.Shard, since Cursor, workflows []string) (entries []*Entry, more bool, err error) {
	r := &reading{service: s, req: &Request{Limit: limitMax, WithData: true, Every: true}, shards: shards, only: workflows, since: slices.Clone(since)}
	if err := s.o.Current(ctx, shards); err != nil {
		return nil, false, err
	}
	page, more, err := r.read()
	if err != nil {
		return nil, false, err
	}
	since.Raise(r.since)
	return page.Changes, more, nil
}

// Oldest is a cursor in front of the oldest rows that some shards have; it has no place in others.
func (s *Service) Oldest(shards []key.Shard) (Cursor, error) {
	sn := s.o.Store.SnapshotOf(shards)
	defer func() { _ = sn.Close() }() // read-only: nothing to lose
	return s.oldest(sn)
}

func (r *reading) rulesOf(workflow string) (*rules, error) {
	of, known := r.rights[workflow]
	if known {
		return of, nil
	}
	now := r.service.o.Clock()
	newest, err := r.service.o.Catalog.Newest(workflow)
	switch {
	case errors.Is(err, failure.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		right := statemachine.Granted
		if !r.req.Every {
			right = newest.ReadRight(r.caller, now)
		}
		if right != statemachine.Denied {
			of = &rules{newest: newest, right: right, now: now}
		}
	}
	r.rights[workflow] = of
	return of, nil
}

// passable is nil for what cannot be read of one instance: the others come all the same.
func (r *reading) passable(err error) error {
	if errors.Is(err, failure.ErrExecution) {
		r.service.o.Log.Error().Err(err).Msg("a change cannot be shown: what is stored cannot be read")
		return nil
	}
	return err
}
