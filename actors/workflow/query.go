package workflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

const (
	// checkEvery is how many steps a query makes between two looks at the clock,
	// and checkBytes how much it reads.
	checkEvery = 256
	checkBytes = 64 << 10
	// pageBytesMax ends a page early, so that it fits into memory.
	pageBytesMax = 8 << 20
	// peekMax is how many candidates a full page looks at to find out whether
	// there is another one.
	peekMax = 1000
	// limitMax is the largest page.
	limitMax = 1000
)

// Query calls yield with the JSON of each instance that matches and that the
// caller may see, in the order of _id or of the index that sorts. It sees one
// consistent moment, with everything that was acknowledged before the call
// (gateway/INTERFACE.md, "Which instances a list has"). The bytes given to yield
// are valid during the call.
//
// It returns failure.ErrInvalid for a filter, sort, cursor or field that cannot be,
// failure.ErrBusy when no slot comes free in time or the query takes too long, and
// yield's own error when it stops early. While yield waits, other queries run;
// the time counts all the same.
func (r *Router) Query(ctx context.Context, req *QueryRequest, yield func(item []byte) error) (*QueryEnd, error) {
	q, err := r.newQuery(req, yield)
	if err == nil {
		err = q.take(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", req.WorkflowID, err)
	}
	return q.end, nil
}

// query is one run over a workflow's instances.
type query struct {
	req        *QueryRequest
	rules      *statemachine.Definition // whose rules hold: the newest version's
	workflowID string
	caller     *statemachine.Caller
	right      statemachine.Right
	now        time.Time
	filter     *filter.Filter
	fields     extraFields
	list       list   // what cursors are places in
	down       bool   // the order is from the last to the first
	after      *place // where the page before ended; nil for the first

	pace               // of the whole run
	steps     int      // so far
	unlooked  int      // bytes that were read since the last look
	indexes   []*index // of the workflow, when the snapshot was taken
	ready     []*index // those of them that were whole
	sort      *index   // nil: by id
	inPlaces  bool     // candidates come from the index that sorts
	snapshot  *persistence.Snapshot
	confirmed outcome // tells when the snapshot is durable
	durable   bool    // it did
	begun     time.Time
	explain   Explain
	end       *QueryEnd
	record    statemachine.Record // of the candidate that was judged last
	name      string              // and its id
	out       batch[[]byte]
	bytes     []byte // of the items in out
	shown     int    // bytes of the newest of them
	failed    error  // what went wrong while the filter looked at an instance
}

// extraFields are what entries have besides the usual.
type extraFields struct{ private, history, redirect bool }

// newQuery checks the request.
func (r *Router) newQuery(req *QueryRequest, yield func([]byte) error) (*query, error) {
	d, err := r.catalog.newest(req.WorkflowID)
	if err != nil {
		return nil, err
	}
	q := &query{
		pace: pace{router: r}, req: req, rules: d, workflowID: req.WorkflowID, caller: callerOf(req.Caller), now: r.o.Clock(),
		out: batch[[]byte]{yield: yield}, end: &QueryEnd{}, begun: time.Now(), explain: Explain{Considered: []Considered{}},
	}
	q.right = d.ReadRight(q.caller, q.now)
	manages := req.Caller.Has(identity.Workflows)
	if q.right == statemachine.Denied || req.Explain && !manages {
		return nil, failure.ErrForbidden
	}
	if q.filter, err = filter.Parse([]byte(req.Filter), filter.Options{Private: manages}); err != nil {
		return nil, fmt.Errorf("%w: %w", failure.ErrInvalid, err)
	}
	if err := q.fields.parse(req.Fields, manages); err != nil {
		return nil, err
	}
	if req.Limit < 0 || req.Limit > limitMax || req.Limit == 0 && req.Cursor != "" {
		return nil, fmt.Errorf("%w: the limit must be 1 to %d", failure.ErrInvalid, limitMax)
	}
	if err := q.checkSort(manages); err != nil {
		return nil, err
	}
	q.list = list{"instances", req.WorkflowID, req.Filter, req.Sort}
	if req.Cursor != "" {
		position, err := q.list.position(req.Cursor)
		if err != nil {
			return nil, err
		}
		if q.after, err = parsePlace(position); err != nil {
			return nil, err
		}
	}
	if r.stopping.Load() {
		return nil, failure.ErrUnavailable
	}
	return q, nil
}

func (f *extraFields) parse(names []string, manages bool) error {
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
			return fmt.Errorf("%w: the field %s is named twice", failure.ErrInvalid, data.Quote(name))
		case name == "svcHistory":
			f.history = true
		case name == "svcRedirect":
			f.redirect = true
		case name == "svcPrivate" && manages:
			f.private = true
		default:
			return fmt.Errorf("%w: %s is no field that can be added", failure.ErrInvalid, data.Quote(name))
		}
	}
	return nil
}

