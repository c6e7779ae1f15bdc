package query

import (
	"bytes"
	"errors"
	"slices"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine/filter"
)

// How a query finds its candidates. Every plan gives a superset of the matches; the filter decides about each
// candidate, so a plan can be slow but not wrong.
const (
	planIDs    = "ids"          // the filter names them
	planIndex  = "index"        // from an index, brought into the order of ids
	planUnion  = "union"        // from an index for each branch of an $or, likewise
	planSorted = "sorted index" // from the index that sorts, in its order
	planScan   = "scan"         // all instances

	nodeIndex = "states.nodeId" // what explanations call the index of nodes
)

// recordCost is what reading a candidate by its id costs, in instances that a scan would read meanwhile.
const recordCost = 4

// Tests make them small, and so do with few instances.
type limits struct {
	ProbeKeys int // how many rows of an index the planner counts at most
	Collect   int // Above it, and where reading all of them by their ids costs more than that, it scans
	Sort      int // the most candidates that are sorted in memory
	Merge     int // the most cursors that a query opens at a time
	Peek      int // how many candidates a full page looks at to find out whether there is another one
	PageBytes int // PageBytes ends a page early, so that it fits into memory
}

var usualLimits = limits{ProbeKeys: 256, Collect: 250_000, Sort: 10_000, Merge: 128, Peek: 1000, PageBytes: 8 << 20}

type plan struct {
	name string
	by   *access // planIndex, planUnion
	// ids are the candidates, in no order, when listed. Otherwise they are read as they are needed.
	ids    []key.ID
	listed bool
}

func (q *query) choose() (plan, error) {
	if ids, ok := idsOf(q.filter); ok {
		return plan{name: planIDs, ids: ids, listed: true}, nil
	}
	accesses, best, err := q.withUnions(q.filter, q.accesses(q.filter))
	if err != nil || best == nil {
		return plan{name: planScan}, err
	}
	l := &q.service.limits
	var total int64
	// NB: where many instances were made lately, to count all costs as much as to read some hundreds, so nobody asks
	// when there are few candidates.
	few := q.few(best)
	if !few {
		total, err = q.total()
		for i := range accesses {
			err = errors.Join(err, q.split(&accesses[i]))
		}
		if err != nil {
			return plan{}, err
		}
	}
	if best, err = q.cheapest(accesses, best, total); err != nil {
		return plan{}, err
	}
	if !few && best.keys*recordCost > total {
		return plan{name: planScan}, nil
	}
	chosen := plan{name: planIndex, by: best}
	if best.union {
		chosen.name = planUnion
	}
	if q.sort == nil && best.keys > int64(l.ProbeKeys) && q.merges(best) {
		return chosen, nil
	}
	most := l.Collect
	if q.sort != nil {
		most = l.Sort
	}
	most = min(most, max(l.ProbeKeys, int(total/recordCost))) // NB: keys may have been a guess
	ids, all := best.found, !best.atLeast && int64(len(best.found)) == best.keys && len(best.found) <= most
	if !all {
		ids, all, err = q.collect(best, most)
	}
	if err != nil || !all {
		return plan{name: planScan}, err
	}
	chosen.ids, chosen.listed = ids, true
	return chosen, nil
}

func idsOf(f *filter.Filter) (ids []key.ID, ok bool) {
	names, ok := f.IDs()
	for _, name := range names {
		if id, ok := instanceid.Parse(name); ok {
			ids = append(ids, id)
		}
	}
	return ids, ok
}

func (q *query) smallest(accesses []access) (best *access, err error) {
	for i := range accesses {
		a := &accesses[i]
		if !a.probed {
			if err := q.probe(a, int64(q.service.limits.ProbeKeys)); err != nil {
				return nil, err
			}
		}
		if best == nil || a.keys < best.keys {
			best = a
		}
	}
	return best, nil
}

