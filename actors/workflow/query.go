package workflow

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// Query calls yield with the JSON of each instance that matches and that the
// caller may see, in the order of _id (interfaces: GET instances). It sees one
// consistent moment, with everything that was acknowledged before the call.
// The bytes given to yield are valid during the call.
//
// It returns ErrBusy when no turn comes free in time or the query takes too
// long, and yield's own error when it stops early.
func (r *Router) Query(ctx context.Context, req *QueryRequest, yield func(item []byte) error) error {
	d := r.catalog.newest(req.WorkflowID)
	if d == nil {
		return fmt.Errorf("query %s: %w", req.WorkflowID, ErrNotFound)
	}
	q := &query{router: r, rules: d, workflowID: req.WorkflowID, caller: callerOf(req.Caller), now: r.o.Clock(), yield: yield}
	q.right = d.ReadRight(q.caller, q.now)
	if q.right == statemachine.Denied {
		return fmt.Errorf("query %s: %w", req.WorkflowID, ErrForbidden)
	}
	var err error
	q.filter, err = filter.Parse([]byte(req.Filter), filter.Options{Private: req.Caller.Has(identity.Workflows)})
	if err != nil {
		return fmt.Errorf("query %s: %w: %w", req.WorkflowID, ErrInvalid, err)
	}
	if r.stopping.Load() {
		return fmt.Errorf("query %s: %w", req.WorkflowID, ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.QueryTimeMax)
	defer cancel()
	if err := r.turn(ctx); err != nil {
		return fmt.Errorf("query %s: %w", req.WorkflowID, err)
	}
	defer func() { <-r.queries }()
	if err := q.run(ctx); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		return fmt.Errorf("query %s: %w", req.WorkflowID, err)
	}
	return nil
}

// turn waits until one of the query tokens is free.
func (r *Router) turn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.QueryWaitMax)
	defer cancel()
	select {
	case r.queries <- struct{}{}:
		return nil
	case <-ctx.Done():
		r.metrics.refused.Add(1)
		return ErrBusy
	}
}

// query is one run over a workflow's instances.
type query struct {
	router     *Router
	rules      *statemachine.Definition // whose rules hold: the newest version's
	workflowID string
	caller     *statemachine.Caller
	right      statemachine.Right
	now        time.Time
	filter     *filter.Filter
	yield      func([]byte) error
	snapshot   *persistence.Snapshot
	item       []byte
	failed     error // what went wrong while the filter looked at a history
}

// checkEvery is how many rows a query looks at between two looks at the clock.
const checkEvery = 256

// run merges the shards, each of which is in the order of ids.
func (q *query) run(ctx context.Context) error {
	q.snapshot = q.router.store.Snapshot()
	defer func() { _ = q.snapshot.Close() }() // read-only: nothing to lose
	// A commit is visible before it is durable: nothing is shown before the
	// fence says that all of the snapshot is on disk.
	if err := q.router.store.Fence(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err) // a read has no outcome to be in doubt about
	}
	nodes := q.filter.Nodes()
	merged := &merge{}
	defer merged.close()
	for sh := range persistence.Shard(q.router.store.ShardCount()) {
		prefix := persistence.RecordPrefix(nil, sh, q.workflowID)
		idOf := persistence.RecordID
		if len(nodes) > 0 {
			prefix = persistence.NodePrefix(nil, sh, q.workflowID, nodes[0])
			idOf = persistence.NodeID
		}
		if err := merged.add(q.snapshot.Cursor(prefix, persistence.PrefixEnd(prefix)), sh, idOf); err != nil {
			return storeError(err)
		}
	}
	var last persistence.ID
	for n := 0; merged.Len() > 0; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		s := merged.sources[0]
		if n == 0 || s.id != last { // two machines in one node are two index rows
			last = s.id
			if err := q.row(s, len(nodes) > 0); err != nil {
				return err
			}
		}
		if err := merged.advance(); err != nil {
			return storeError(err)
		}
	}
	return nil
}

