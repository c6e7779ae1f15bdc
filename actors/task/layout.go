package task

import (
	"errors"
	"sync/atomic"
	"unicode"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/statemachine"
)

// Layout says which rows the open tasks of a shard have. Until 2026-11-28 the tasks of all workflows stood together in the worklists of candidates, and
// those without a candidate nowhere. Backfill writes them anew.
type Layout uint8

const (
	// Mixed: some may have those of before.
	Mixed Layout = iota
	// Earlier: a node of the cluster knows only those of before.
	Earlier
	// Grouped: all stand by their workflows.
	Grouped
)

// Layouts remembers which shards are Grouped. Its methods are safe for concurrent use.
type Layouts struct {
	hasLevel func(int) bool
	grouped  []atomic.Bool
}

// levelOfGroups is that from which on all nodes of a cluster can read grouped rows.
const levelOfGroups = 4

// NewLayouts returns that of a store, in which nothing is known yet. hasLevel reports whether all nodes have a level.
func NewLayouts(s *persistence.Store, hasLevel func(level int) bool) *Layouts {
	return &Layouts{hasLevel, make([]atomic.Bool, s.Shards())}
}

func (l *Layouts) ready() bool { return l.hasLevel(levelOfGroups) }

// Of returns the layout of a shard.
func (l *Layouts) Of(sh persistence.Shard) Layout {
	switch {
	case !l.ready():
		return Earlier
	case l.grouped[sh].Load():
		return Grouped
	}
	return Mixed
}

// areGrouped reports whether all shards are.
func (l *Layouts) areGrouped() bool {
	for sh := range l.grouped {
		if !l.grouped[sh].Load() {
			return false
		}
	}
	return true
}

// earlier is the list as it was named before Grouped.
func (l worklist) earlier() worklist {
	return worklist{byte(unicode.ToLower(rune(l.letter))), l.name} //nolint:gosec // ASCII
}

// listOf is the list of a row of any layout.
func listOf(w *persistence.Work) worklist {
	switch letter := byte(unicode.ToUpper(rune(w.List))); letter { //nolint:gosec // ASCII
	case listRole, listPrivilege, listUser, listEverybody:
		return worklist{letter, w.Name}
	}
	return worklist{w.List, w.Name}
}

// Group writes the rows of open tasks anew, into a commit of their instance.
func (of *Origin) Group(w *persistence.Writes, open []statemachine.Task) {
	for i := range open {
		of.eachRow(of.Of, &open[i], true, w.Delete)
		of.eachRow(of.Of, &open[i], false, func(key []byte) { w.Set(key, []byte(of.Workflow)) })
	}
}

// areTasksGrouped reports whether the open tasks of an instance have their rows.
func (of *Origin) areTasksGrouped(store *persistence.Store, open []statemachine.Task) (bool, error) {
	for i := range open {
		var first []byte
		of.eachRow(of.Of, &open[i], false, func(key []byte) {
			if first == nil {
				first = key
			}
		})
		if _, err := store.Load(first); errors.Is(err, persistence.ErrNotFound) {
			return false, nil
		} else if err != nil {
			return false, failure.OfStore(err)
		}
	}
	return true, nil
}
