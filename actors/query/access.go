package query

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine/filter"
)

type access struct {
	index  string
	union  bool
	ranges []key.Range // of every shard
	// nodes are those whose ranges have the rows of several machines, one machine after the other: split makes them
	// ranges that an id follows.
	nodes []string
	// ids are those that branches name. An access that is no union has none.
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

func (q *query) few(a *access) bool {
	return !a.atLeast && a.keys <= int64(q.service.limits.ProbeKeys)
}

// union is the access by all branches of an $or. ok is false when something else than an index must find those of one.
func (q *query) union(branches []*filter.Filter) (u access, ok bool, err error) {
	u = access{union: true, points: true, probed: true}
	var names []string
	ways := make([][]access, len(branches))
	for i, b := range branches {
		if ids, ok := idsOf(b); ok {
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
		if err := q.chargeSteps(int(q.service.o.Store.Shards())); err != nil {
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

// Where they are many it is an estimate.
func (q *query) probe(a *access, most int64) error {
	few := q.service.limits.ProbeKeys
	a.found = slices.Clone(a.ids)
	var stopped error
	e, err := q.snapshot.Estimate(int64(few), most, func(key []byte) error {
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
	a.keys, a.atLeast, a.probed = e.Keys+int64(len(a.ids)), !e.Exact, true
	q.explain.KeysRead += e.Read
	return nil
}

func (q *query) merges(a *access) bool {
	return a.points && len(a.ids) == 0 && len(a.nodes) == 0 && len(a.ranges)*int(q.service.o.Store.Shards()) <= q.service.limits.Merge
}