// checkSort reads the order. Whether there is an index for it is looked at when
// the snapshot is taken.
func (q *query) checkSort(manages bool) error {
	path, down := strings.CutPrefix(q.req.Sort, "-")
	q.down = down
	if path == "_id" || q.req.Sort == "" {
		return nil
	}
	ix := (*q.router.catalog.indexes.Load()).find(q.workflowID, path)
	if ix == nil || ix.field.Private() && !manages {
		return fmt.Errorf("%w: there is no index on %s to sort by", failure.ErrInvalid, data.Quote(path))
	}
	q.sort = ix
	return nil
}

// take waits for a slot and runs.
func (q *query) take(ctx context.Context) error {
	r := q.router
	ctx, cancel := context.WithTimeout(ctx, r.o.QueryTimeMax)
	defer cancel()
	defer context.AfterFunc(r.reading, cancel)()
	slots, err := r.enter(ctx, r.queries, q.req.Caller.ID, r.o.QueryWaitMax)
	if err != nil {
		return r.readEnd(err)
	}
	defer slots.leave()
	if r.reading.Err() != nil { // NB: Stop waits for slots that were taken before
		return failure.ErrUnavailable
	}
	q.ctx, q.slots, q.resumed = ctx, slots, time.Now()
	return r.readEnd(q.run())
}

// readEnd says why a query ended early.
func (r *Router) readEnd(err error) error {
	switch {
	case err == nil:
		return nil
	case r.reading.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, failure.ErrBusy)):
		return fmt.Errorf("%w: %w", failure.ErrUnavailable, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", failure.ErrBusy, err)
	}
	return err
}

// run takes the snapshot and answers from it.
func (q *query) run() error {
	q.openSnapshot()
	defer func() { _ = q.snapshot.Close() }() // read-only: nothing to lose
	return q.answer()
}

// answer goes the chosen way.
func (q *query) answer() error {
	if q.sort != nil && !slices.Contains(q.indexes, q.sort) {
		return fmt.Errorf("%w: the index on %s is gone", failure.ErrInvalid, data.Quote(q.sort.field.Path()))
	}
	chosen, err := q.choose()
	if err != nil {
		return err
	}
	way, err := q.way(chosen)
	if err != nil {
		return err
	}
	if q.req.Limit > 0 {
		err = q.page(way)
	} else {
		err = q.all(way)
	}
	if err = errors.Join(err, failure.OfStore(way.close())); err != nil {
		return err
	}
	if err := q.out.flush(&q.pace); err != nil {
		return err
	}
	if q.req.Count && q.req.Limit > 0 {
		if err := q.resume(); err != nil {
			return err
		}
		if err := q.count(chosen); err != nil {
			return err
		}
	}
	if err := q.awaitDurable(); err != nil {
		return err
	}
	if q.req.Explain {
		q.explain.Milliseconds = float64(time.Since(q.begun).Microseconds()) / 1000
		q.end.Explain = &q.explain
	}
	return nil
}

// openSnapshot takes the moment that the query sees, and asks to be told when it
// is durable: a commit is visible before that, and nothing may be shown that a
// crash could take back.
func (q *query) openSnapshot() {
	c := q.router.catalog
	// NB: an index that is whole now has all its entries in a snapshot taken
	// later, and none is freed before the snapshot is there.
	token := c.indexing.RLock()
	q.indexes = (*c.indexes.Load())[q.workflowID]
	for _, ix := range q.indexes {
		if ix.whole.Load() {
			q.ready = append(q.ready, ix)
		}
	}
	q.snapshot = q.router.store.Snapshot()
	c.indexing.RUnlock(token)
	q.confirmed = make(outcome, 1)
	q.router.store.Barrier(q.confirmed)
}

