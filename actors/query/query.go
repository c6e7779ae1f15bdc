package query

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

const (
	checkEvery = 256 // how many steps a query makes between two looks at the clock, and checkBytes how much it reads
	checkBytes = 64 << 10
	limitMax   = 1000 // the largest page
)

// Query calls yield with the JSON of each instance that matches and that the caller may see, in the order of _id or of
// the index that sorts. It sees one consistent moment, with everything that was acknowledged before the call
// (gateway/INTERFACE.md, "Which instances a list has"); in a cluster that is one moment of each shard, and no one
// moment of all. The bytes given to yield are valid during the call.
//
// It returns failure.ErrInvalid for a filter, sort, cursor or field that cannot be, failure.ErrBusy when no slot comes
// free in time or the query takes too long, failure.ErrUnavailable when a shard has no leader, or it is not known what other
// nodes have acknowledged, and yield's own error when it stops early.
func (s *Service) Query(ctx context.Context, req *Request, yield func(item []byte) error) (*End, error) {
	q, err := s.newQuery(req, func(f found) error { return yield(f.text) })
	if err == nil { // NB: here alone: parts of a list share the request
		err = q.audit(ctx)
	}
	switch {
	case err != nil:
	case s.o.Fanout != nil:
		err = s.merged(ctx, q)
	default:
		err = q.withSlots(ctx, q.run)
	}
	if err != nil {
		return nil, failure.In("query", req.WorkflowID, err)
	}
	return q.end, nil
}

type query struct {
	service    *Service
	req        *Request
	rules      *statemachine.Definition // whose rules hold: the newest version's
	workflowID string
	caller     *statemachine.Caller
	right      statemachine.Right
	now        time.Time
	filter     *filter.Filter
	fields     extraFields
	list       List      // what cursors are positions in
	down       bool      // the order is from the last to the first
	after      *position // where the page before ended; nil for the first

	shards    []key.Shard      // it reads in
	isPart    bool             // of what another query merges
	throttle                   // of the whole run
	steps     int              // so far
	unchecked int              // bytes that were read since the last check
	indexes   []*catalog.Index // of the workflow, when the snapshot was taken
	ready     []*catalog.Index // those of them that were whole, in a cluster as far as they are of use
	sort      *catalog.Index   // nil: by id
	byValue   bool             // candidates come from the index that sorts
	held      held             // the replicas that it reads in
	snapshot  *persistence.Snapshot
	confirmed confirmation // tells when the snapshot is durable
	durable   bool         // it did
	begun     time.Time
	explain   Explain
	end       *End
	record    statemachine.Record // of the candidate that was evaluated last
	name      string              // and its id
	out       batch[found]
	bytes     []byte   // of the items in out
	shown     int      // bytes of the newest of them
	last      position // of a page: that of the last instance that was shown
	failed    error    // what went wrong while the filter looked at an instance
}

type extraFields struct{ private, history, redirect, title bool }

func (s *Service) newQuery(req *Request, yield func(found) error) (*query, error) {
	d, err := s.o.Catalog.Newest(req.WorkflowID)
	if err != nil {
		return nil, err
	}
	q := &query{
		service: s, req: req, rules: d, workflowID: req.WorkflowID, caller: catalog.CallerOf(req.Caller), now: s.o.Clock(),
		shards: s.o.Store.Numbered(),
		out:    batch[found]{yield: yield}, end: &End{}, begun: time.Now(), explain: Explain{Considered: []Considered{}},
	}
	q.right = d.ReadRight(q.caller, q.now)
	manages := req.Caller.Has(identity.Workflows)
	switch {
	case q.right == statemachine.Denied && !req.Everyones:
		return nil, failure.MayNotRead(req.WorkflowID)
	case req.Explain && !manages:
		return nil, failure.Needs(identity.Workflows)
	}
	if q.filter, err = filter.Parse([]byte(req.Filter), filter.Options{Private: manages}); err != nil {
		return nil, failure.Refuse(failure.ErrInvalid, "%w", err)
	}
	switch {
	case !req.Everyones:
	case !q.filter.UsesData():
		q.right = statemachine.Granted
	case q.right == statemachine.Denied:
		return nil, failure.Refuse(failure.ErrForbidden, "you may not read the instances: the filter can name _id, workflowId and states")
	case req.Whole && !d.MayReadAll(q.caller, q.now):
		return nil, failure.Refuse(failure.ErrForbidden, "you may not read all instances of %s (allow.read), so that some would be missed: the filter can name _id, workflowId and states", req.WorkflowID)
	}
	if err := q.fields.parse(req.Fields, manages); err != nil {
		return nil, err
	}
	if req.Limit < 0 || req.Limit > limitMax || req.Limit == 0 && req.Cursor != "" {
		return nil, failure.Refuse(failure.ErrInvalid, "the limit must be 1 to %d", limitMax)
	}
	if err := q.checkSort(manages); err != nil {
		return nil, err
	}
	q.list = List{"instances", req.WorkflowID, req.Filter, req.Sort}
	if req.Version != 0 {
		q.list = append(q.list, strconv.FormatUint(req.Version, 10))
	}
	if req.Cursor != "" {
		position, err := q.list.Position(req.Cursor)
		if err != nil {
			return nil, err
		}
		if q.after, err = parsePosition(position); err != nil {
			return nil, err
		}
	}
	if s.stopped.Err() != nil {
		return nil, failure.ErrUnavailable
	}
	return q, nil
}

