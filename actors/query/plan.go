package query

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

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

// Limits are where a plan or a page ends. Tests make them small, and so do with few instances.
type Limits struct {
	ProbeKeys int // how many rows of an index the planner counts at most
	Collect   int // Above it, and where reading all of them by their ids costs more than that, it scans
	Sort      int // the most candidates that are sorted in memory
	Merge     int // the most cursors that a query opens at a time
	Peek      int // how many candidates a full page looks at to find out whether there is another one
	PageBytes int // PageBytes ends a page early, so that it fits into memory
}

var usualLimits = Limits{ProbeKeys: 256, Collect: 250_000, Sort: 10_000, Merge: 128, Peek: 1000, PageBytes: 8 << 20}

type plan struct {
	name string
	by   *access // planIndex, planUnion
	// ids are the candidates, in no order, when listed. Otherwise they are read as they are needed.
	ids    []key.ID
	listed bool
}

func (q *query) choose() (plan, error) {
	if ids, ok := q.idsOf(q.filter); ok {
		return plan{name: planIDs, ids: ids, listed: true}, nil
	}
	accesses, best, err := q.withUnions(q.filter, q.accesses(q.filter))
	if err != nil || best == nil {
		return plan{name: planScan}, err
	}
	l := &q.service.Limits
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

// idsOf are those that a filter names, in the shards of the query.
func (q *query) idsOf(f *filter.Filter) (ids []key.ID, ok bool) {
	names, ok := f.IDs()
	for _, name := range names {
		if id, ok := instanceid.Parse(name); ok && (!q.isPart || slices.Contains(q.shards, q.service.o.Store.ShardOf(id))) {
			ids = append(ids, id)
		}
	}
	return ids, ok
}

func (q *query) smallest(accesses []access) (best *access, err error) {
	for i := range accesses {
		a := &accesses[i]
		if !a.probed {
			if err := q.probe(a, int64(q.service.Limits.ProbeKeys)); err != nil {
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
	enough := int64(q.service.Limits.ProbeKeys)
	shards, many := int64(len(q.shards)), best.atLeast
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
		if stopped = q.chargeSteps(len(q.shards)); stopped == nil {
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

type access struct {
	index  string
	union  bool
	ranges []key.Range // of every shard
	// nodes are those whose ranges have the rows of several machines, one machine after the other: split makes them
	// ranges that an id follows.
	nodes []string
	// ids are those that branches name. An access that is not a union has none.
	ids []key.ID
	// points says that an id follows the prefix of each range that is of no node, so that merging them gives the order
	// of ids.
	points          bool
	keys            int64 // Valid once probed
	atLeast, probed bool
	found           []key.ID // found has an id for each row that was read to count them, and those in ids, in no order
}

func (q *query) accesses(f *filter.Filter) (all []access) {
	for _, p := range f.Positions() {
		all = append(all, q.byNode(p))
	}
	for _, ix := range q.ready {
		ranges, ok := f.Bounds(ix.Field(), !ix.Several())
		if !ok {
			continue
		}
		a := access{index: ix.Path(), points: true}
		for _, r := range ranges {
			a.ranges = append(a.ranges, rangeOf(ix, r))
			a.points = a.points && r.Point
		}
		all = append(all, a)
	}
	return all
}

// withUnions adds what finds all branches of an $or, unless one of the accesses has few rows. It says which has the
// fewest; nil: none.
func (q *query) withUnions(f *filter.Filter, accesses []access) (all []access, best *access, err error) {
	if best, err = q.smallest(accesses); err != nil || best != nil && q.few(best) {
		return accesses, best, err
	}
	for _, branches := range f.Alternatives() {
		u, ok, err := q.union(branches)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			accesses = append(accesses, u)
		}
	}
	best, err = q.smallest(accesses)
	return accesses, best, err
}

func (q *query) few(a *access) bool { return !a.atLeast && a.keys <= int64(q.service.Limits.ProbeKeys) }

// union is the access by all branches of an $or. ok is false when something else than an index must find those of one.
func (q *query) union(branches []*filter.Filter) (u access, ok bool, err error) {
	u = access{union: true, points: true, probed: true}
	var names []string
	ways := make([][]access, len(branches))
	for i, b := range branches {
		if ids, ok := q.idsOf(b); ok {
			ways[i] = []access{{index: "_id", ids: ids, points: true, keys: int64(len(ids)), probed: true, found: ids}}
		} else if ways[i] = q.accesses(b); len(ways[i]) == 0 && len(b.Alternatives()) == 0 {
			return access{}, false, nil
		}
	}
	for i, b := range branches {
		_, best, err := q.withUnions(b, ways[i])
		if best == nil || err != nil {
			return access{}, false, err
		}
		names = append(names, strings.Split(best.index, unionMark)...)
		u.ranges, u.ids, u.nodes = append(u.ranges, best.ranges...), append(u.ids, best.ids...), append(u.nodes, best.nodes...)
		u.keys += best.keys
		u.points, u.atLeast = u.points && best.points, u.atLeast || best.atLeast
		u.found = append(u.found, best.found...)
	}
	slices.Sort(names)
	u.index = strings.Join(slices.Compact(names), unionMark)
	slices.SortFunc(u.ranges, compareRanges) // NB: branches on one index share the range of what has too many values
	u.ranges = slices.CompactFunc(u.ranges, func(a, b key.Range) bool { return compareRanges(a, b) == 0 })
	return u, true, nil
}

const unionMark = " | "

func compareRanges(a, b key.Range) int {
	return cmp.Or(bytes.Compare(a.Prefix, b.Prefix), bytes.Compare(a.From, b.From), bytes.Compare(a.To, b.To))
}

func rangeOf(ix *catalog.Index, r filter.Range) key.Range {
	if r.Point {
		return key.Range{Prefix: append(ix.Prefix(), r.From...)}
	}
	to := r.To
	if last := len(to) - 1; last >= 0 && to[last] == 0 {
		// NB: behind a value k, k followed by 0, are the rows of k, which is followed by an id there.
		to = key.PrefixEnd(to[:last])
	}
	return key.Range{Prefix: ix.Prefix(), From: r.From, To: to}
}

func (q *query) byNode(p filter.Positions) access {
	a := access{index: nodeIndex, points: true}
	for _, node := range p.Nodes {
		prefix := q.nodePrefix(node)
		if p.Machine != "" {
			prefix = key.MachinePrefix(nil, key.EveryShard, q.workflowID, node, p.Machine)
		} else {
			a.nodes = append(a.nodes, node)
		}
		a.ranges = append(a.ranges, key.Range{Prefix: prefix})
	}
	return a
}

func (q *query) nodePrefix(node string) []byte {
	return key.NodePrefix(nil, key.EveryShard, q.workflowID, node)
}

// split takes the nodes of an access apart, by the machines that are in them, so that it can be merged.
func (q *query) split(a *access) error {
	slices.Sort(a.nodes)
	for _, node := range slices.Compact(a.nodes) {
		machines, err := q.machinesIn(node)
		if err != nil {
			return err
		}
		whole := q.nodePrefix(node)
		a.ranges = slices.DeleteFunc(a.ranges, func(r key.Range) bool { return bytes.Equal(r.Prefix, whole) })
		for _, machine := range machines {
			a.ranges = append(a.ranges, key.Range{Prefix: key.MachinePrefix(nil, key.EveryShard, q.workflowID, node, machine)})
		}
	}
	a.nodes = nil
	return nil
}

func (q *query) machinesIn(node string) (machines []string, err error) {
	c := q.snapshot.Merge(key.Range{Prefix: q.nodePrefix(node)})
	defer func() { err = errors.Join(err, failure.OfStore(c.Close())) }()
	for ok := c.Next(); ok; {
		if err := q.chargeSteps(len(q.shards)); err != nil {
			return nil, err
		}
		q.explain.KeysRead++
		machine, valid := key.NodeMachine(c.Key())
		if !valid {
			return nil, failure.OfStore(persistence.ErrCorrupt)
		}
		machines = append(machines, string(machine))
		rest := c.Rest()
		ok = c.Seek(key.PrefixEnd(rest[:len(rest)-len(key.ID{})]))
	}
	slices.Sort(machines)
	return machines, failure.OfStore(c.Err())
}

// Where the rows are many, probe estimates.
func (q *query) probe(a *access, most int64) error {
	few := q.service.Limits.ProbeKeys
	a.found = slices.Clone(a.ids)
	var stopped error
	e, err := estimateKeys(q.snapshot, int64(few), most, func(key []byte) error {
		if _, id, ok := entryRow.parse(key); ok && len(a.found) < few {
			a.found = append(a.found, id)
		}
		stopped = q.chargeStep()
		return stopped
	}, a.ranges...)
	if stopped != nil {
		return stopped
	}
	if err != nil {
		return failure.OfStore(err)
	}
	a.keys, a.atLeast, a.probed = e.keys+int64(len(a.ids)), !e.exact, true
	q.explain.KeysRead += e.read
	return nil
}

func (q *query) merges(a *access) bool {
	return a.points && len(a.ids) == 0 && len(a.nodes) == 0 && len(a.ranges)*len(q.shards) <= q.service.Limits.Merge
}
