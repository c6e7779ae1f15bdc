package task

import (
	"bytes"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

// A group is the tasks of one workflow that stand in one worklist in one order: what a list of tasks is merged of.

// findGroups looks for the groups that the list can have something of, by going from each to the next.
func (r *reading) findGroups() error {
	r.groups = []key.Range{}
	if r.req.Scope == ScopeEvery {
		return r.hop(r.hopEvery, key.Range{Prefix: key.WorksPrefix(nil, key.EveryShard)})
	}
	var lists []key.Range
	for _, list := range r.worklists() {
		lists = append(lists, key.Range{Prefix: list.prefix(nil, key.EveryShard, r.order)})
	}
	return r.hop(r.hopGroup, lists...)
}

func (r *reading) hop(next func(group []byte, of *key.Work) []byte, ranges ...key.Range) error {
	var stopped error
	err := r.from.Hop(func(k []byte) ([]byte, error) {
		if stopped = r.from.Step(); stopped != nil {
			return nil, stopped
		}
		place, w, ok := key.ParseWork(k)
		if !ok {
			return nil, persistence.ErrCorrupt
		}
		return next(bytes.Clone(k[:len(k)-len(place)]), &w), nil
	}, ranges...)
	if stopped != nil {
		return stopped
	}
	return failure.OfStore(err)
}

func (r *reading) hopGroup(group []byte, of *key.Work) []byte {
	if of.Workflow == "" || r.isWanted(of.Workflow) {
		r.groups = append(r.groups, key.Range{Prefix: group})
	}
	return key.PrefixEnd(group)
}

func (r *reading) hopEvery(group []byte, of *key.Work) []byte {
	sh := key.ShardOf(group)
	switch order := Order(of.Order); {
	case of.List == listDecided: // what is decided is not open
		return key.PrefixEnd(append(key.WorksPrefix(nil, sh), listDecided))
	case order < r.order:
		return key.WorkPrefix(nil, sh, of.List, of.Name, byte(r.order))
	case order > r.order:
		return key.PrefixEnd(key.WorkListPrefix(nil, sh, of.List, of.Name))
	}
	return r.hopGroup(group, of)
}

func (r *reading) isWanted(workflow string) bool {
	return (r.req.WorkflowID == "" || r.req.WorkflowID == workflow) && r.mayReadSome(workflow)
}