// outcome is a waiter for one who waits later.
type outcome chan error

// Committed implements persistence.Waiter.
func (o outcome) Committed(err error) { o <- err }

// awaitDurable waits until the snapshot is durable. failure.ErrUnavailable: it may never
// be.
func (q *query) awaitDurable() error {
	if q.durable {
		return nil
	}
	select {
	case err := <-q.confirmed:
		if err != nil {
			return fmt.Errorf("%w: %w", failure.ErrUnavailable, err) // a read has no outcome to be in doubt about
		}
		q.durable = true
		return nil
	case <-q.ctx.Done():
		return q.ctx.Err()
	}
}

// spend counts a step. Now and then it looks at the clock and lets events go
// first.
func (q *query) spend() error {
	if q.steps++; q.steps%checkEvery != 1 {
		return nil
	}
	q.unlooked = 0
	return q.look()
}

// took counts what was read in a step: an instance may be as large as many.
func (q *query) took(n int) error {
	if q.unlooked += n; q.unlooked < checkBytes {
		return nil
	}
	q.unlooked = 0
	return q.look()
}

// ended is for the filter: it says whether the query has ended, and why in
// q.failed.
func (q *query) ended() bool {
	if q.failed == nil {
		q.unlooked, q.failed = 0, q.look()
	}
	return q.failed != nil
}

// way opens the chosen plan in the order of the list.
func (q *query) way(chosen plan) (candidates, error) {
	q.explain.Plan = chosen.name
	if chosen.by != nil {
		q.explain.Index = &chosen.by.index
	}
	if q.sort == nil {
		return q.open(chosen, q.down, q.after)
	}
	if chosen.listed {
		return q.sorted(chosen)
	}
	if !slices.Contains(q.ready, q.sort) {
		return nil, fmt.Errorf("%w: the index on %s is still being built", failure.ErrBusy, data.Quote(q.sort.field.Path()))
	}
	path := q.sort.field.Path()
	q.explain.Plan, q.explain.Index, q.inPlaces = planSorted, &path, true
	return q.sortedBy(q.sort, q.down, q.after)
}

// all gives every match.
func (q *query) all(way candidates) error {
	for {
		c, ok, err := q.next(way)
		if err != nil || !ok {
			return err
		}
		show, err := q.judge(&c)
		if err != nil {
			return err
		}
		if !show {
			continue
		}
		if err := q.awaitDurable(); err != nil {
			return err
		}
		q.end.Count++
		if err := q.show(&c); err != nil {
			return err
		}
	}
}

// page gives at most Limit matches, and says where the next page begins.
func (q *query) page(way candidates) error {
	shown, size, peeked := 0, 0, 0
	var last place
	for {
		c, ok, err := q.next(way)
		if err != nil || !ok {
			return err
		}
		full := shown == q.req.Limit || size >= pageBytesMax
		show, err := q.judge(&c)
		if err != nil {
			return err
		}
		switch {
		case full && show:
			q.end.Next = q.list.cursor(last.append(nil))
			return nil
		case !full && show:
			if err := q.awaitDurable(); err != nil {
				return err
			}
			if err := q.show(&c); err != nil {
				return err
			}
			shown++
			size += q.shown
			last = place{id: c.id, value: bytes.Clone(c.value)} // NB: a cursor tells nothing of what was not shown
		}
		if full {
			if peeked++; peeked == peekMax {
				q.end.Next = q.list.cursor(last.append(nil))
				return nil
			}
		}
	}
}

// next is the next instance of the list.
func (q *query) next(way candidates) (candidate, bool, error) {
	if err := q.spend(); err != nil {
		return candidate{}, false, err
	}
	c, ok, err := way.next()
	if err != nil {
		return c, false, failure.OfStore(err)
	}
	return c, ok, nil
}
