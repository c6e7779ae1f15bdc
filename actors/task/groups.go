package task

import (
	"bytes"

	"troupe/actors/failure"
	"troupe/persistence"
)

// A group is the tasks of one workflow that stand in one worklist in one order: what a list of tasks is merged of.

// findGroups looks for the groups that the list can have something of, by going from each to the next. What a group has is not read, so those of workflows
// that the caller may not see cost nothing but that.
func (r *reading) findGroups() error {
	r.groups = []persistence.Range{}
	if r.req.Scope == ScopeEvery {
		return r.hop(r.hopEvery, persistence.Range{Prefix: persistence.WorksPrefix(nil, persistence.EveryShard)})
	}
	var lists []persistence.Range
	for _, list := range r.worklists() {
		lists = append(lists, persistence.Range{Prefix: list.prefix(nil, persistence.EveryShard, r.order)})
	}
	return r.hop(r.hopGroup, lists...)
}

// hop goes from one group to the next: next notes what the list wants of it, and says where to look on.
func (r *reading) hop(next func(group []byte, of *persistence.Work) []byte, ranges ...persistence.Range) error {
	var stopped error
	err := r.from.Hop(func(key []byte) ([]byte, error) {
		if stopped = r.from.Step(); stopped != nil {
			return nil, stopped
		}
		place, w, ok := persistence.WorkEntry(key)
		if !ok {
			return nil, persistence.ErrCorrupt
		}
		return next(bytes.Clone(key[:len(key)-len(place)]), &w), nil
	}, ranges...)
	if stopped != nil {
		return stopped
	}
	return failure.OfStore(err)
}

func (r *reading) hopGroup(group []byte, of *persistence.Work) []byte {
	if of.Workflow == "" || r.isWanted(of.Workflow) {
		r.groups = append(r.groups, persistence.Range{Prefix: group})
	}
	return persistence.PrefixEnd(group)
}

// hopEvery goes through all worklists.
func (r *reading) hopEvery(group []byte, of *persistence.Work) []byte {
	sh := persistence.ShardOfKey(group)
	switch order := Order(of.Order); {
	case of.List == listDecided: // what is decided is not open
		return persistence.PrefixEnd(append(persistence.WorksPrefix(nil, sh), listDecided))
	case order < r.order:
		return persistence.WorkPrefix(nil, sh, of.List, of.Name, byte(r.order))
	case order > r.order:
		return persistence.PrefixEnd(persistence.WorkListPrefix(nil, sh, of.List, of.Name))
	}
	return r.hopGroup(group, of)
}

// isWanted reports whether the list can have tasks of a workflow.
func (r *reading) isWanted(workflow string) bool {
	return (r.req.WorkflowID == "" || r.req.WorkflowID == workflow) && r.mayReadSome(workflow)
}