// QueryIn is Query in a shard that this node leads.
func (s *Service) QueryIn(ctx context.Context, sh key.Shard, req *Request, item func(instance []byte) error) (*End, error) {
	q, err := s.newQuery(req, func(f found) error { return item(f.text) })
	if err == nil {
		q.shards, q.isPart = []key.Shard{sh}, true
		err = q.withSlots(ctx, q.run)
	}
	if err != nil {
		return nil, failure.In("query", req.WorkflowID, err)
	}
	return q.end, nil
}

func (f *extraFields) parse(names []string, manages bool) error {
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
			return failure.Refuse(failure.ErrInvalid, "the field %s is named twice", data.Quote(name))
		case name == "svcHistory":
			f.history = true
		case name == "svcRedirect":
			f.redirect = true
		case name == "title":
			f.title = true
		case name == "svcPrivate" && manages:
			f.private = true
		default:
			return failure.Refuse(failure.ErrInvalid, "%s is not a field that can be added", data.Quote(name))
		}
	}
	return nil
}

// Whether there is an index for it is looked at when the snapshot is taken.
func (q *query) checkSort(manages bool) error {
	path, down := strings.CutPrefix(q.req.Sort, "-")
	q.down = down
	if path == "_id" || q.req.Sort == "" {
		return nil
	}
	ix := q.service.o.Catalog.Indexes().Find(q.workflowID, path)
	if ix == nil || ix.Field().Private() && !manages {
		return failure.Refuse(failure.ErrInvalid, "there is no index on %s to sort by", data.Quote(path))
	}
	q.sort = ix
	return nil
}

func (q *query) withSlots(ctx context.Context, work func() error) error {
	s := q.service
	ctx, cancel := s.limit(ctx)
	defer cancel()
	var err error
	if q.held, err = s.current.await(ctx, q.shards); err != nil { // NB: before the slots, which are for work
		return err
	}
	q.ctx, q.slots = ctx, s.queries.slots(q.req.Caller.ID)
	defer q.slots.leave()
	if err := s.enter(ctx, q.slots, s.o.QueryWaitMax); err != nil {
		return s.reason(err)
	}
	if s.stopped.Err() != nil { // NB: Stop waits for slots that were taken before
		return failure.ErrUnavailable
	}
	return s.reason(work())
}

func (s *Service) reason(err error) error {
	switch {
	case err == nil:
		return nil
	case s.stopped.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, failure.ErrBusy)):
		return failure.Errorf(failure.ErrUnavailable, "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Errorf(failure.ErrBusy, "%w", err)
	}
	return err
}

func (q *query) run() error {
	return q.inSnapshot(func() error {
		if err := q.askShards(); err != nil {
			return err
		}
		return q.answer()
	})
}

func (q *query) inSnapshot(work func() error) error {
	q.openSnapshot()
	defer func() { _ = q.snapshot.Close() }() // read-only: nothing to lose
	if err := q.service.current.holds(q.held); err != nil {
		return err
	}
	return work()
}