// row decides about one instance and shows it.
func (q *query) row(s *source, byIndex bool) error {
	value := s.cursor.Value()
	if byIndex {
		var err error
		value, err = q.snapshot.Load(persistence.RecordKey(nil, s.shard, q.workflowID, s.id))
		if err != nil {
			return storeError(err)
		}
	}
	record, err := statemachine.ParseRecord(value)
	if err != nil {
		q.router.metrics.damaged.Add(1)
		return fmt.Errorf("%w: instance %s: %w", ErrExecution, instanceName(s.id), err)
	}
	name := instanceName(s.id)
	if !q.filter.Match(filter.Document{
		ID: name, WorkflowID: q.workflowID, States: record.States, Public: record.Public, Private: record.Private,
		History: func() data.Value { return q.history(s.shard, s.id) },
	}) || q.failed != nil {
		return q.failed
	}
	if q.right == statemachine.ByInstance {
		ok, err := q.mayRead(name, record)
		if err != nil || !ok {
			return err
		}
	}
	q.item = append(q.item[:0], `{"_id":"`...)
	q.item = append(q.item, name...)
	q.item = append(q.item, `","workflowId":"`...)
	q.item = append(q.item, q.workflowID...)
	q.item = append(q.item, `","svcPublic":`...)
	q.item = append(q.item, record.Public...)
	q.item = append(q.item, `,"states":`...)
	q.item = append(q.item, record.States...)
	q.item = append(q.item, '}')
	return q.yield(q.item)
}

func (q *query) mayRead(name string, record statemachine.Record) (bool, error) {
	of, err := q.router.catalog.version(q.workflowID, record.Version)
	if err != nil {
		return false, err
	}
	in, err := of.Restore(name, record)
	if err != nil {
		return false, fmt.Errorf("%w: instance %s: %w", ErrExecution, name, err)
	}
	return q.rules.MayRead(statemachine.View{Instance: &in, Of: of}, q.caller, q.now), nil
}

// history returns svcHistory for a filter that looks at it.
func (q *query) history(sh persistence.Shard, id persistence.ID) data.Value {
	out := data.Value("[")
	err := q.snapshot.Scan(persistence.EntryPrefix(nil, sh, id), func(_, value []byte) error {
		if len(value) < entryHead || value[0] != entryFormat {
			return persistence.ErrCorrupt
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, value[entryHead:]...)
		return nil
	})
	if err != nil {
		q.failed = storeError(err)
	}
	return append(out, ']')
}

// merge is a heap of cursors by the id they stand at.
type merge struct{ sources []*source }

// source is one shard's cursor.
type source struct {
	cursor *persistence.Cursor
	shard  persistence.Shard
	idOf   func(key []byte) (persistence.ID, bool)
	id     persistence.ID
}

func (m *merge) Len() int { return len(m.sources) }
func (m *merge) Less(a, b int) bool {
	return bytes.Compare(m.sources[a].id[:], m.sources[b].id[:]) < 0
}
func (m *merge) Swap(a, b int) { m.sources[a], m.sources[b] = m.sources[b], m.sources[a] }
func (m *merge) Push(x any)    { m.sources = append(m.sources, x.(*source)) }

// Pop implements heap.Interface.
func (m *merge) Pop() any {
	last := m.sources[len(m.sources)-1]
	m.sources = m.sources[:len(m.sources)-1]
	return last
}

func (m *merge) add(c *persistence.Cursor, sh persistence.Shard, idOf func([]byte) (persistence.ID, bool)) error {
	s := &source{cursor: c, shard: sh, idOf: idOf}
	ok, err := s.next()
	if ok {
		heap.Push(m, s)
		return nil
	}
	return errors.Join(err, c.Close())
}

// advance moves the first cursor on.
func (m *merge) advance() error {
	s := m.sources[0]
	ok, err := s.next()
	if ok {
		heap.Fix(m, 0)
		return nil
	}
	heap.Pop(m)
	return errors.Join(err, s.cursor.Close())
}

func (m *merge) close() {
	for _, s := range m.sources {
		_ = s.cursor.Close()
	}
}

// next moves to the next row; false at the end or on an error.
func (s *source) next() (bool, error) {
	if !s.cursor.Next() {
		return false, s.cursor.Err()
	}
	id, ok := s.idOf(s.cursor.Key())
	if !ok {
		return false, persistence.ErrCorrupt
	}
	s.id = id
	return true, nil
}
