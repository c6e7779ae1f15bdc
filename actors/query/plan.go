package query

import (
	"bytes"
	"errors"
	"slices"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/statemachine/filter"
)

// How a query finds its candidates. Every plan gives a superset of the matches; the
// filter decides about each candidate, so a plan can be slow but not wrong.
const (
	planIDs    = "ids"          // the filter names them
	planIndex  = "index"        // from an index, brought into the order of ids
	planSorted = "sorted index" // from the index that sorts, in its order
	planScan   = "scan"         // all instances

	nodeIndex = "states.nodeId" // what explanations call the index of nodes
)

const (
	// probeKeysMax is how many rows of an index the planner counts at most.
	probeKeysMax = 1000
	// recordCost is what reading a candidate by its id costs, in instances that
	// a scan would read meanwhile.
	recordCost = 4
	// collectMax is the most ids that a query collects. Above it, and where
	// reading all of them by their ids costs more than that, it scans.
	collectMax = 250_000
	// sortMax is the most candidates that are sorted in memory.
	sortMax = 10_000
	// mergeMax is the most cursors that a query opens at a time.
	mergeMax = 128
)

// span is a range of keys, the same in every shard.
type span struct {
	// from and to append the bounds for a shard.
	bounds func(sh persistence.Shard) (from, to []byte)
	// point says that the rows of a shard are in the order of ids.
	point bool
}

// access is how an index gives candidates.
type access struct {
	index string
	kind  rowKind
	spans []span
	// keys is about how many rows it has; exact unless atLeast.
	keys    int64
	atLeast bool
}

// plan is what was chosen.
type plan struct {
	name string
	by   *access // planIndex
	// ids are the candidates, in no order, when listed. Otherwise they are read as
	// they are needed.
	ids    []persistence.ID
	listed bool
}

// choose looks at what the filter says and picks the plan with the fewest
// candidates.
func (q *query) choose() (plan, error) {
	if names, ok := q.filter.IDs(); ok {
		ids := make([]persistence.ID, 0, len(names))
		for _, name := range names {
			if id, ok := instanceid.Parse(name); ok {
				ids = append(ids, id)
			}
		}
		return plan{name: planIDs, ids: ids, listed: true}, nil
	}
	total, err := q.total()
	if err != nil {
		return plan{}, err
	}
	accesses, err := q.accesses()
	if err != nil {
		return plan{}, err
	}
	best, err := q.cheapest(accesses, total)
	if err != nil {
		return plan{}, err
	}
	if best == nil || best.keys*recordCost > total {
		return plan{name: planScan}, nil
	}
	if q.sort == nil && best.keys > probeKeysMax && best.merges(q.service.o.Store.ShardCount()) {
		return plan{name: planIndex, by: best}, nil
	}
	most := collectMax
	if q.sort != nil {
		most = sortMax
	}
	// NB: keys may have been a guess.
	ids, all, err := q.collect(best, min(most, max(probeKeysMax, int(total/recordCost))))
	if err != nil || !all {
		return plan{name: planScan}, err
	}
	return plan{name: planIndex, by: best, ids: ids, listed: true}, nil
}

// cheapest returns the access with the fewest rows; nil when there is none.
func (q *query) cheapest(accesses []access, total int64) (best *access, err error) {
	for i := range accesses {
		a := &accesses[i]
		if err := q.probe(a, probeKeysMax); err != nil {
			return nil, err
		}
		if best == nil || a.keys < best.keys {
			best = a
		}
	}
	shards := q.service.o.Store.ShardCount()
	for i := range accesses {
		a := &accesses[i]
		// Where none has few, it matters how many they have, unless a page ends
		// it soon.
		if best.atLeast && (q.req.Limit == 0 || q.req.Count || !a.merges(shards)) {
			if err := q.probe(a, max(probeKeysMax, total/int64(shards)/recordCost+1)); err != nil {
				return nil, err
			}
		}
		q.explain.Considered = append(q.explain.Considered, Considered{Index: a.index, Keys: a.keys, AtLeast: a.atLeast})
	}
	for i := range accesses {
		if a := &accesses[i]; a.keys < best.keys {
			best = a
		}
	}
	return best, nil
}