func (q *query) answer() error {
	if q.sort != nil && !slices.Contains(q.indexes, q.sort) {
		return failure.Refuse(failure.ErrInvalid, "the index on %s is gone", data.Quote(q.sort.Path()))
	}
	chosen, err := q.choose()
	if err != nil {
		return err
	}
	it, err := q.iterate(chosen)
	if err != nil {
		return err
	}
	if q.req.Limit > 0 {
		err = q.page(it)
	} else {
		err = q.all(it)
	}
	if err = errors.Join(err, failure.OfStore(it.close())); err != nil {
		return err
	}
	if err := q.out.flush(&q.throttle); err != nil {
		return err
	}
	if q.req.Count && q.req.Limit > 0 {
		if err := q.slots.resume(q.ctx); err != nil {
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
		q.end.Explain = q.explained()
	}
	return nil
}

// openSnapshot asks to be told when the snapshot is durable: nothing may be shown that a crash could take back.
func (q *query) openSnapshot() {
	for {
		// NB: an index that is whole now has all its entries in a snapshot taken later, and none is freed while it is
		// among the catalog's.
		present := q.service.o.Catalog.Indexes()
		q.indexes, q.ready = (*present)[q.workflowID], nil
		for _, ix := range q.indexes {
			if ix.Whole() {
				q.ready = append(q.ready, ix)
			}
		}
		if q.snapshot = q.service.o.Store.SnapshotOf(q.shards); q.service.o.Catalog.Indexes() == present {
			break
		}
		_ = q.snapshot.Close() // read-only: nothing to lose
	}
	q.confirmed = make(confirmation, 1)
	q.service.o.Store.Barrier(q.confirmed)
}

// askShards adds the indexes that are whole in the snapshot, in a cluster, where the shards say so.
func (q *query) askShards() error {
	if q.service.o.Store.Standalone() {
		return nil
	}
	for _, ix := range q.indexes {
		if ix != q.sort && !isOfUse(q.filter, ix) {
			continue
		}
		isWhole, err := q.service.o.Catalog.IsWholeAt(q.snapshot, ix)
		if err != nil {
			return failure.OfStore(err)
		}
		if isWhole {
			q.ready = append(q.ready, ix)
		}
	}
	return nil
}

func isOfUse(f *filter.Filter, ix *catalog.Index) bool {
	if _, ok := f.Bounds(ix.Field(), false); ok {
		return true
	}
	for _, branches := range f.Alternatives() {
		if slices.ContainsFunc(branches, func(b *filter.Filter) bool { return isOfUse(b, ix) }) {
			return true
		}
	}
	return false
}

type confirmation chan error

func (c confirmation) Committed(err error) { c <- err }

// awaitDurable waits until the snapshot is durable. failure.ErrUnavailable: it may never be.
func (q *query) awaitDurable() error {
	if q.durable {
		return nil
	}
	begun := time.Now()
	defer func() { q.slots.since = q.slots.since.Add(time.Since(begun)) }() // to wait is no work
	select {
	case err := <-q.confirmed:
		if err != nil {
			return failure.Errorf(failure.ErrUnavailable, "%w", err) // a read has no outcome to be in doubt about
		}
		q.durable = true
		return nil
	case <-q.ctx.Done():
		return q.ctx.Err()
	}
}

func (q *query) chargeStep() error { return q.chargeSteps(1) }

// At first, and now and then, it looks at the clock and lets events go first.
func (q *query) chargeSteps(n int) error {
	before := q.steps
	if q.steps += n; before > 0 && before/checkEvery == q.steps/checkEvery {
		return nil
	}
	q.unchecked = 0
	return q.check()
}

// chargeBytes counts what was read in a step: an instance may be as large as many.
func (q *query) chargeBytes(n int) error {
	if q.unchecked += n; q.unchecked < checkBytes {
		return nil
	}
	q.unchecked = 0
	return q.check()
}

// ended is for the filter: it says whether the query has ended, and why in q.failed.
func (q *query) ended() bool {
	if q.failed == nil {
		q.unchecked, q.failed = 0, q.check()
	}
	return q.failed != nil
}

func (q *query) iterate(chosen plan) (iterator, error) {
	q.explain.Plan = chosen.name
	if chosen.by != nil {
		q.explain.Index = &chosen.by.index
	}
	if q.sort == nil {
		return q.open(chosen, q.down, q.after), nil
	}
	if chosen.listed {
		return q.sorted(chosen)
	}
	if !slices.Contains(q.ready, q.sort) {
		return nil, failure.Errorf(failure.ErrBusy, "the index on %s is still being built", data.Quote(q.sort.Path()))
	}
	path := q.sort.Path()
	q.explain.Plan, q.explain.Index, q.byValue = planSorted, &path, true
	return q.sortedBy(q.sort, q.down, q.after), nil
}

func (q *query) all(it iterator) error {
	for {
		c, ok, err := q.next(it)
		if err != nil || !ok {
			return err
		}
		show, err := q.evaluate(&c)
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

// page gives at most Limit matches, and says where the next page begins. Who may not see all instances is not told
// whether a full page was the last: how far that is to be seen from there depends on what the others hold.
func (q *query) page(it iterator) error {
	shown, size, peeked := 0, 0, 0
	for {
		full := shown == q.req.Limit || size >= q.service.Limits.PageBytes
		if full && q.right != statemachine.Granted {
			q.end.Next = q.list.Cursor(q.last.append(nil))
			return nil
		}
		c, ok, err := q.next(it)
		if err != nil || !ok {
			return err
		}
		show, err := q.evaluate(&c)
		if err != nil {
			return err
		}
		switch {
		case full && show:
			q.end.Next = q.list.Cursor(q.last.append(nil))
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
			q.last = position{id: c.id, value: bytes.Clone(c.value)} // NB: a cursor tells nothing of what was not shown
		}
		if full {
			if peeked++; peeked == q.service.Limits.Peek {
				q.end.Next = q.list.Cursor(q.last.append(nil))
				return nil
			}
		}
	}
}

func (q *query) next(it iterator) (candidate, bool, error) {
	if err := q.chargeStep(); err != nil {
		return candidate{}, false, err
	}
	c, ok, err := it.next()
	if err != nil {
		return c, false, failure.OfStore(err)
	}
	return c, ok, nil
}