// cheapest returns the access with the fewest rows. best is the smallest so far: where it has many, all are counted on.
func (q *query) cheapest(accesses []access, best *access, total int64) (*access, error) {
	enough := int64(q.service.limits.ProbeKeys)
	shards, many := int64(q.service.o.Store.Shards()), best.atLeast
	for i := range accesses {
		a := &accesses[i]
		// Where none has few, it matters how many they have, unless a page ends it soon.
		if many && (q.req.Limit == 0 || q.req.Count || !q.merges(a)) {
			if err := q.probe(a, max(enough, total/shards/recordCost+1)); err != nil {
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

func (q *query) total() (int64, error) {
	total, err := q.snapshot.CountAll(key.CountPrefix(nil, key.EveryShard, q.workflowID))
	return total, failure.OfStore(err)
}

func (q *query) open(p plan, down bool, after *position) iterator {
	switch {
	case p.listed:
		return newSortedIDs(slices.Clone(p.ids), down, after)
	case p.by != nil:
		return q.byID(p.by.ranges, entryRow, down, after)
	}
	records := key.Range{Prefix: key.RecordPrefix(nil, key.EveryShard, q.workflowID)}
	return q.byID([]key.Range{records}, recordRow, down, after)
}

// byID reads ranges that an id follows, in the order of ids, behind a position.
func (q *query) byID(ranges []key.Range, kind rowKind, down bool, after *position) iterator {
	if after == nil {
		return q.merge(ranges, kind, down, nil)
	}
	return q.merge(ranges, kind, down, after.id[:])
}

// sortedBy reads a whole index in the order of its values, behind a position.
func (q *query) sortedBy(ix *catalog.Index, down bool, after *position) iterator {
	var rest []byte
	if after != nil {
		rest = append(slices.Clip(after.value), after.id[:]...)
	}
	return q.merge([]key.Range{{Prefix: ix.Prefix()}}, sortedRow, down, rest)
}

// merge reads ranges behind the row whose key ends with after behind the prefix; nil: from the beginning.
func (q *query) merge(ranges []key.Range, kind rowKind, down bool, after []byte) *merged {
	ranges = slices.Clone(ranges)
	for i := range ranges {
		switch {
		case after == nil:
		case down:
			ranges[i].To = after
		default:
			ranges[i].From = append(slices.Clip(after), 0)
		}
	}
	m := &merged{kind: kind, rows: &q.explain.KeysRead}
	if down {
		m.cursor = q.snapshot.MergeBackward(ranges...)
	} else {
		m.cursor = q.snapshot.Merge(ranges...)
	}
	return m
}

// collect reads the ids of an access, in no order, some twice. all is false when there are more than most.
func (q *query) collect(a *access, most int) (ids []key.ID, all bool, err error) {
	ids = append(make([]key.ID, 0, min(int(a.keys), most)), a.ids...)
	var stopped error
	visit := func(key, _ []byte) error {
		_, id, ok := entryRow.parse(key)
		if !ok {
			return persistence.ErrCorrupt
		}
		if q.explain.KeysRead++; len(ids) >= most {
			stopped = errMany
		} else {
			stopped = q.chargeStep()
		}
		ids = append(ids, id)
		return stopped
	}
	for _, r := range a.ranges {
		if stopped = q.chargeSteps(int(q.service.o.Store.Shards())); stopped == nil {
			err = q.snapshot.ScanRanges(visit, r)
		}
		if stopped != nil || err != nil {
			break
		}
	}
	switch {
	case errors.Is(stopped, errMany):
		return nil, false, nil
	case stopped != nil:
		return nil, false, stopped
	case err != nil:
		return nil, false, failure.OfStore(err)
	}
	return ids, true, nil
}

var errMany = errors.New("more rows than are collected")

// first reports whether the entry is the one under which an instance with several values stands in the sorted list.
func first(keys [][]byte, value []byte, down bool) bool {
	return bytes.Equal(sortValue(keys, down), value)
}

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