// total is how many instances the workflow has.
func (q *query) total() (int64, error) {
	var total int64
	for sh := range persistence.Shard(q.service.o.Store.ShardCount()) {
		n, err := q.snapshot.CountAll(persistence.CountPrefix(nil, sh, q.workflowID))
		if err != nil {
			return 0, failure.OfStore(err)
		}
		total += n
	}
	return total, nil
}

// accesses lists the indexes that the filter lets use.
func (q *query) accesses() ([]access, error) {
	var all []access
	for _, p := range q.filter.Positions() {
		a, err := q.byNode(p)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	for _, ix := range q.ready {
		ranges, ok := q.filter.Bounds(ix.Field(), !ix.Several())
		if !ok {
			continue
		}
		a := access{index: ix.Path(), kind: indexRow}
		for _, r := range ranges {
			a.spans = append(a.spans, spanOf(ix, r))
		}
		all = append(all, a)
	}
	return all, nil
}

// spanOf is the part of the index that has the values of r.
func spanOf(ix *catalog.Index, r filter.Range) span {
	return span{point: r.Point, bounds: func(sh persistence.Shard) (from, to []byte) {
		prefix := ix.Prefix(nil, sh)
		from = append(prefix[:len(prefix):len(prefix)], r.From...)
		switch {
		case r.Point:
			return from, persistence.PrefixEnd(from)
		case r.To == nil:
			return from, persistence.PrefixEnd(prefix)
		}
		to = append(prefix[:len(prefix):len(prefix)], r.To...)
		if last := len(to) - 1; to[last] == 0 {
			// NB: behind a value k, k followed by 0, are the rows of k, which is
			// followed by an id there.
			return from, persistence.PrefixEnd(to[:last])
		}
		return from, to
	}}
}

// byNode is the access by the index of nodes. Without a machine the ones that are
// in the node are looked up, shard by shard, by jumping over each.
func (q *query) byNode(p filter.Positions) (access, error) {
	a := access{index: nodeIndex, kind: nodeRow}
	for _, node := range p.Nodes {
		machines := []string{p.Machine}
		if p.Machine == "" {
			var err error
			if machines, err = q.machinesIn(node); err != nil {
				return a, err
			}
		}
		for _, machine := range machines {
			a.spans = append(a.spans, span{point: true, bounds: func(sh persistence.Shard) (from, to []byte) {
				prefix := persistence.MachinePrefix(nil, sh, q.workflowID, node, machine)
				return prefix, persistence.PrefixEnd(prefix)
			}})
		}
	}
	return a, nil
}

func (q *query) machinesIn(node string) ([]string, error) {
	var machines []string
	for sh := range persistence.Shard(q.service.o.Store.ShardCount()) {
		prefix := persistence.NodePrefix(nil, sh, q.workflowID, node)
		c := q.snapshot.Cursor(prefix, persistence.PrefixEnd(prefix))
		for ok := c.Next(); ok; {
			q.explain.KeysRead++
			name, valid := persistence.NodeMachine(c.Key())
			if !valid {
				return nil, errors.Join(failure.OfStore(persistence.ErrCorrupt), c.Close())
			}
			machine := string(name)
			machines = append(machines, machine)
			ok = c.Seek(persistence.PrefixEnd(persistence.MachinePrefix(nil, sh, q.workflowID, node, machine)))
		}
		if err := errors.Join(c.Err(), c.Close()); err != nil {
			return nil, failure.OfStore(err)
		}
	}
	slices.Sort(machines)
	return slices.Compact(machines), nil
}

// probe counts an access's rows, at most so many. Where they are many it takes
// the shards that it did not see for like those that it did: ids are spread over
// them by a hash.
func (q *query) probe(a *access, most int64) error {
	shards := int64(q.service.o.Store.ShardCount())
	a.atLeast = false
	var seen int64
	for sh := range shards {
		for _, s := range a.spans {
			c := q.snapshot.Cursor(s.bounds(persistence.Shard(sh)))
			for seen < most && c.Next() {
				seen++
			}
			if err := errors.Join(c.Err(), c.Close()); err != nil {
				return failure.OfStore(err)
			}
		}
		if a.keys = seen; seen >= probeKeysMax {
			a.keys, a.atLeast = seen*shards/(sh+1), true
			break
		}
	}
	q.explain.KeysRead += seen
	return nil
}

// merges says whether the access can be read in the order of ids.
func (a *access) merges(shards int) bool {
	return len(a.spans)*shards <= mergeMax && !slices.ContainsFunc(a.spans, func(s span) bool { return !s.point })
}

// open starts the plan in the order of ids, behind a position.
func (q *query) open(p plan, down bool, after *position) (iterator, error) {
	switch {
	case p.listed:
		return newSortedIDs(slices.Clone(p.ids), q.service.o.Store.ShardOf, down, after), nil
	case p.by != nil:
		return q.merged(p.by.spans, p.by.kind, down, after)
	}
	return q.merged([]span{q.records()}, recordRow, down, after)
}

// records is the span of all instances.
func (q *query) records() span {
	return span{point: true, bounds: func(sh persistence.Shard) (from, to []byte) {
		prefix := persistence.RecordPrefix(nil, sh, q.workflowID)
		return prefix, persistence.PrefixEnd(prefix)
	}}
}

// merged reads spans of points together, in the order of ids.
func (q *query) merged(spans []span, kind rowKind, down bool, after *position) (iterator, error) {
	m := &merge{down: down, rows: &q.explain.KeysRead}
	for sh := range persistence.Shard(q.service.o.Store.ShardCount()) {
		for _, s := range spans {
			from, to := s.bounds(sh)
			if after != nil {
				key := append(from[:len(from):len(from)], after.id[:]...) // NB: from is the prefix of all rows
				if down {
					to = key
				} else {
					from = append(key, 0)
				}
			}
			if err := m.add(q.cursor(from, to, down), sh, kind); err != nil {
				return nil, errors.Join(failure.OfStore(err), m.close())
			}
		}
	}
	return m, nil
}

// sortedBy reads a whole index in the order of its values, behind a position.
func (q *query) sortedBy(ix *catalog.Index, down bool, after *position) (iterator, error) {
	m := &merge{down: down, rows: &q.explain.KeysRead}
	for sh := range persistence.Shard(q.service.o.Store.ShardCount()) {
		from := ix.Prefix(nil, sh)
		to := persistence.PrefixEnd(from)
		if after != nil {
			key := ix.Key(nil, sh, after.value, after.id)
			if down {
				to = key
			} else {
				from = append(key, 0)
			}
		}
		if err := m.add(q.cursor(from, to, down), sh, sortedRow); err != nil {
			return nil, errors.Join(failure.OfStore(err), m.close())
		}
	}
	return m, nil
}

func (q *query) cursor(from, to []byte, down bool) *persistence.Cursor {
	if down {
		return q.snapshot.Backward(from, to)
	}
	return q.snapshot.Cursor(from, to)
}

// collect reads the ids of an access, in no order, and some of them twice. all
// is false when there are more than most.
func (q *query) collect(a *access, most int) (ids []persistence.ID, all bool, err error) {
	ids = make([]persistence.ID, 0, min(int(a.keys), most))
	for sh := range persistence.Shard(q.service.o.Store.ShardCount()) {
		for _, s := range a.spans {
			src := &source{cursor: q.snapshot.Cursor(s.bounds(sh)), kind: a.kind}
			ids, all, err = q.collectFrom(src, ids, most)
			if closed := src.cursor.Close(); err == nil {
				err = failure.OfStore(closed)
			}
			if err != nil || !all {
				return nil, false, err
			}
		}
	}
	return ids, true, nil
}

func (q *query) collectFrom(src *source, ids []persistence.ID, most int) (_ []persistence.ID, all bool, err error) {
	for {
		ok, err := src.next()
		if err != nil {
			return nil, false, failure.OfStore(err)
		}
		if !ok {
			return ids, true, nil
		}
		if q.explain.KeysRead++; len(ids) == most {
			return nil, false, nil
		}
		if err := q.chargeStep(); err != nil {
			return nil, false, err
		}
		ids = append(ids, src.id)
	}
}

// first reports whether the candidate's entry is the one under which an instance
// with several values stands in the sorted list: its smallest value, or its
// largest when the list goes down.
func first(keys [][]byte, value []byte, down bool) bool {
	return bytes.Equal(sortValue(keys, down), value)
}

// sortValue is the value that an instance is sorted by.
func sortValue(keys [][]byte, down bool) []byte {
	if !down {
		return keys[0]
	}
	last := keys[len(keys)-1]
	if bytes.Equal(last, filter.OverflowKey) {
		last = keys[len(keys)-2]
	}
	return last
}
